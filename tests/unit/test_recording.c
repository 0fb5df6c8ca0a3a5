/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings: what is read back is what the aggregator had, whatever was recorded; and what is cut off or damaged is read up to there. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporters/crc32c.h"
#include "exporters/format.h"
#include "exporters/formats.h"
#include "exporters/recording.h"
#include "tests/unit/stream.h"
#include "tests/unit/written.h"

/* A stream's recording, and the aggregator that took the same. */
struct made {
	struct aggregator *aggregator;
	struct recording_writer *writer;
	int fd;
	char *data;
	size_t bytes;
};

static void take(void *context, const struct rec_head *record, const struct record_fate *fate)
{
	struct made *m = context;
	struct tally tally;

	aggregator_tally(m->aggregator, &tally);
	recording_writer_take(m->writer, record, fate, &tally);
}

static void load_bytes(struct made *m)
{
	free(m->data);
	m->bytes = (size_t)lseek(m->fd, 0, SEEK_END);
	m->data = malloc(m->bytes + 1);
	cr_assert_eq(pread(m->fd, m->data, m->bytes, 0), (ssize_t)m->bytes);
}

static void start(struct made *m, const struct aggregator_options *options, bool pack, uint32_t stacks_max)
{
	struct aggregator_options how = *options;
	struct recording_options recording = {
		.interval_ns = how.interval_ns, .mode = how.mode, .pack = pack, .stacks_max = stacks_max};

	*m = (struct made){.fd = memfd_create("recording", MFD_CLOEXEC)};
	how.on_record = take;
	how.on_record_context = m;
	cr_assert_eq(aggregator_new(&m->aggregator, &how), 0);
	recording.realtime_offset_ns = aggregator_realtime_offset_ns(m->aggregator);
	cr_assert_eq(recording_writer_new(&m->writer, m->fd, &recording), 0);
}

static void finish(struct made *m)
{
	struct tally tally;

	aggregator_tally(m->aggregator, &tally);
	cr_assert_eq(recording_writer_finish(m->writer, &tally), 0);
	load_bytes(m);
	cr_assert_eq(m->bytes, recording_writer_bytes(m->writer));
}

static void release(struct made *m)
{
	recording_writer_free(m->writer);
	aggregator_free(m->aggregator);
	close(m->fd);
	free(m->data);
}

static int read_bytes(const char *data, size_t bytes, const struct builder_options *options, uint64_t sequence,
                      struct profile **ret_profile, struct fault *fault)
{
	static struct input in;
	struct builder *builder;
	int err;

	*ret_profile = NULL;
	*fault = (struct fault){0};
	cr_assert_eq(builder_new(&builder, options), 0);
	cr_assert_eq(input_open_bytes(&in, data, bytes), 0);
	err = recording_read_to_mark(&in, builder, sequence, fault);
	input_close(&in);
	if (!err)
		cr_assert_eq(builder_finish(builder, ret_profile), 0);
	builder_free(builder);
	return err;
}

static struct profile *read_back(const struct made *m, const struct builder_options *options)
{
	struct profile *profile;
	struct fault fault;
	int err = read_bytes(m->data, m->bytes, options, 0, &profile, &fault);

	cr_assert_eq(err, 0, "%s", fault.why);
	cr_assert_str_empty(fault.why);
	return profile;
}

static void expect_same_text(const struct profile *a, const struct profile *b)
{
	const struct export_options options = {0};
	char *left = written(a, "collapsed", &options), *right = written(b, "collapsed", &options);

	cr_assert_str_eq(left, right);
	free(left);
	free(right);
}

static uint64_t sum_of(const struct thread_tree *tree, enum value_index value)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < tree->node_count; i++)
		sum += tree->nodes[i].self[value];
	return sum;
}

static void expect_same_threads(const struct profile *a, const struct profile *b)
{
	cr_assert_eq(a->thread_count, b->thread_count);
	for (uint32_t i = 0; i < a->thread_count; i++) {
		const struct thread_tree *x = &a->threads[i], *y = &b->threads[i];

		cr_expect_eq(x->process, y->process);
		cr_expect_eq(x->interpreter, y->interpreter);
		cr_expect_eq(x->tid, y->tid);
		cr_expect_eq(x->is_main, y->is_main);
		cr_expect(x->name && y->name ? strcmp(x->name, y->name) == 0 : x->name == y->name);
		cr_expect_eq(x->depth_max, y->depth_max);
		cr_expect_eq(x->node_count, y->node_count);
		cr_expect_eq(sum_of(x, VALUE_SAMPLES), sum_of(y, VALUE_SAMPLES));
		cr_expect_eq(sum_of(x, VALUE_WALL), sum_of(y, VALUE_WALL), "to the nanosecond");
		cr_expect_eq(sum_of(x, VALUE_CPU), sum_of(y, VALUE_CPU), "so too");
		cr_expect_eq(sum_of(x, VALUE_RUN_WAIT), sum_of(y, VALUE_RUN_WAIT));
	}
}

static void expect_same(const struct profile *a, const struct profile *b)
{
	cr_assert_eq(a->process_count, b->process_count);
	for (uint32_t i = 0; i < a->process_count; i++) {
		struct rec_facts x = a->processes[i].facts, y = b->processes[i].facts;

		cr_expect_str_eq(a->processes[i].name, b->processes[i].name);
		cr_expect_eq(a->processes[i].pid, b->processes[i].pid);
		cr_expect_eq(a->processes[i].parent_pid, b->processes[i].parent_pid);
		cr_expect_eq(a->processes[i].start_time, b->processes[i].start_time);
		cr_expect_eq(a->processes[i].version, b->processes[i].version);
		cr_expect_eq(a->processes[i].ended, b->processes[i].ended);
		cr_expect_eq(memcmp(&x.interval_ns, &y.interval_ns, FACTS_FIELDS * 8), 0, "facts");
	}
	expect_same_threads(a, b);
	cr_expect_eq(a->t_start_ns, b->t_start_ns);
	cr_expect_eq(a->t_end_ns, b->t_end_ns);
	cr_expect_eq(a->wall_start_ns, b->wall_start_ns);
	cr_expect_eq(a->interval_ns, b->interval_ns);
	cr_expect_str_eq(a->mode, b->mode);
	cr_expect_eq(a->sequence, b->sequence);
	cr_expect_eq(a->filtered, b->filtered);
	cr_expect_eq(a->omitted, b->omitted);
	cr_expect_eq(a->left_out.wall, b->left_out.wall);
	cr_expect_eq(a->left_out.cpu, b->left_out.cpu);
	cr_expect_eq(a->left_out.run_wait, b->left_out.run_wait);
	cr_expect_eq(a->malformed_samples, b->malformed_samples);
	cr_expect_eq(a->malformed_records, b->malformed_records);
	for (int v = 0; v < VALUE_COUNT; v++)
		cr_expect_eq(a->values[v].name, b->values[v].name); /* the same static text, or none */
	expect_same_text(a, b);
}

/* Records the stream and expects what is read back to be what the aggregator has. */
static void expect_round_trip(const struct stream *s, const struct aggregator_options *options, bool pack,
                              uint32_t stacks_max)
{
	struct profile *live, *back;
	struct made m;

	start(&m, options, pack, stacks_max);
	stream_feed(s, m.aggregator);
	finish(&m);
	cr_assert_eq(aggregator_profile(m.aggregator, &live), 0);
	back = read_back(&m, &(struct builder_options){0});
	expect_same(live, back);
	profile_free(live);
	profile_free(back);
	release(&m);
}

/* Two processes, threads that are renamed and end, all states, recursion, an empty stack, losses, a program that is exec'd. */
static void fill(struct stream *s, unsigned rounds)
{
	const uint64_t lost[LOSS_CAUSES] = {[LOSS_TORN] = 3, [LOSS_GONE] = 1};
	struct frame frames[40];
	uint32_t seed = 1;

	s->interval_ns = NS_PER_MS;
	s->now_ns = 5 * NS_PER_S;
	stream_target(s, 1, 100, "python3 a.py");
	stream_target(s, 9, 200, "python3 b.py \xe2\x82\xac");
	stream_thread(s, 3, 1, 100, THREAD_MAIN, NULL);
	stream_thread(s, 4, 1, 101, 0, "worker");
	stream_thread_of(s, 7, 9, 2, 200, THREAD_MAIN, "MainThread");
	for (uint32_t i = 1; i <= 30; i++) {
		char name[32];

		snprintf(name, sizeof(name), "f%u", i);
		stream_symbol(s, i, name, i % 3 ? "/srv/app.py" : "/srv/lib/\xf0\x9f\x94\xa5.py", 10 * i);
	}
	stream_special(s, 31, "<GC>");
	for (unsigned round = 0; round < rounds; round++) {
		static const uint32_t threads[] = {3, 4, 3, 7, 4};
		uint32_t depth, count;

		seed = seed * 1664525 + 1013904223;
		depth = (seed >> 20) % 39;
		count = (seed >> 9) % 3 ? 1 : (seed >> 11) % 90 + 1;
		for (uint32_t i = 0; i < depth; i++)
			frames[i] = stream_frame((i * 7 + (seed >> 24) % 3) % 30 + 1,
			                         10 * i + (i + 2 > depth ? seed >> 30 : 0));
		if (depth && seed >> 29 == 0)
			frames[depth - 1] = stream_special_frame(31);
		s->now_ns += count * NS_PER_MS + (seed >> 4) % 250000;
		stream_stack(s, threads[round % 5], (uint16_t)(1u << (seed >> 17) % 7), count, frames, depth);
		if (round % 7 == 5)
			stream_time(s, threads[round % 5], seed >> 8, seed >> 12);
		if (round % 50 == 20)
			stream_facts(s, 1, lost);
		if (round == 70)
			stream_thread(s, 3, 1, 100, THREAD_MAIN, "MainThread");
		if (round == 90)
			stream_target_event(s, 9, TARGET_EXECED, 200);
	}
	stream_thread(s, 4, 1, 101, THREAD_ENDED, NULL);
	stream_target_event(s, 9, TARGET_EXITED, 200);
	stream_facts(s, 1, lost);
	stream_facts(s, 9, NULL);
}

static const struct aggregator_options everything = {.idle = true, .interval_ns = NS_PER_MS};

Test(recording, crc32c_is_castagnoli)
{
	cr_assert_eq(crc32c(0, "123456789", 9), 0xe3069283u, "the check value of RFC 3720's sum");
	cr_assert_eq(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283u);
	cr_assert_eq(crc32c(0, "", 0), 0u);
}

Test(recording, head_and_session_are_these_bytes)
{
	/* 1 ms in 8 units of 125,000 ns; RECORDING.md, by hand. */
	static const unsigned char session[] = {
		9 + 2, 0,    0,    /* so many bytes of items, none of stacks and times */
		1,     9,          /* SESSION, its length */
		0xc8,  0xd0, 0x07, /* 125,000 */
		0xc0,  0x84, 0x3d, /* 1,000,000 */
		8,     1,          /* cpu */
		20,                /* +10 */
	};
	const struct recording_options options = {.interval_ns = NS_PER_MS, .mode = MODE_CPU, .realtime_offset_ns = 10};
	int fd = memfd_create("recording", MFD_CLOEXEC);
	struct recording_writer *writer;
	unsigned char data[256];

	cr_assert_eq(recording_writer_new(&writer, fd, &options), 0);
	cr_assert_eq(pread(fd, data, sizeof(data), 0), 16 + 12 + (ssize_t)sizeof(session), "it is in the file at once");
	cr_assert_arr_eq(data, "\x89SMPL\r\n\x1a\2\0\0\0", 12);
	cr_assert_arr_eq(data + 16, "\1\0\0\0\x0e\0\0\0", 8);
	cr_assert_arr_eq(data + 28, session, sizeof(session));
	recording_writer_free(writer);
	close(fd);
}

Test(recording, reads_back_what_was_sampled)
{
	struct stream s = {0};

	fill(&s, 400);
	expect_round_trip(&s, &everything, false, 0);
	expect_round_trip(&s, &everything, true, 0);
	stream_release(&s);
}

Test(recording, tables_that_begin_anew_lose_nothing)
{
	struct stream s = {0};

	fill(&s, 400);
	expect_round_trip(&s, &everything, true, 64);
	stream_release(&s);
}

/* Nodes have what the session's have, not only threads; and a part of the time has its part of it. */
Test(recording, cpu_time_is_where_it_was)
{
	const struct frame a[] = {stream_frame(1, 11), stream_frame(2, 21)}, b[] = {stream_frame(1, 11), stream_frame(2, 22)};
	struct stream s = {.interval_ns = NS_PER_MS, .now_ns = NS_PER_S};
	struct profile *live, *back, *part;
	struct made m;

	stream_target(&s, 1, 100, "python3");
	stream_thread(&s, 1, 1, 100, THREAD_MAIN, NULL);
	stream_symbol(&s, 1, "f", "a.py", 10);
	stream_symbol(&s, 2, "g", "a.py", 20);
	for (unsigned i = 0; i < 100; i++) {
		s.now_ns += 7 * NS_PER_MS;
		stream_stack(&s, 1, STATUS_RUNNABLE, 7, a, 2);
		s.now_ns += 3 * NS_PER_MS;
		stream_stack(&s, 1, STATUS_RUNNABLE, 3, b, 2);
		stream_time(&s, 1, 9 * NS_PER_MS + 1, NS_PER_MS);
	}
	start(&m, &everything, true, 0);
	stream_feed(&s, m.aggregator);
	finish(&m);
	cr_assert_eq(aggregator_profile(m.aggregator, &live), 0);
	back = read_back(&m, &(struct builder_options){0});
	part = read_back(&m, &(struct builder_options){.from_ns = 500 * NS_PER_MS, .to_ns = 600 * NS_PER_MS});
	cr_assert_eq(live->threads[0].node_count, 4);
	for (uint32_t i = 0; i < 4; i++)
		for (int v = VALUE_CPU; v < VALUE_COUNT; v++)
			cr_expect_eq(live->threads[0].nodes[i].self[v], back->threads[0].nodes[i].self[v]);
	cr_expect_eq(profile_sum(back, VALUE_CPU), 100 * (9 * NS_PER_MS + 1));
	cr_expect(profile_has(part, VALUE_CPU));
	cr_expect_eq(profile_sum(part, VALUE_CPU) / (NS_PER_MS / 10), 900, "%lu", profile_sum(part, VALUE_CPU));
	profile_free(live);
	profile_free(back);
	profile_free(part);
	release(&m);
	stream_release(&s);
}

Test(recording, empty_ones)
{
	struct stream s = {0};

	expect_round_trip(&s, &everything, true, 0);
	stream_target(&s, 1, 100, "python3");
	expect_round_trip(&s, &everything, true, 0);
	stream_release(&s);
}

Test(recording, what_options_leave_out_is_counted_alike)
{
	struct aggregator_options options = everything;
	const struct thread_filter filter = {.name = "MainThread"};
	struct stream s = {0};
	regex_t regex;

	fill(&s, 400);
	options.idle = false;
	expect_round_trip(&s, &options, true, 0);
	options.mode = MODE_GIL;
	expect_round_trip(&s, &options, true, 0);
	options = everything;
	options.threads = &filter;
	options.thread_filter_count = 1;
	expect_round_trip(&s, &options, true, 0);
	options = everything;
	cr_assert_eq(regcomp(&regex, "lib", REG_EXTENDED | REG_NOSUB), 0);
	options.omit = &regex;
	expect_round_trip(&s, &options, true, 0);
	options.omit = NULL;
	options.stop = &regex;
	expect_round_trip(&s, &options, true, 64);
	regfree(&regex);
	stream_release(&s);
}

Test(recording, forgotten_symbols_come_back_under_other_ids)
{
	const struct frame before[] = {stream_frame(1, 11), stream_frame(2, 21)},
			   after[] = {stream_frame(3, 11), stream_frame(4, 21)};
	struct stream s = {.interval_ns = NS_PER_MS, .now_ns = NS_PER_S};

	stream_target(&s, 1, 100, "python3");
	stream_thread(&s, 1, 1, 100, THREAD_MAIN, NULL);
	stream_symbol(&s, 1, "f", "a.py", 10);
	stream_symbol(&s, 2, "g", "a.py", 20);
	stream_stack(&s, 1, STATUS_RUNNABLE, 3, before, 2);
	stream_forget(&s, 1);
	stream_forget(&s, 2);
	stream_symbol(&s, 3, "f", "a.py", 10);
	stream_symbol(&s, 4, "g", "a.py", 20);
	s.now_ns += 5 * NS_PER_MS;
	stream_stack(&s, 1, STATUS_RUNNABLE, 4, after, 2);
	stream_facts(&s, 1, NULL);
	expect_round_trip(&s, &everything, true, 0);
	stream_release(&s);
}

Test(recording, ended_threads_are_folded_alike)
{
	struct stream s = {.interval_ns = NS_PER_MS, .now_ns = NS_PER_S};
	struct frame frame = stream_frame(1, 11);

	stream_target(&s, 1, 100, "python3");
	stream_symbol(&s, 1, "f", "a.py", 10);
	for (uint32_t i = 1; i <= 1500; i++) {
		stream_thread(&s, i, 1, 100 + i, 0, "t");
		s.now_ns += 2 * NS_PER_MS;
		stream_stack(&s, i, STATUS_RUNNABLE, 1, &frame, i % 2);
		stream_thread(&s, i, 1, 100 + i, THREAD_ENDED, NULL);
	}
	stream_facts(&s, 1, NULL);
	struct made m;
	struct profile *live, *back;

	start(&m, &everything, true, 0);
	stream_feed(&s, m.aggregator);
	finish(&m);
	cr_assert_eq(aggregator_profile(m.aggregator, &live), 0);
	back = read_back(&m, &(struct builder_options){0});
	cr_assert_lt(live->thread_count, 1500u);
	cr_assert_eq(live->thread_count, back->thread_count);
	expect_same_text(live, back);
	profile_free(live);
	profile_free(back);
	release(&m);
	stream_release(&s);
}

Test(recording, runs_are_in_order_and_of_the_same_time)
{
	struct stream s = {0};
	struct profile *back;
	uint64_t samples = 0;
	struct made m;

	fill(&s, 300);
	start(&m, &everything, true, 0);
	stream_feed(&s, m.aggregator);
	finish(&m);
	back = read_back(&m, &(struct builder_options){.runs = true});
	cr_assert(back->has_runs);
	for (uint32_t i = 0; i < back->thread_count; i++)
		for (size_t j = 0; j < back->threads[i].run_count; j++) {
			const struct run *run = &back->threads[i].runs[j];

			samples += run->count;
			cr_assert(j == 0 || run[-1].t_first_ns <= run->t_first_ns);
			cr_assert_geq(run->t_first_ns, back->t_start_ns);
			cr_assert_leq(run->t_first_ns + run->span_ns, back->t_end_ns);
			/* Even distances were written: each is right to a unit of 1953 ns. */
			cr_assert_leq(run->span_ns, (run->count - 1) * NS_PER_MS + 1953);
			cr_assert_geq(run->span_ns + 1953u, (run->count - 1) * NS_PER_MS);
		}
	cr_assert_eq(samples, profile_sum(back, VALUE_SAMPLES));
	profile_free(back);
	release(&m);
	stream_release(&s);
}

Test(recording, a_mark_reads_back_as_the_snapshot)
{
	struct profile *live, *back;
	const struct rec_head *record;
	struct stream s = {0};
	struct fault fault;
	struct made m;
	size_t at = 0;

	fill(&s, 200);
	stream_mark(&s, 1);
	start(&m, &everything, true, 0);
	while ((record = stream_next(&s, &at)))
		cr_assert_eq(aggregator_feed(m.aggregator, record), 0);
	cr_assert_eq(aggregator_profile(m.aggregator, &live), 0);
	cr_assert_eq(live->sequence, 1u);
	load_bytes(&m); /* the writer goes on */
	cr_assert_eq(read_bytes(m.data, m.bytes, &(struct builder_options){0}, 1, &back, &fault), 0, "%s", fault.why);
	expect_same(live, back);
	profile_free(live);
	profile_free(back);
	cr_assert_eq(read_bytes(m.data, m.bytes, &(struct builder_options){0}, 2, &back, &fault), -EPROTO,
	             "there is no such mark");
	release(&m);
	stream_release(&s);
}

Test(recording, windows_of_time)
{
	struct frame frame = stream_frame(1, 11);
	struct stream s = {.interval_ns = NS_PER_MS, .now_ns = NS_PER_S + 999 * NS_PER_MS};
	struct builder_options window = {.from_ns = 200 * NS_PER_MS, .to_ns = 300 * NS_PER_MS};
	struct profile *back;
	struct made m;

	stream_target(&s, 1, 100, "python3");
	stream_thread(&s, 1, 1, 100, THREAD_MAIN, NULL);
	stream_symbol(&s, 1, "f", "a.py", 10);
	stream_stack(&s, 1, STATUS_RUNNABLE, 1000, &frame, 1); /* from 1 s on, one each ms */
	stream_facts(&s, 1, NULL);
	start(&m, &everything, true, 0);
	stream_feed(&s, m.aggregator);
	finish(&m);
	back = read_back(&m, &window);
	cr_assert_eq(profile_sum(back, VALUE_SAMPLES), 100u);
	cr_assert_eq(back->filtered, 0u, "the accounting is the window's");
	cr_assert_eq(back->processes[0].facts.samples, 100u);
	cr_assert_eq(back->t_start_ns, NS_PER_S + 200 * NS_PER_MS);
	cr_assert_eq(back->t_end_ns, NS_PER_S + 300 * NS_PER_MS);
	profile_free(back);
	release(&m);
	stream_release(&s);
}

static void facts_of_time(struct stream *s, uint64_t unsampled_ns)
{
	struct rec_facts *facts;
	size_t at = s->bytes.bytes;

	stream_facts(s, 1, NULL);
	facts = (struct rec_facts *)(s->bytes.data + at);
	facts->unsampled_ns = unsampled_ns;
	facts->t_start_ns = NS_PER_S;
	facts->t_last_ns = facts->t_last_ns ? facts->t_last_ns : NS_PER_S;
}

Test(recording, a_window_from_the_beginning_holds_what_was_before_the_first_sample)
{
	struct frame frame = stream_frame(1, 11);
	struct stream s = {.interval_ns = NS_PER_MS, .now_ns = NS_PER_S};
	struct builder_options window = {.to_ns = NS_PER_S};
	struct profile *back;
	struct made m;

	stream_target(&s, 1, 100, "python3");
	facts_of_time(&s, 15 * NS_PER_MS);
	stream_thread(&s, 1, 1, 100, THREAD_MAIN, NULL);
	stream_symbol(&s, 1, "f", "a.py", 10);
	stream_stack(&s, 1, STATUS_RUNNABLE, 10, &frame, 1);
	facts_of_time(&s, 20 * NS_PER_MS);
	start(&m, &everything, true, 0);
	stream_feed(&s, m.aggregator);
	finish(&m);
	back = read_back(&m, &window);
	cr_assert_eq(back->processes[0].facts.unsampled_ns, 20 * NS_PER_MS);
	profile_free(back);
	release(&m);
	stream_release(&s);
}

/* A recording of several blocks: each mark closes one. */
static void make_blocks(struct made *m, bool pack)
{
	const struct rec_head *record;
	struct stream s = {0};
	size_t at = 0;
	unsigned n = 0;

	fill(&s, 60);
	start(m, &everything, pack, 0);
	while ((record = stream_next(&s, &at))) {
		struct rec_mark mark = {
			.head = {.bytes = sizeof(mark), .type = REC_MARK}, .sequence = ++n, .t_ns = s.now_ns};

		cr_assert_eq(aggregator_feed(m->aggregator, record), 0);
		if (n % 12 == 0 || at == s.bytes.bytes)
			cr_assert_eq(aggregator_feed(m->aggregator, &mark.head), 0);
	}
	finish(m);
	stream_release(&s);
}

static void cut_everywhere(bool pack)
{
	uint64_t all, before = 0;
	struct profile *back;
	struct fault fault;
	struct made m;
	unsigned steps = 0;

	make_blocks(&m, pack);
	back = read_back(&m, &(struct builder_options){0});
	all = profile_sum(back, VALUE_SAMPLES);
	profile_free(back);
	for (size_t bytes = 0; bytes < m.bytes; bytes++) {
		int err = read_bytes(m.data, bytes, &(struct builder_options){0}, 0, &back, &fault);
		uint64_t samples;

		cr_assert_neq(fault.why[0], '\0', "it is said of %zu of %zu bytes", bytes, m.bytes);
		cr_assert_eq(err, bytes < RECORDING_HEAD_BYTES ? -EPROTO : 0, "%zu bytes", bytes);
		if (err)
			continue;
		samples = profile_sum(back, VALUE_SAMPLES);
		cr_assert_geq(samples, before, "what was closed stays");
		cr_assert_leq(samples, all);
		steps += samples > before;
		before = samples;
		cr_assert_eq(back->note_count, 1u);
		profile_free(back);
	}
	cr_assert_geq(steps, 5u, "block by block");
	cr_assert_eq(before, all, "the last block may lack its end only");
	release(&m);
}

Test(recording, cut_at_every_byte)
{
	cut_everywhere(false);
	cut_everywhere(true);
}

Test(recording, any_byte_flipped_is_found)
{
	struct profile *back;
	struct fault fault;
	uint64_t all;
	struct made m;

	make_blocks(&m, true);
	back = read_back(&m, &(struct builder_options){0});
	all = profile_sum(back, VALUE_SAMPLES);
	profile_free(back);
	for (size_t at = 0; at < m.bytes; at++) {
		int err;

		m.data[at] ^= 0x10;
		err = read_bytes(m.data, m.bytes, &(struct builder_options){0}, 0, &back, &fault);
		cr_assert_neq(fault.why[0], '\0', "byte %zu", at);
		if (err) {
			cr_assert_eq(err, -EPROTO, "byte %zu: %s", at, fault.why);
		} else {
			cr_assert_leq(profile_sum(back, VALUE_SAMPLES), all, "byte %zu", at);
			cr_assert_not_null(strstr(fault.why, at < 16 ? "head" : "block"), "%s", fault.why);
			profile_free(back);
		}
		m.data[at] ^= 0x10;
	}
	release(&m);
}

/* Writes a block with these columns as a valid one, behind a head and a session. */
static int read_crafted_profile(const unsigned char *items, size_t item_bytes, const char *stacks, size_t stack_bytes,
                                struct profile **ret_profile, struct fault *fault)
{
	static const unsigned char session[] = {1, 7, 1, 100, 100, 0, 0, 0, 0};
	unsigned char data[512] = RECORDING_MAGIC "\1\0\0\0", *at = data + 16;
	uint32_t crc;

	crc = crc32c(0, data, 12);
	memcpy(data + 12, &crc, 4);
	for (int block = 0; block < 2; block++) {
		unsigned char *body = at + 12;
		uint32_t bytes;

		*at = 1;
		if (block == 0) {
			memcpy(body, "\x09\0\0", 3);
			memcpy(body + 3, session, sizeof(session));
			bytes = 3 + sizeof(session);
		} else {
			body[0] = (unsigned char)item_bytes;
			memcpy(body + 3, items, item_bytes);
			memcpy(body + 3 + item_bytes, stacks, stack_bytes);
			body[1] = (unsigned char)stack_bytes;
			bytes = (uint32_t)(3 + item_bytes + stack_bytes);
		}
		memcpy(at + 4, &bytes, 4);
		crc = crc32c(crc32c(0, at, 8), body, bytes);
		memcpy(at + 8, &crc, 4);
		at = body + bytes;
	}
	return read_bytes((const char *)data, (size_t)(at - data), &(struct builder_options){0}, 0, ret_profile, fault);
}

static int read_crafted(const unsigned char *items, size_t item_bytes, const char *stacks, size_t stack_bytes,
                        struct fault *fault)
{
	struct profile *profile;
	int err = read_crafted_profile(items, item_bytes, stacks, stack_bytes, &profile, fault);

	profile_free(profile);
	return err;
}

/* A thread's last stack, and where its stacks are in its tree, go with a RESET; a thread that came anew is no exception. */
Test(recording, a_reset_forgets_stacks)
{
	static const unsigned char items[] = {
		8,    1, 5,                                     /* CLOCK */
		4,    8, 0, 0,  0, 1, 0,   0, 0, 0,             /* TARGET 0 */
		5,    7, 0, 8,  0, 0, 1,   0, 0,                /* THREAD 0, new */
		2,    7, 0, 0,  1, 1, 'f', 0, 0,                /* SYMBOL 1 */
		3,    3, 1, 2,  0,                              /* STACK 1 */
		0xf2, 0, 0,                                     /* a run of thread 0 on stack 1 */
		5,    7, 0, 8,  0, 0, 1,   0, 0,                /* THREAD 0, new again */
		0xf2, 0, 0,                                     /* a run on stack 1 */
		11,   0,                                        /* RESET */
		0x82,                                           /* a run on the last stack */
		2,    7, 0, 0,  1, 1, 'g', 0, 0, 3, 3, 1, 2, 0, /* SYMBOL 1, STACK 1 */
		0xf2, 0, 0, 12, 0,                              /* a run on it; END */
	};
	struct profile *profile;
	struct fault fault;

	cr_assert_eq(read_crafted_profile(items, sizeof(items), "\1\1\1", 3, &profile, &fault), 0, "%s", fault.why);
	cr_assert_str_empty(fault.why);
	cr_assert_eq(profile->thread_count, 2u);
	cr_assert_eq(profile->threads[1].nodes[0].self[VALUE_SAMPLES], 1u, "on no stack");
	cr_assert_eq(profile->threads[1].node_count, 3u);
	cr_assert_str_eq(profile->symbols[profile->threads[1].nodes[1].symbol].name, "f");
	cr_assert_str_eq(profile->symbols[profile->threads[1].nodes[2].symbol].name, "g");
	for (uint32_t i = 1; i < 3; i++)
		cr_assert_eq(profile->threads[1].nodes[i].self[VALUE_SAMPLES], 1u);
	profile_free(profile);
}

Test(recording, nonsense_with_a_right_sum_is_refused)
{
	static const struct {
		const char *items;
		size_t bytes;
	} bad[] = {
		{"\x80", 1},                                              /* a run of no thread */
		{"\xff\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12}, /* a number without end */
		{"\x03\x03\x01\x02\x00", 5},                              /* a stack of no symbol */
		{"\x03\x03\x05\x02\x00", 5},                              /* … on no stack */
		{"\x02\x05\x00\x00\x01\x7f"
	         "a",
	         7},                                              /* a name longer than its item */
		{"\x02\x7f", 2},                                  /* an item longer than its block */
		{"\x02\x05\x00\x00\x01\x00\x09", 7},              /* a file of which there are none */
		{"\x05\x07\x00\x08\x00\x00\x00\x00\x00", 9},      /* a thread of no process */
		{"\x04\x08\x09\x01\x00\x00\x00\x00\x00\x00", 10}, /* process 9 where 0 comes first */
		{"\x06\x02\x00\x01", 4},                          /* facts of no process */
		{"\x07\x06\xff\xff\xff\xff\x7f\x00", 8},          /* more fields than bytes */
		{"\x01\x07\x01\x64\x64\x00\x00\x00\x00", 9},      /* a second session */
	};
	struct fault fault;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_expect_eq(read_crafted((const unsigned char *)bad[i].items, bad[i].bytes, "", 0, &fault), -EPROTO,
		             "case %zu", i);
		cr_expect_str_eq(fault.why, "block 2, at byte 40, is damaged");
	}
	cr_expect_eq(read_crafted((const unsigned char *)"\x7e\x02\x01\x02", 4, "", 0, &fault), 0,
	             "an item of a later version is passed over");
}

Test(recording, a_full_disk_keeps_what_was_written)
{
	struct stream s = {0};
	const struct rec_head *record;
	struct profile *back;
	struct fault fault;
	struct made m;
	size_t at = 0;

	fill(&s, 200);
	stream_mark(&s, 1);
	start(&m, &everything, true, 0);
	stream_feed(&s, m.aggregator);
	/* No write to it any more: the descriptor becomes one that can only be read. */
	load_bytes(&m);
	close(m.fd);
	m.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	stream_mark(&s, 2);
	for (size_t i = 0; i < 2; i++)
		for (at = 0; (record = stream_next(&s, &at));)
			if (record->type == REC_MARK || record->type == REC_STACK)
				take(&m, record, &(struct record_fate){.counted = true});
	cr_assert_eq(recording_writer_error(m.writer), -EBADF);
	cr_assert_eq(recording_writer_finish(m.writer, &(struct tally){0}), -EBADF);
	cr_assert_eq(read_bytes(m.data, m.bytes, &(struct builder_options){0}, 0, &back, &fault), 0);
	cr_assert_neq(profile_sum(back, VALUE_SAMPLES), 0u);
	profile_free(back);
	release(&m);
	stream_release(&s);
}

Test(recording, opens_files_only)
{
	char folder[] = "/tmp/sampled-recording-XXXXXX", path[128], link_path[128];
	struct fault fault;
	struct stat stat;
	int fd;

	cr_assert_not_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/a.sampled", folder);
	snprintf(link_path, sizeof(link_path), "%s/link", folder);
	cr_assert_eq(recording_open(&fd, path, &fault), 0);
	cr_assert_eq(fstat(fd, &stat), 0);
	cr_assert_eq(stat.st_mode & 0777, 0600u);
	cr_assert_eq(write(fd, "old", 3), 3);
	close(fd);
	cr_assert_eq(recording_open(&fd, path, &fault), 0);
	cr_assert_eq(lseek(fd, 0, SEEK_END), 0, "it begins anew");
	close(fd);
	cr_assert_eq(symlink("a.sampled", link_path), 0);
	cr_assert_eq(recording_open(&fd, link_path, &fault), -ELOOP);
	cr_assert_eq(recording_open(&fd, folder, &fault), -EISDIR);
	cr_assert_eq(recording_open(&fd, "/dev/null", &fault), -EINVAL);
	unlink(link_path);
	unlink(path);
	rmdir(folder);
}

/* More stacks than the writer's table holds: it begins anew, and what was numbered before is numbered again. */
Test(recording, a_profile_of_more_stacks_than_fit_the_table)
{
	enum { NODES = 300000, RUNS = 2 * NODES };
	static struct writer to;
	struct made m = {.fd = memfd_create("recording", MFD_CLOEXEC)};
	struct builder_options options = {.runs = true};
	struct profile *profile, *back;
	struct builder *b;
	uint32_t symbol, thread, parent;

	cr_assert_eq(builder_new(&b, &options), 0);
	for (uint32_t i = 0; i < VALUE_COUNT; i++)
		builder_value(b, profile_value_types[i].name, profile_value_types[i].unit, (enum value_index)i);
	builder_process(b, &(struct process){.pid = 1, .name = (char[]){"p"}});
	thread = builder_thread(b, &(struct thread_tree){.tid = 1});
	symbol = builder_symbol(b, "f", 1, "a.py", 4, 1, FRAME_PYTHON, 0);
	parent = builder_child(b, thread, 0, symbol, 1);
	for (uint32_t i = 0; i < RUNS; i++)
		builder_run(b, thread, builder_child(b, thread, parent, symbol, 2 + i % NODES),
		            NS_PER_S + i * (uint64_t)NS_PER_MS, NS_PER_S + i * (uint64_t)NS_PER_MS, 1, NS_PER_MS,
		            STATUS_GIL);
	cr_assert_eq(builder_finish(b, &profile), 0);
	builder_free(b);
	writer_open_fd(&to, m.fd);
	cr_assert_eq(recording_write(profile, &(struct export_options){0}, &to), 0);
	cr_assert_eq(writer_close(&to, NULL), 0);
	load_bytes(&m);
	back = read_back(&m, &options);
	cr_assert_eq(back->threads[0].node_count, NODES + 2u);
	cr_assert_eq(back->threads[0].run_count, (size_t)RUNS);
	for (uint32_t i = 0; i < RUNS; i++) {
		const struct node *node = &back->threads[0].nodes[back->threads[0].runs[i].node];

		cr_assert(node->line == 2 + i % NODES && back->threads[0].nodes[node->parent].line == 1, "run %u", i);
	}
	profile_free(profile);
	profile_free(back);
	close(m.fd);
	free(m.data);
}

/* A profile of one run on f, of this kind, in the thread 1 of process 1; with all of our values, if weight_ns is not 0. */
static struct profile *profile_of_run(uint8_t kind, uint64_t interval_ns, uint64_t t_first_ns, uint64_t t_last_ns,
                                      uint64_t count, uint64_t weight_ns)
{
	struct builder_options options = {.runs = true};
	struct profile *profile;
	struct builder *b;
	uint32_t thread;

	cr_assert_eq(builder_new(&b, &options), 0);
	for (uint32_t i = 0; i < VALUE_COUNT && weight_ns; i++)
		builder_value(b, profile_value_types[i].name, profile_value_types[i].unit, (enum value_index)i);
	builder_process(b, &(struct process){.pid = 1, .name = (char[]){"p"}});
	builder_profile(b)->interval_ns = interval_ns;
	thread = builder_thread(b, &(struct thread_tree){.tid = 1});
	for (int i = 0; i < 2; i++)
		builder_run(b, thread, builder_child(b, thread, 0, builder_symbol(b, "f", 1, "a", 1, 1, kind, 0), 1),
		            i ? t_last_ns : t_first_ns, i ? t_last_ns : t_first_ns, count, weight_ns, 0);
	cr_assert_eq(builder_finish(b, &profile), 0);
	builder_free(b);
	return profile;
}

/* Writes the profile, which is freed, as a recording, and reads it back; NULL: it could not be written, and *ret_err says why. */
static struct profile *write_and_read(struct profile *profile, int *ret_err)
{
	static struct writer to;
	struct made m = {.fd = memfd_create("recording", MFD_CLOEXEC)};
	struct profile *back = NULL;

	writer_open_fd(&to, m.fd);
	*ret_err = recording_write(profile, &(struct export_options){0}, &to);
	writer_close(&to, &(struct fault){0});
	load_bytes(&m);
	if (!*ret_err)
		back = read_back(&m, &(struct builder_options){.runs = true});
	profile_free(profile);
	close(m.fd);
	free(m.data);
	return back;
}

Test(recording, imports_come_back)
{
	const uint64_t day_ns = 86400 * NS_PER_S;
	struct profile *back;
	int err;

	back = write_and_read(profile_of_run(FRAME_NATIVE, 0, NS_PER_S, 2 * NS_PER_S, 1, NS_PER_MS), &err);
	cr_assert_eq(back->symbols[back->threads[0].nodes[1].symbol].kind, FRAME_NATIVE);
	cr_assert_eq(profile_sum(back, VALUE_WALL), 2 * (uint64_t)NS_PER_MS);
	profile_free(back);
	back = write_and_read(profile_of_run(FRAME_NATIVE, 0, NS_PER_S, 2 * NS_PER_S, 3, 0), &err);
	cr_assert_eq(profile_sum(back, VALUE_SAMPLES), 6u);
	cr_assert_eq(profile_weight(back), VALUE_SAMPLES, "shares are of what is there");
	profile_free(back);
	back = write_and_read(profile_of_run(FRAME_PYTHON, day_ns, NS_PER_S, 9 * day_ns, 1 << 20, day_ns), &err);
	cr_assert_eq(back->interval_ns, day_ns);
	cr_assert_eq(profile_sum(back, VALUE_SAMPLES), UINT64_C(2) << 20);
	cr_assert_eq(back->threads[0].t_last_ns, 9 * day_ns);
	profile_free(back);
	back = write_and_read(profile_of_run(FRAME_PYTHON, 10 * NS_PER_S, NS_PER_S, 11 * NS_PER_S, 1, 10 * NS_PER_S),
	                      &err);
	cr_assert_eq(profile_sum(back, VALUE_WALL), 20 * NS_PER_S, "a run's weight is not cut at 2^32 ns");
	cr_assert_eq(back->threads[0].runs[1].weight_ns, 10 * NS_PER_S);
	profile_free(back);
}

Test(recording, times_that_do_not_fit_are_no_recording)
{
	int err;

	cr_assert_null(write_and_read(profile_of_run(FRAME_PYTHON, 1, 1, UINT64_C(1) << 62, 1, 1), &err));
	cr_assert_eq(err, -ERANGE);
	cr_assert_null(write_and_read(profile_of_run(FRAME_PYTHON, 1, UINT64_C(1) << 63, 1, 1, 1), &err));
	cr_assert_eq(err, -ERANGE);
	for (int bits = 57; bits < 64; bits += 6) {
		cr_assert_null(write_and_read(profile_of_run(FRAME_PYTHON, 1, 1, 2, 1, UINT64_C(1) << bits), &err));
		cr_assert_eq(err, -ERANGE);
	}
}
