/* SPDX-License-Identifier: Apache-2.0 */
/* Binary profiles of CPython 3.15's profiling.sampling ("Tachyon"), `python3.15 -m profiling.sampling run --binary`; tachyon_file.h has their layout.
 * The records between head and tables (binary_io_writer.c, write_sample_with_encoding() and flush_pending_rle() of CPython 3.15.0):
 *
 *   thread u64, interpreter u32, kind u8, then
 *   REPEAT    count, count × (µs since the thread's sample before, status u8): the same stack again
 *   others    µs, status u8, then the stack, whose frames stand innermost first, as numbers in the table of frames:
 *     FULL      depth, frames
 *     SUFFIX    how many outer frames stay, how many inner ones are new, these
 *     POP_PUSH  how many inner frames go, how many are new, these
 *
 * where all numbers but the fixed ones are varints. So that the counts are those of its own `replay`, frames of its coordinator are left out, as
 * there. The writer keeps the inner 256 frames of a stack and does not tell when there were more: such samples are counted.
 *
 * A sample weighs one interval, as in its own reports: it makes up for late ticks by bursts, so that the time between two samples tells little. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "exporters/formats.h"
#include "exporters/tachyon_replay.h"

enum { RECORD_HEAD_BYTES = 13, DEPTH_CUT = 256, THREADS_MAX = 1 << 20 };

/* Bits of the profiler's status. */
enum { HAS_GIL = 1, ON_CPU = 2, CPU_UNKNOWN = 4, GIL_REQUESTED = 8, HAS_EXCEPTION = 16, MAIN_THREAD = 32 };

bool tachyon_detect(const unsigned char *head, size_t bytes)
{
	return bytes >= 8 && (memcmp(head, "HCAT", 4) == 0 || memcmp(head, "TACH", 4) == 0);
}

/* --- samples --- */

static unsigned status_of(unsigned status, bool in_gc)
{
	unsigned ours = 0;

	ours |= status & HAS_GIL ? STATUS_GIL : 0;
	ours |= status & GIL_REQUESTED ? STATUS_GIL_WAIT : 0;
	ours |= status & HAS_EXCEPTION ? STATUS_EXCEPTION : 0;
	if (status & CPU_UNKNOWN) /* in wall mode it does not ask whether the thread runs */
		ours |= STATUS_UNKNOWN;
	else if (status & ON_CPU)
		ours |= STATUS_RUNNABLE;
	else if (!(status & (HAS_GIL | GIL_REQUESTED)))
		ours |= STATUS_IDLE;
	return ours | (in_gc ? STATUS_GC : 0);
}

static void flush(struct replay *r, struct replayed *t)
{
	if (t->count > 0)
		builder_run(r->to, t->thread, t->node, t->first_us * 1000, t->last_us * 1000, t->count, t->weight_ns,
		            t->status);
	t->count = 0;
	t->weight_ns = 0;
}

static int add_sample(struct replay *r, struct replayed *t, uint64_t delta_us, unsigned status)
{
	const struct level *top = t->depth ? &t->levels[t->depth - 1] : NULL;
	unsigned ours = status_of(status, top && top->in_gc);
	uint32_t node = top ? top->node : 0;
	uint64_t weight_ns = r->file.interval_us * 1000;

	t->now_us += delta_us;
	if (t->now_us > INT64_MAX / 1000)
		return tachyon_malformed(r, "the time of a sample makes no sense");
	if (++r->samples > r->file.samples)
		return tachyon_malformed(r, "there are more samples than its head says");
	r->weight_ns += weight_ns;
	if (r->weight_ns > INT64_MAX)
		return tachyon_malformed(r, "the samples last longer than 292 years");
	r->cut += t->depth == DEPTH_CUT;
	/* Modes other than wall show threads that are not wanted as empty stacks. */
	if (t->depth == 0 && r->file.mode != 0 && r->file.mode != UINT32_MAX) {
		builder_profile(r->to)->filtered++;
		return 0;
	}
	if (t->count > 0 && (node != t->node || ours != t->status || t->now_us < t->last_us ||
	                     t->now_us - t->last_us > 2 * r->file.interval_us))
		flush(r, t);
	if (t->count == 0)
		t->first_us = t->now_us;
	t->last_us = t->now_us;
	t->node = node;
	t->status = ours;
	t->weight_ns += weight_ns;
	t->count++;
	return builder_error(r->to);
}

/* It is known only now whether it is the main one. */
static void begin_thread(struct replay *r, struct replayed *t, unsigned status)
{
	struct thread_tree like = {.process = r->process, .interpreter = t->interpreter, .tid = t->tid};

	like.is_main = t->is_main = status & MAIN_THREAD;
	t->thread = builder_thread(r->to, &like);
	t->has_samples = true;
}

static int read_sample(struct replay *r, struct replayed *t, unsigned kind)
{
	unsigned char status = 0;
	uint64_t delta_us;
	int err = 0;

	if (!t)
		return -ENOMEM;
	if (!tachyon_stream_varint(&r->stream, UINT64_MAX, &delta_us) || !tachyon_stream_read(&r->stream, &status, 1))
		return tachyon_malformed(r, "a sample is cut off");
	if (!t->has_samples)
		begin_thread(r, t, status);
	if (kind != RECORD_REPEAT)
		err = tachyon_change_stack(r, t, kind);
	return err ? err : add_sample(r, t, delta_us, status);
}

/* --- records --- */

static uint32_t tid_hash(uint64_t tid, uint32_t interpreter)
{
	return (uint32_t)hash_combine(hash_u64(tid), interpreter);
}

static int find_thread(struct replay *r, uint64_t tid, uint32_t interpreter, struct replayed **ret_thread)
{
	uint32_t hash = tid_hash(tid, interpreter), at = hash, found;

	while ((found = lookup_next(&r->by_tid, hash, &at)) != LOOKUP_NONE)
		if (r->threads[found].tid == tid && r->threads[found].interpreter == interpreter) {
			*ret_thread = &r->threads[found];
			return 0;
		}
	if (r->thread_count == r->file.threads || r->thread_count == THREADS_MAX)
		return tachyon_malformed(r, "there are more threads than its head says");
	if (r->thread_count == r->thread_room) {
		uint32_t room = r->thread_room ? 2 * r->thread_room : 16;
		struct replayed *larger = realloc(r->threads, room * sizeof(*larger));

		if (!larger)
			return fault_set(r->fault, -ENOMEM, "", "out of memory");
		r->threads = larger;
		r->thread_room = room;
	}
	if (lookup_add(&r->by_tid, hash, r->thread_count))
		return fault_set(r->fault, -ENOMEM, "", "out of memory");
	*ret_thread = &r->threads[r->thread_count++];
	**ret_thread = (struct replayed){.tid = tid, .interpreter = interpreter, .now_us = r->file.start_us};
	return builder_error(r->to);
}

static int read_record(struct replay *r)
{
	unsigned char head[RECORD_HEAD_BYTES];
	uint64_t count = 1;
	struct replayed *t = NULL;
	unsigned kind;
	int err;

	r->records++;
	if (!tachyon_stream_read(&r->stream, head, sizeof(head)))
		return tachyon_malformed(r, "a record is cut off");
	kind = head[12];
	if (kind > RECORD_POP_PUSH)
		return tachyon_malformed(r, "a record of no known kind");
	err = find_thread(r, tachyon_u64(head, r->file.big_endian), tachyon_u32(head + 8, r->file.big_endian), &t);
	/* Nothing writes a repetition of none, and a packed file could hold billions of them. */
	if (!err && kind == RECORD_REPEAT && (!tachyon_stream_varint(&r->stream, UINT32_MAX, &count) || count == 0))
		return tachyon_malformed(r, "a repetition is malformed");
	for (; !err && count > 0; count--)
		err = read_sample(r, t, kind);
	return err;
}

static int read_records(struct replay *r)
{
	int err = 0;

	while (!err && tachyon_stream_more(&r->stream))
		err = read_record(r);
	if (!err && r->stream.err)
		err = tachyon_malformed(r, "");
	if (!err && r->samples != r->file.samples)
		err = fault_set(r->fault, -EPROTO, "", "it holds %" PRIu64 " samples, and its head says %" PRIu64,
		                r->samples, r->file.samples);
	for (uint32_t i = 0; i < r->thread_count; i++)
		flush(r, &r->threads[i]);
	return err;
}

/* --- the whole --- */

static void say(struct replay *r)
{
	const struct tachyon_file *f = &r->file;

	if (f->has_stats)
		builder_note(r->to, "reached_hz", "rate reached, Hz", f->rate_hz, false);
	if (f->has_failed)
		builder_note(r->to, "failed_percent", "ticks that failed, %", f->failed_percent, true);
	if (f->has_missed)
		builder_note(r->to, "missed_percent", "samples missed, %",
		             f->missed_percent > 0 ? f->missed_percent : 0, true);
	builder_note(r->to, "cut_stacks", "stacks of 256 frames, maybe cut", (double)r->cut, true);
}

/* The file does not tell the process: its main thread does, whose number is the process'. */
static void name_process(struct replay *r)
{
	struct profile *p = builder_profile(r->to);

	for (uint32_t i = 0; i < r->thread_count && r->process < p->process_count; i++)
		if (r->threads[i].is_main && r->threads[i].interpreter == 0 && r->threads[i].tid <= INT32_MAX)
			p->processes[r->process].pid = (int32_t)r->threads[i].tid;
}

static void begin(struct replay *r)
{
	static const char *const modes[] = {"wall", "cpu", "gil", "all", "exception"};
	struct profile *p = builder_profile(r->to);

	p->imported = true;
	p->interval_ns = r->file.interval_us * 1000;
	if (r->file.mode < sizeof(modes) / sizeof(modes[0]))
		p->mode = modes[r->file.mode];
	for (int v = 0; v < VALUE_COUNT; v++)
		builder_value(r->to, profile_value_types[v].name, profile_value_types[v].unit, (enum value_index)v);
	r->process = builder_process(r->to, &(struct process){.version = r->file.python_version});
	if (r->file.start_us <= INT64_MAX / 1000)
		builder_set_start(r->to, r->file.start_us * 1000);
}

static int replay(struct replay *r)
{
	uint32_t count = r->file.frame_count;
	int err = tachyon_stream_init(&r->stream, &r->file.file, 64, r->file.strings_off, r->file.compression != 0);

	if (err == -ENOTSUP)
		return fault_set(r->fault, err, "python -m profiling.sampling replay reads it",
		                 "it is compressed with zstd, which this program was built without");
	r->symbols = malloc((count + (size_t)1) * sizeof(*r->symbols));
	r->is_internal = calloc(count + (size_t)1, sizeof(*r->is_internal));
	if (err || !r->symbols || !r->is_internal)
		return fault_set(r->fault, -ENOMEM, "", "out of memory");
	memset(r->symbols, 0xff, (count + (size_t)1) * sizeof(*r->symbols));
	begin(r);
	err = read_records(r);
	name_process(r);
	say(r);
	return err;
}

int tachyon_read(struct input *from, struct builder *to, struct fault *fault)
{
	struct replay *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return fault_set(fault, -ENOMEM, "", "out of memory");
	r->to = to;
	r->fault = fault;
	err = tachyon_open(&r->file, from, fault);
	if (!err) {
		err = replay(r);
		tachyon_stream_release(&r->stream);
		tachyon_close(&r->file);
	}
	for (uint32_t i = 0; i < r->thread_count; i++)
		free(r->threads[i].levels);
	free(r->threads);
	free(r->symbols);
	free(r->is_internal);
	lookup_release(&r->by_tid);
	free(r);
	return err ? err : builder_error(to);
}
