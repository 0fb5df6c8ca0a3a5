/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the text of `perf script`: per sample a line that says who, when and by which event, then its frames, leaf first, indented, and a
 * blank line:
 *
 *   python3 12/14 [001] 27078.806564:    2004008 cpu-clock:
 *           7f1debc70cf _PyType_Lookup+0x4f (/usr/lib/libpython3.11.so.1.0)
 *
 * pid/tid may be a tid alone, the processor and the period may lack, and without call chains the one frame stands on the same line. As
 * stackcollapse-perf.pl does, only samples of the first event are taken. The weight is the period: nanoseconds where the event is a clock, or
 * else what the event counts. Where periods differ, samples are not worth the same, and are not counted. Without periods a sample of a clock is one
 * interval, where the head (--header) tells it; else samples are counted alone. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "exporters/formats.h"
#include "exporters/perfscript_head.h"
#include "exporters/span.h"

enum {
	LINE_BYTES_MAX = 1 << 16,
	PROCESSES_MAX = 16384, /* they are looked up one by one */
	EVENT_BYTES_MAX = 128,
};

struct perf_reader {
	struct builder *to;
	struct buf line;
	struct buf frames; /* uint32_t, symbols of the sample at hand, leaf first */
	char event[EVENT_BYTES_MAX];
	bool is_clock, has_event, in_sample; /* in_sample: frames are taken */
	bool is_weighted;                    /* by periods, or by interval_ns where there are none */
	uint64_t first_period;               /* of the first sample that was taken */
	uint64_t interval_ns;                /* between samples of a clock, by the head; 0: it does not say */
	bool is_deep;                        /* the sample at hand is cut */
	uint32_t thread;
	struct perfscript_head sample; /* its texts are not good any more */
	uint64_t line_number, first_bad, good, bad, deep, other_events, untimed;
	uint64_t cut;
};

/* --- who --- */

static uint32_t find_process(struct perf_reader *r, int32_t pid, const char *name)
{
	const struct profile *profile = builder_profile(r->to);

	/* A process is named by the command that is seen first. */
	for (uint32_t i = 0; i < profile->process_count; i++)
		if (profile->processes[i].pid == pid)
			return i;
	if (profile->process_count >= PROCESSES_MAX)
		return BUILDER_NONE;
	return builder_process(r->to, &(struct process){.pid = pid, .name = (char *)name});
}

static bool find_thread(struct perf_reader *r, const struct perfscript_head *sample)
{
	char name[256];
	size_t bytes = sample->comm.bytes < sizeof(name) ? sample->comm.bytes : sizeof(name) - 1;
	uint32_t process;

	for (size_t i = 0; i < bytes; i++)
		name[i] = sample->comm.at[i] ? sample->comm.at[i] : ' ';
	name[bytes] = '\0';
	process = find_process(r, (int32_t)sample->pid, sample->pid ? name : "");
	r->thread = builder_thread(r->to, &(struct thread_tree){.process = process,
	                                                        .tid = sample->tid,
	                                                        .name = name,
	                                                        .is_main = sample->pid && sample->pid == sample->tid});
	return process != BUILDER_NONE;
}

/* --- frames --- */

/* The symbol without its offset. */
static struct span cut_offset(struct span name)
{
	size_t at = name.bytes;

	while (at > 0 && (is_digit(name.at[at - 1]) || (name.at[at - 1] >= 'a' && name.at[at - 1] <= 'f')))
		at--;
	if (at > 3 && at < name.bytes && memcmp(name.at + at - 3, "+0x", 3) == 0)
		name.bytes = at - 3;
	return name;
}

/* CPython's own names for perf, py::FUNCTION:FILE, are Python frames. */
static uint32_t frame_symbol(struct perf_reader *r, struct span name, struct span module)
{
	const char *colon;

	if (name.bytes > 4 && memcmp(name.at, "py::", 4) == 0 &&
	    (colon = memchr(name.at + 4, ':', name.bytes - 4)) != NULL) {
		size_t name_bytes = (size_t)(colon - name.at) - 4;

		return builder_symbol(r->to, name.at + 4, name_bytes, colon + 1, name.bytes - name_bytes - 5, 0,
		                      FRAME_PYTHON, 0);
	}
	if ((module.bytes == 9 && memcmp(module.at, "[unknown]", 9) == 0) ||
	    (module.bytes == 7 && memcmp(module.at, "inlined", 7) == 0))
		module.bytes = 0;
	return builder_symbol(r->to, name.at, name.bytes, module.bytes ? module.at : "", module.bytes, 0, FRAME_NATIVE,
	                      0);
}

/* ADDRESS SYMBOL+OFFSET (MODULE). False: it is no frame. */
static bool add_frame(struct perf_reader *r, struct span line)
{
	struct span rest, module = {0};
	uint32_t symbol;

	if (!perfscript_is_frame(line, &rest))
		return false;
	if (rest.at[rest.bytes - 1] == ')') {
		size_t open = rest.bytes;

		while (open > 1 && !(rest.at[open - 1] == '(' && rest.at[open - 2] == ' '))
			open--;
		if (open > 1) {
			module = (struct span){.at = rest.at + open, .bytes = rest.bytes - open - 1};
			rest.bytes = open - 2;
		}
	}
	if (r->frames.bytes / sizeof(symbol) >= REC_DEPTH_MAX) {
		r->is_deep = true;
		return true;
	}
	symbol = frame_symbol(r, cut_offset(rest), module);
	buf_add(&r->frames, &symbol, sizeof(symbol));
	return true;
}

/* --- samples --- */

static bool is_clock(struct span event)
{
	return event.bytes >= 9 && (memcmp(event.at, "cpu-clock", 9) == 0 ||
	                            (event.bytes >= 10 && memcmp(event.at, "task-clock", 10) == 0));
}

/* The sample at hand is whole. */
static void end_sample(struct perf_reader *r)
{
	const uint32_t *symbols = (const uint32_t *)(const void *)r->frames.data;
	const struct perfscript_head *sample = &r->sample;
	uint64_t values[VALUE_COUNT] = {[VALUE_SAMPLES] = 1};
	uint32_t node = 0;

	if (!r->in_sample)
		return;
	r->in_sample = false;
	for (size_t i = r->frames.bytes / sizeof(*symbols); i-- > 0;)
		node = builder_child(r->to, r->thread, node, symbols[i], 0);
	if (sample->has_time) {
		builder_run(r->to, r->thread, node, sample->time_ns, sample->time_ns, 1,
		            r->is_weighted ? sample->period : 0, r->is_clock ? STATUS_RUNNABLE : 0);
	} else {
		values[VALUE_WALL] = r->is_weighted ? sample->period : 0;
		values[VALUE_RUNNABLE] = r->is_clock ? values[VALUE_WALL] : 0;
		builder_add(r->to, r->thread, node, values);
		r->untimed++;
	}
	if (r->good == 0)
		r->first_period = sample->period;
	builder_profile(r->to)->uncounted |= r->is_weighted && sample->period != r->first_period;
	r->good++;
	r->deep += r->is_deep;
}

/* The first sample says what the weight is. */
static void choose_weight(struct perf_reader *r, const struct perfscript_head *sample)
{
	r->is_clock = is_clock(sample->event);
	r->is_weighted = sample->has_period || (r->is_clock && r->interval_ns);
	if (r->is_clock)
		builder_profile(r->to)->mode = "cpu";
	if (!r->is_weighted)
		return;
	builder_value(r->to, r->is_clock ? "cpu" : r->event, r->is_clock ? "nanoseconds" : "count", VALUE_WALL);
	if (r->is_clock)
		builder_value(r->to, "runnable", "nanoseconds", VALUE_RUNNABLE);
}

static void begin_sample(struct perf_reader *r, const struct perfscript_head *sample)
{
	size_t bytes = sample->event.bytes < EVENT_BYTES_MAX ? sample->event.bytes : EVENT_BYTES_MAX - 1;

	r->frames.bytes = 0;
	r->is_deep = false;
	if (!r->has_event) {
		r->has_event = true;
		memcpy(r->event, sample->event.at, bytes);
		r->event[bytes] = '\0';
		choose_weight(r, sample);
	}
	if (strlen(r->event) != bytes || memcmp(r->event, sample->event.at, bytes) != 0) {
		r->other_events++;
		return;
	}
	if (!find_thread(r, sample)) {
		r->bad++;
		return;
	}
	r->in_sample = true;
	r->sample = *sample;
	if (!sample->has_period && r->is_clock && r->interval_ns)
		r->sample.period = r->interval_ns;
	if (r->sample.period > UINT64_MAX / 2 / (r->good + 1)) /* sums do not overflow */
		r->sample.period = 0;
	add_frame(r, sample->rest);
}

/* "# event : name = cpu-clock, …, { sample_period, sample_freq } = 4000, …, freq = 1, …": how often the first event, if it is a clock, is sampled. */
static void read_event(struct perf_reader *r, struct span line)
{
	static const char begins[] = "# event : name = ", sampled[] = "{ sample_period, sample_freq } = ";
	const char *at = memmem(line.at, line.bytes, sampled, sizeof(sampled) - 1);
	const char *end = line.at + line.bytes;
	uint64_t number = 0;

	if (r->interval_ns || r->has_event || !at || !span_begins(line, begins) ||
	    !is_clock(span_behind(line, sizeof(begins) - 1)))
		return;
	for (at += sizeof(sampled) - 1; at < end && is_digit(*at) && number < UINT32_MAX; at++)
		number = number * 10 + (uint64_t)(*at - '0');
	if (memmem(line.at, line.bytes, ", freq = 1", 10))
		number = number ? NS_PER_S / number : 0;
	r->interval_ns = number;
	builder_profile(r->to)->interval_ns = number;
}

static void read_line(struct perf_reader *r)
{
	struct span line = {.at = r->line.data, .bytes = r->line.bytes};
	struct perfscript_head sample;

	if (line.bytes == 0) {
		end_sample(r);
	} else if (line.at[0] == '#') {
		read_event(r, line);
	} else if (r->in_sample && is_blank(line.at[0]) && add_frame(r, line)) {
		return;
	} else if (perfscript_head(line, &sample)) {
		end_sample(r);
		begin_sample(r, &sample);
	} else if (!(r->other_events && !r->in_sample &&
	             is_blank(line.at[0]))) { /* a frame of a sample that was left out */
		r->bad++;
		if (r->first_bad == 0)
			r->first_bad = r->line_number;
	}
}

static void add_notes(const struct perf_reader *r)
{
	char label[EVENT_BYTES_MAX + 64];

	snprintf(label, sizeof(label), "samples of %s", r->event);
	if (r->has_event)
		builder_note(r->to, "perf_samples", label, (double)r->good, false);
	if (r->other_events)
		builder_note(r->to, "other_events", "samples of other events, left out", (double)r->other_events, true);
	if (r->bad)
		builder_note(r->to, "bad_lines", "lines that are of no sample", (double)r->bad, true);
	if (r->cut)
		builder_note(r->to, "long_lines", "lines cut at 64 KiB", (double)r->cut, true);
	if (r->deep)
		builder_note(r->to, "deep_stacks", "stacks cut at 16,384 frames", (double)r->deep, true);
}

int perfscript_read(struct input *from, struct builder *to, struct fault *fault)
{
	struct perf_reader r = {.to = to};
	bool cut;
	int err;

	builder_profile(to)->imported = true;
	while (!builder_error(to) && !r.frames.err && input_line(from, &r.line, LINE_BYTES_MAX, &cut)) {
		r.line_number++;
		r.cut += cut;
		read_line(&r);
	}
	end_sample(&r);
	add_notes(&r);
	err = from->err ? from->err : r.frames.err ? r.frames.err : builder_error(to);
	buf_release(&r.line);
	buf_release(&r.frames);
	if (err)
		return input_fault(err, fault);
	if (r.good == 0)
		return fault_set(fault, -EPROTO, "the text of perf script",
		                 "it has no sample; line %" PRIu64 " is the first that is of none", r.first_bad);
	if (r.untimed && builder_wants_time(to))
		return fault_set(fault, -EINVAL, "perf script -F +time", "%" PRIu64 " samples have no time", r.untimed);
	return 0;
}

/* The first line that is no comment is a sample's, with its time, or with a frame on the next line. */
bool perfscript_detect(const unsigned char *head, size_t bytes)
{
	const char *at = (const char *)head, *end = at + bytes, *stop;
	struct perfscript_head sample;
	struct span line, rest;

	if (bytes > 12 && memcmp(at, "# ========\n#", 12) == 0) /* perf script --header */
		return true;
	while (at < end && (*at == '#' || *at == '\n') && (stop = memchr(at, '\n', (size_t)(end - at))) != NULL)
		at = stop + 1;
	stop = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
	line = (struct span){.at = at, .bytes = (size_t)((stop ? stop : end) - at)};
	if (at == end || !perfscript_head(line, &sample))
		return false;
	if (sample.has_time || !stop)
		return sample.has_time;
	at = stop + 1;
	stop = memchr(at, '\n', (size_t)(end - at));
	line = (struct span){.at = at, .bytes = (size_t)((stop ? stop : end) - at)};
	return line.bytes > 0 && is_blank(line.at[0]) && perfscript_is_frame(line, &rest);
}
