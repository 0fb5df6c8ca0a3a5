/* SPDX-License-Identifier: Apache-2.0 */
/* Native frames behind the ring: mappings as symbols, and what their places become when they are named. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/history.h"
#include "aggregator/named.h"
#include "aggregator/transform.h"
#include "tests/unit/stream.h"

#define ZLIB_ID "00ff4a5b6c7d8e9f00112233445566778899aabb"

static struct stream s;

enum { MAIN = 1, ZLIB, OTHER_ZLIB, LIBC, JIT };

static void setup(void)
{
	s = (struct stream){0};
	stream_target(&s, 1, 42, "python");
	stream_thread(&s, 1, 1, 42, THREAD_MAIN, "main");
	stream_symbol(&s, MAIN, "main", "/app.py", 3);
	stream_mapping(&s, ZLIB, 0, "/usr/lib/libz.so.1", ZLIB_ID);
}

static void teardown(void)
{
	stream_release(&s);
}

TestSuite(native, .init = setup, .fini = teardown);

static const struct symbol *find(const struct profile *p, const char *name)
{
	for (uint32_t i = 0; i < p->symbol_count; i++)
		if (strcmp(p->symbols[i].name, name) == 0)
			return &p->symbols[i];
	return NULL;
}

Test(native, a_mapping_is_a_symbol)
{
	const struct frame stack[] = {stream_frame(MAIN, 5), stream_native(ZLIB, 0x1234), stream_native(ZLIB, 0x2000)};
	const struct symbol *symbol;
	const struct node *leaf;
	struct profile *p;

	stream_stack(&s, 1, STATUS_RUNNABLE, 7, stack, 3);
	p = stream_profile(&s, NULL);
	cr_assert_eq(p->malformed_records, 0);
	cr_assert_eq(p->threads[0].node_count, 4);
	leaf = &p->threads[0].nodes[3];
	symbol = &p->symbols[leaf->symbol];
	cr_assert_eq(leaf->self[VALUE_SAMPLES], 7);
	cr_assert_eq(leaf->line, 0x2000);
	cr_assert_eq(p->threads[0].nodes[2].line, 0x1234);
	cr_assert(symbol->mapped && symbol->kind == FRAME_NATIVE);
	cr_assert_str_eq(symbol->name, "libz.so.1");
	cr_assert_str_eq(symbol->module, "/usr/lib/libz.so.1");
	cr_assert_str_eq(symbol->build_id, ZLIB_ID);
	cr_assert_str_eq(symbol->file, "");
	cr_assert_eq(symbol->mapped_from, 0x1000);
	cr_assert_eq(symbol->mapped_to, 0x11000);
	cr_assert_str_eq(p->symbols[p->threads[0].nodes[1].symbol].module, "");
	profile_free(p);
}

Test(native, mappings_are_known_by_content)
{
	struct frame stack[] = {stream_native(ZLIB, 1), stream_native(OTHER_ZLIB, 1), stream_native(LIBC, 1),
	                        stream_native(JIT, 1)};
	struct profile *p;

	stream_mapping(&s, OTHER_ZLIB, 0, "/usr/lib/libz.so.1", ZLIB_ID); /* another inode, but the same build */
	stream_mapping(&s, LIBC, MAPPING_SYSTEM, "/usr/lib/libz.so.1", "");
	stream_mapping(&s, JIT, MAPPING_MEMORY, "", "");
	for (size_t i = 0; i < 4; i++)
		stream_stack(&s, 1, 0, 1, &stack[i], 1);
	p = stream_profile(&s, NULL);
	cr_assert_eq(p->malformed_records, 0);
	cr_assert_eq(p->threads[0].node_count, 4);
	cr_assert_eq(p->threads[0].nodes[1].self[VALUE_SAMPLES], 2);
	cr_assert_str_eq(find(p, "[memory]")->module, "");
	cr_assert_eq(find(p, "[memory]")->flags, MAPPING_MEMORY);
	cr_assert_eq(find(p, "[memory]")->mapped_to, 0);
	profile_free(p);
}

Test(native, a_forgotten_mapping_comes_back)
{
	const struct frame first = stream_native(ZLIB, 9), second = stream_native(OTHER_ZLIB, 9);
	struct profile *p;

	stream_stack(&s, 1, 0, 1, &first, 1);
	stream_stack(&s, 1, 0, 1, NULL, 0);
	stream_forget(&s, ZLIB);
	stream_mapping(&s, OTHER_ZLIB, 0, "/usr/lib/libz.so.1", ZLIB_ID);
	stream_stack(&s, 1, 0, 1, &second, 1);
	p = stream_profile(&s, NULL);
	cr_assert_eq(p->malformed_records, 0);
	cr_assert_eq(p->threads[0].nodes[1].self[VALUE_SAMPLES], 2);
	profile_free(p);
}

/* A mapping's record that its test makes wrong. */
static struct rec_mapping *mapping(void)
{
	static union {
		struct rec_mapping record;
		char room[sizeof(struct rec_mapping) + 64];
	} u;

	memset(&u, 0, sizeof(u));
	u.record = (struct rec_mapping){.head = {.bytes = rec_round(sizeof(u.record) + 9), .type = REC_MAPPING},
	                                .id = 9,
	                                .path_bytes = 5,
	                                .build_id_bytes = 4,
	                                .start = 4096,
	                                .end = 8192};
	memcpy(u.room + sizeof(u.record), "/lib\x01\x00\xff\x02\x03", 9);
	return &u.record;
}

Test(native, hostile_mappings_are_left_out)
{
	static const struct {
		size_t off;
		uint32_t value;
	} wrong[] = {
		{offsetof(struct rec_mapping, id), 0},
		{offsetof(struct rec_mapping, id), 1u << 30},
		{offsetof(struct rec_mapping, flags), 256},
		{offsetof(struct rec_mapping, path_bytes), 6 + 8},
		{offsetof(struct rec_mapping, path_bytes), UINT32_MAX},
		{offsetof(struct rec_mapping, path_bytes), 8}, /* a NUL in it */
		{offsetof(struct rec_mapping, build_id_bytes), BUILD_ID_MAX + 1},
		{offsetof(struct rec_mapping, build_id_bytes), UINT32_MAX - 4},
		{offsetof(struct rec_mapping, end), 4096},
		{offsetof(struct rec_head, bytes), sizeof(struct rec_mapping) - 8},
	};
	struct aggregator *aggregator;
	struct history *history;

	cr_assert_eq(aggregator_new(&aggregator, &(struct aggregator_options){0}), 0);
	cr_assert_eq(history_new(&history, &(struct history_options){0}), 0);
	cr_assert_eq(aggregator_feed(aggregator, &mapping()->head), 0);
	cr_assert_eq(aggregator_feed(aggregator, &mapping()->head), -EPROTO, "the id is in use");
	cr_assert_eq(history_feed(history, &mapping()->head), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct rec_mapping *record = mapping();

		record->id = 10;
		memcpy((char *)record + wrong[i].off, &wrong[i].value, sizeof(wrong[i].value));
		cr_assert_eq(aggregator_feed(aggregator, &record->head), -EPROTO, "case %zu", i);
		cr_assert_eq(history_feed(history, &record->head), -EPROTO, "case %zu", i);
	}
	aggregator_free(aggregator);
	history_free(history);
}

Test(native, frames_and_symbols_must_be_of_a_kind)
{
	const struct frame good = stream_native(ZLIB, 1), python = stream_frame(ZLIB, 1),
			   native = stream_native(MAIN, 1), unknown = stream_native(77, 1);
	struct profile *p;

	stream_stack(&s, 1, 0, 1, &python, 1);
	stream_stack(&s, 1, 0, 1, &native, 1);
	stream_stack(&s, 1, 0, 1, &unknown, 1);
	stream_stack(&s, 1, 0, 1, &good, 1);
	p = stream_profile(&s, NULL);
	cr_assert_eq(p->malformed_records, 3);
	cr_assert_eq(p->malformed_samples, 3);
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 1);
	profile_free(p);
}

Test(native, omit_and_stop_look_at_the_module)
{
	const struct frame stack[] = {stream_frame(MAIN, 5), stream_native(ZLIB, 0x1234)};
	regex_t regex;
	struct profile *p;

	cr_assert_eq(regcomp(&regex, "usr/lib/libz", REG_EXTENDED | REG_NOSUB), 0);
	stream_stack(&s, 1, 0, 2, stack, 2);
	p = stream_profile(&s, &(struct aggregator_options){.idle = true, .omit = &regex});
	cr_assert_eq(p->omitted, 2);
	profile_free(p);
	p = stream_profile(&s, &(struct aggregator_options){.idle = true, .stop = &regex});
	cr_assert_eq(p->threads[0].node_count, 2);
	cr_assert(p->symbols[p->threads[0].nodes[1].symbol].mapped);
	profile_free(p);
	regfree(&regex);
}

Test(native, the_history_keeps_them)
{
	const struct frame stack[] = {stream_frame(MAIN, 5), stream_native(ZLIB, 0x1234)};
	const struct rec_head *record;
	const struct symbol *symbol;
	struct history *history;
	struct rec_facts *facts;
	struct profile *p;
	size_t at = 0;

	stream_stack(&s, 1, 0, 3, stack, 2);
	stream_facts(&s, 1, NULL);
	facts = (struct rec_facts *)(s.bytes.data + s.bytes.bytes - sizeof(*facts));
	facts->native = 2;
	facts->native_mismatched = 1;
	facts->stops = facts->stop_bins[20] = 2;
	facts->eintr_risk = 1;
	facts->stop_ns = 70000;
	facts->stop_max_ns = 36000;
	stream_mark(&s, 1);
	cr_assert_eq(history_new(&history, &(struct history_options){0}), 0);
	while ((record = stream_next(&s, &at)))
		cr_assert_eq(history_feed(history, record), 0);
	cr_assert_eq(history_close_slice(history, s.now_ns), 0);
	cr_assert_eq(history_profile(history, &(struct history_query){0}, &p), 0);
	symbol = find(p, "libz.so.1");
	cr_assert(symbol && symbol->mapped);
	cr_assert_str_eq(symbol->build_id, ZLIB_ID);
	cr_assert_eq(symbol->mapped_to, 0x11000);
	cr_assert_eq(p->threads[0].nodes[p->threads[0].node_count - 1].line, 0x1234);
	facts = &p->processes[0].facts;
	cr_assert_eq(facts->native, 2);
	cr_assert_eq(facts->native_mismatched, 1);
	cr_assert_eq(facts->stops, 2);
	cr_assert_eq(facts->eintr_risk, 1);
	cr_assert_eq(facts->stop_ns, 70000);
	cr_assert_eq(facts->stop_max_ns + facts->stop_bins[20], 0, "not kept by slice");
	profile_free(p);
	history_free(history);
}

/* --- names --- */

/* By the place: 0x10 is folded, 0x20 two frames (one inlined into the other), 0x30 the same function as the outer of these, 0x40 unknown; and so for
 * the rest, which are a function each. */
static size_t name(void *calls, const struct profile *p, const struct node *node, struct named_frame *to, size_t room)
{
	const struct named_frame like = {
		.file = "zlib.c", .kind = FRAME_NATIVE, .module = "/usr/lib/libz.so.1", .build_id = ZLIB_ID};

	++*(unsigned *)calls;
	cr_assert_eq(room, NAMED_FRAMES_MAX);
	cr_assert_eq(p->symbols[node->symbol].kind, FRAME_NATIVE);
	to[0] = to[1] = like;
	to[0].name = "deflate";
	to[0].first_line = 10;
	to[0].line = node->line;
	to[1].name = "longest_match";
	to[1].line = 99;
	return node->line == 0x10 ? 0 : node->line == 0x20 ? 2 : node->line == 0x30 ? 1 : FRAMES_SAME;
}

static uint64_t sums[VALUE_COUNT];

static void note_sums(const struct profile *p)
{
	for (int v = 0; v < VALUE_COUNT; v++)
		sums[v] = profile_sum(p, (enum value_index)v);
}

static void expect_sums(const struct profile *p)
{
	for (int v = 0; v < VALUE_COUNT; v++)
		cr_assert_eq(profile_sum(p, (enum value_index)v), sums[v], "value %d", v);
}

/* The samples whose innermost frames, innermost first, are these names. */
static uint64_t samples_at(const struct profile *p, const char *const *names)
{
	uint64_t samples = 0;

	for (uint32_t n = 0; n < p->threads[0].node_count; n++) {
		const struct node *nodes = p->threads[0].nodes;
		uint32_t at = n;
		size_t i = 0;

		while (at && names[i] && strcmp(p->symbols[nodes[at].symbol].name, names[i]) == 0) {
			at = nodes[at].parent;
			i++;
		}
		if (!at && !names[i])
			samples += nodes[n].self[VALUE_SAMPLES];
	}
	return samples;
}

#define STACK(...) ((const char *const[]){__VA_ARGS__, NULL})

Test(native, frames_become_others)
{
	const struct frame folded[] = {stream_frame(MAIN, 5), stream_native(ZLIB, 0x10), stream_frame(MAIN, 6)},
			   twice[] = {stream_frame(MAIN, 5), stream_native(ZLIB, 0x20), stream_native(ZLIB, 0x20)},
			   plain[] = {stream_native(ZLIB, 0x10), stream_native(ZLIB, 0x30), stream_native(ZLIB, 0x40)},
			   only[] = {stream_native(ZLIB, 0x10), stream_native(ZLIB, 0x10)};
	unsigned calls = 0;
	struct profile *p;

	stream_stack(&s, 1, STATUS_RUNNABLE, 1, folded, 3);
	stream_stack(&s, 1, STATUS_GIL, 2, folded, 2);
	stream_stack(&s, 1, STATUS_RUNNABLE | STATUS_GIL, 4, twice, 3);
	stream_stack(&s, 1, STATUS_IDLE, 8, twice, 2);
	stream_stack(&s, 1, STATUS_GIL_WAIT, 16, plain, 3);
	stream_stack(&s, 1, STATUS_EXCEPTION, 32, plain, 2);
	stream_stack(&s, 1, STATUS_GC, 64, only, 2);
	stream_stack(&s, 1, 0, 128, NULL, 0);
	p = stream_profile(&s, NULL);
	cr_assert_eq(p->malformed_records, 0);
	note_sums(p);
	cr_assert_eq(profile_name(&p, name, &calls), 0);
	expect_sums(p);
	cr_assert_eq(samples_at(p, STACK("main", "main")), 1);
	cr_assert_eq(samples_at(p, STACK("main")), 2);
	cr_assert_eq(samples_at(p, STACK("longest_match", "deflate", "longest_match", "deflate", "main")), 4,
	             "inlined twice, in a recursion");
	cr_assert_eq(samples_at(p, STACK("longest_match", "deflate", "main")), 8);
	cr_assert_eq(samples_at(p, STACK("libz.so.1", "deflate")), 16);
	cr_assert_eq(samples_at(p, STACK("deflate")), 32);
	cr_assert_eq(p->threads[0].nodes[0].self[VALUE_SAMPLES], 64 + 128, "nothing is left of the stack");
	cr_assert_str_eq(find(p, "deflate")->build_id, ZLIB_ID);
	cr_assert_eq(p->threads[0].depth_max, 5);
	cr_assert(find(p, "libz.so.1")->mapped);
	cr_assert_leq(calls, 8, "each node is asked for once");
	profile_free(p);
}

Test(native, runs_follow_their_nodes)
{
	struct builder_options options = {.runs = true};
	const struct symbol lib = {
		.name = "lib", .file = "", .module = "/lib", .build_id = "", .kind = FRAME_NATIVE, .mapped = true};
	uint32_t thread, symbol, folded, named;
	struct thread_tree like = {.tid = 1};
	unsigned calls = 0;
	struct builder *b;
	struct profile *p;

	cr_assert_eq(builder_new(&b, &options), 0);
	for (int v = 0; v < VALUE_COUNT; v++)
		builder_value(b, profile_value_types[v].name, profile_value_types[v].unit, (enum value_index)v);
	builder_process(b, &(struct process){.pid = 1});
	thread = builder_thread(b, &like);
	symbol = builder_symbol_like(b, &lib);
	folded = builder_child(b, thread, 0, symbol, 0x10);
	named = builder_child(b, thread, folded, symbol, 0x20);
	builder_run(b, thread, named, 100, 100, 1, 10, STATUS_RUNNABLE);
	builder_run(b, thread, folded, 110, 120, 2, 20, 0);
	builder_run(b, thread, 0, 130, 130, 1, 10, 0);
	cr_assert_eq(builder_finish(b, &p), 0);
	builder_free(b);
	note_sums(p);
	cr_assert_eq(profile_name(&p, name, &calls), 0);
	expect_sums(p);
	cr_assert(p->has_runs);
	cr_assert_eq(p->threads[0].run_count, 3);
	cr_assert_str_eq(p->symbols[p->threads[0].nodes[p->threads[0].runs[0].node].symbol].name, "longest_match");
	cr_assert_eq(p->threads[0].runs[1].node, 0);
	cr_assert_eq(p->threads[0].runs[1].count, 2);
	cr_assert_eq(p->threads[0].runs[1].weight_ns, 20);
	profile_free(p);
}

Test(native, a_profile_brings_names)
{
	const struct named_frame frames[] = {
		{.name = "outer", .file = "a.c", .line = 3, .kind = FRAME_NATIVE, .module = "/lib", .build_id = "ab"},
		{.name = "inner", .file = "a.c", .line = 4, .kind = FRAME_NATIVE, .module = "/lib", .build_id = "ab"}};
	struct named_frame found[NAMED_FRAMES_MAX];
	struct named *table = NULL;

	cr_assert_eq(named_find(NULL, 1, 2, found, NAMED_FRAMES_MAX), FRAMES_SAME);
	cr_assert_eq(named_add(&table, 1, 2, frames, 2), 0);
	cr_assert_eq(named_add(&table, 1, 3, frames, 0), 0);
	cr_assert_eq(named_add(&table, 2, 2, frames + 1, 1), 0);
	cr_assert_eq(named_add(&table, 1, 2, NULL, 0), 0, "the first one holds");
	cr_assert_eq(named_find(table, 1, 2, found, NAMED_FRAMES_MAX), 2);
	cr_assert_str_eq(found[0].name, "outer");
	cr_assert_str_eq(found[1].name, "inner");
	cr_assert_str_eq(found[1].module, "/lib");
	cr_assert_eq(found[1].line, 4);
	cr_assert_eq(named_find(table, 1, 3, found, NAMED_FRAMES_MAX), 0);
	cr_assert_eq(named_find(table, 2, 2, found, 0), 0);
	cr_assert_eq(named_find(table, 3, 2, found, NAMED_FRAMES_MAX), FRAMES_SAME);
	named_free(table);
	named_free(NULL);
}

Test(native, names_go_with_merges_and_filters)
{
	const struct symbol lib = {
		.name = "lib", .file = "", .module = "/lib", .build_id = "ab", .kind = FRAME_NATIVE, .mapped = true};
	const struct named_frame frame = {
		.name = "f", .file = "", .kind = FRAME_NATIVE, .module = "/lib", .build_id = "ab"};
	struct thread_tree like = {.tid = 1};
	uint64_t values[VALUE_COUNT] = {[VALUE_SAMPLES] = 5};
	struct builder *b, *to;
	uint32_t symbol;
	struct profile *p, *merged;

	cr_assert_eq(builder_new(&b, &(struct builder_options){0}), 0);
	cr_assert_eq(builder_new(&to, &(struct builder_options){0}), 0);
	builder_symbol(to, "other", 5, "", 0, 0, FRAME_PYTHON, 0); /* other numbers there */
	builder_process(b, &(struct process){.pid = 1});
	builder_thread(b, &like);
	symbol = builder_symbol_like(b, &lib);
	builder_add(b, 0, builder_child(b, 0, 0, symbol, 0x99), values);
	builder_named(b, symbol, 0x99, &frame, 1);
	builder_named(b, 77, 0x99, &frame, 1);
	cr_assert_eq(builder_finish(b, &p), 0);
	cr_assert_eq(transform_add(to, p, &(struct transform){.by_function = true}), 0);
	cr_assert_eq(builder_finish(to, &merged), 0);
	cr_assert_eq(merged->threads[0].nodes[1].line, 0x99, "a place is no line");
	cr_assert_eq(profile_name(&merged, named_of_profile, NULL), 0);
	cr_assert_eq(samples_at(merged, STACK("f")), 5);
	builder_free(b);
	builder_free(to);
	profile_free(p);
	profile_free(merged);
}
