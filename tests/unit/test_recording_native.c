/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of native frames: mappings, and what places in them are called, are read back as they were. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "aggregator/named.h"
#include "aggregator/transform.h"
#include "exporters/formats.h"
#include "exporters/recording.h"
#include "tests/unit/stream.h"

#define ZLIB_ID "00ff4a5b6c7d8e9f00112233445566778899aabb"

enum { MAIN = 1, ZLIB, JIT };

struct made {
	struct aggregator *aggregator;
	struct recording_writer *writer;
	int fd;
};

static void take(void *context, const struct rec_head *record, const struct record_fate *fate)
{
	struct made *m = context;
	struct tally tally;

	aggregator_tally(m->aggregator, &tally);
	recording_writer_take(m->writer, record, fate, &tally);
}

/* 0x10 is folded, 0x20 two frames, 0x30 one; others have no names. */
static size_t name(void *calls, const struct profile *p, const struct node *node, struct named_frame *to, size_t room)
{
	const struct named_frame like = {.file = "zlib.c",
	                                 .first_line = 10,
	                                 .line = node->line + 7,
	                                 .kind = FRAME_NATIVE,
	                                 .module = "/usr/lib/libz.so.1",
	                                 .build_id = ZLIB_ID};

	++*(unsigned *)calls;
	cr_assert(p->symbols[node->symbol].mapped);
	cr_assert_geq(room, 2);
	to[0] = to[1] = like;
	to[0].name = "deflate";
	to[1].name = "longest_match";
	return node->line == 0x10 ? 0 : node->line == 0x20 ? 2 : node->line == 0x30 ? 1 : FRAMES_SAME;
}

/* Records a stream of native frames, so that tables begin anew now and then, and reads it back. */
static struct profile *record(struct profile **ret_before, bool names, uint32_t stacks_max)
{
	static const uint32_t places[] = {0x10, 0x20, 0x30, 0x40, 0x20};
	static struct input in;
	struct recording_options how = {.interval_ns = 1000000, .pack = true, .stacks_max = stacks_max};
	struct aggregator_options options = {.idle = true, .interval_ns = 1000000, .on_record = take};
	struct stream s = {0};
	struct made m = {.fd = memfd_create("recording", MFD_CLOEXEC)};
	struct builder *builder;
	struct profile *after;
	struct fault fault = {0};
	struct tally tally;
	unsigned calls = 0;
	char path[64];

	options.on_record_context = &m;
	cr_assert_eq(aggregator_new(&m.aggregator, &options), 0);
	cr_assert_eq(recording_writer_new(&m.writer, m.fd, &how), 0);
	stream_target(&s, 1, 42, "python");
	stream_thread(&s, 1, 1, 42, THREAD_MAIN, "main");
	stream_symbol(&s, MAIN, "main", "/app.py", 3);
	stream_mapping(&s, ZLIB, 0, "/usr/lib/libz.so.1", ZLIB_ID);
	stream_mapping(&s, JIT, MAPPING_MEMORY, "", "");
	for (uint32_t i = 0; i < 50; i++) {
		const struct frame stack[] = {stream_frame(MAIN, 5), stream_native(ZLIB, places[i % 5]),
		                              stream_native(i & 1 ? ZLIB : JIT, places[i % 4])};

		s.now_ns = 1000000000 + i * UINT64_C(1000000);
		stream_stack(&s, 1, STATUS_RUNNABLE, 1, stack, 3);
	}
	stream_facts(&s, 1, NULL);
	cr_assert_eq(stream_feed(&s, m.aggregator), 0);
	cr_assert_eq(aggregator_profile(m.aggregator, ret_before), 0);
	if (names)
		recording_writer_names(m.writer, *ret_before, name, &calls);
	cr_assert(!names || calls == 6, "each place is asked for once: %u", calls);
	aggregator_tally(m.aggregator, &tally);
	cr_assert_eq(recording_writer_finish(m.writer, &tally), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", m.fd);
	cr_assert_eq(builder_new(&builder, &(struct builder_options){.runs = true}), 0);
	cr_assert_eq(input_open(&in, path, &fault), 0);
	cr_assert_eq(recording_read(&in, builder, &fault), 0, "%s", fault.why);
	cr_assert_str_empty(fault.why);
	input_close(&in);
	cr_assert_eq(builder_finish(builder, &after), 0);
	builder_free(builder);
	recording_writer_free(m.writer);
	aggregator_free(m.aggregator);
	stream_release(&s);
	close(m.fd);
	return after;
}

static void expect_same_symbol(const struct symbol *a, const struct symbol *b)
{
	cr_assert_str_eq(a->name, b->name);
	cr_assert_str_eq(a->file, b->file);
	cr_assert_str_eq(a->module, b->module);
	cr_assert_str_eq(a->build_id, b->build_id);
	cr_assert_eq(a->mapped, b->mapped);
	cr_assert_eq(a->mapped_from, b->mapped_from);
	cr_assert_eq(a->mapped_to, b->mapped_to);
	cr_assert_eq(a->first_line, b->first_line);
	cr_assert_eq(a->kind, b->kind);
	cr_assert_eq(a->flags, b->flags);
}

/* Nodes come in the order of their first sample in both. */
static void expect_same(const struct profile *a, const struct profile *b)
{
	cr_assert_eq(a->threads[0].node_count, b->threads[0].node_count);
	for (uint32_t n = 1; n < a->threads[0].node_count; n++) {
		const struct node *x = &a->threads[0].nodes[n], *y = &b->threads[0].nodes[n];

		cr_assert_eq(x->parent, y->parent);
		cr_assert_eq(x->line, y->line, "node %u", n);
		cr_assert_eq(memcmp(x->self, y->self, sizeof(x->self)), 0);
		expect_same_symbol(&a->symbols[x->symbol], &b->symbols[y->symbol]);
	}
}

Test(recording_native, mappings_are_read_back)
{
	struct profile *before, *after = record(&before, false, 0);

	expect_same(before, after);
	cr_assert_null(after->named);
	profile_free(before);
	profile_free(after);
	after = record(&before, false, 8); /* tables begin anew all the time */
	expect_same(before, after);
	profile_free(before);
	profile_free(after);
}

Test(recording_native, names_are_read_back)
{
	struct profile *before, *after = record(&before, true, 0);
	unsigned calls = 0;

	expect_same(before, after);
	cr_assert_not_null(after->named);
	cr_assert_eq(profile_name(&before, name, &calls), 0);
	cr_assert_eq(profile_name(&after, named_of_profile, NULL), 0);
	expect_same(before, after);
	cr_assert_eq(after->threads[0].run_count, 50);
	profile_free(before);
	profile_free(after);
}

/* A profile's own recording, as convert writes it. */
static struct profile *through_format(const struct profile *profile)
{
	static struct writer w;
	static struct input in;
	struct fault fault = {0};
	struct builder *builder;
	struct profile *after;
	int fd = memfd_create("profile", MFD_CLOEXEC);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	writer_open_fd(&w, dup(fd));
	cr_assert_eq(recording_write(profile, &(struct export_options){0}, &w), 0);
	cr_assert_eq(writer_close(&w, &fault), 0, "%s", fault.why);
	cr_assert_eq(builder_new(&builder, &(struct builder_options){.runs = true}), 0);
	cr_assert_eq(input_open(&in, path, &fault), 0);
	cr_assert_eq(recording_read(&in, builder, &fault), 0, "%s", fault.why);
	input_close(&in);
	cr_assert_eq(builder_finish(builder, &after), 0);
	builder_free(builder);
	close(fd);
	return after;
}

Test(recording_native, profiles_are_written_with_what_they_have)
{
	struct profile *before, *first = record(&before, true, 0), *second = through_format(first);

	profile_free(before);
	expect_same(first, second);
	cr_assert_not_null(second->named, "names that were not applied yet go along");
	cr_assert_eq(profile_name(&second, named_of_profile, NULL), 0);
	profile_free(first);
	first = through_format(second);
	expect_same(first, second);
	cr_assert_null(first->named);
	profile_free(first);
	profile_free(second);
}
