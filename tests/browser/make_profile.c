/* SPDX-License-Identifier: Apache-2.0 */
/* Writes profiles for the tests of formats: make_profile KIND OUT [SOURCE]. No sampling: what is in them is known.
 * SOURCE is a file whose lines a frame of the hostile profile names. OUT's suffix says the format, or FORMAT=NAME in the environment. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporters/difference.h"
#include "exporters/format.h"
#include "tests/unit/build_profile.h"

enum { HELD = STATUS_RUNNABLE | STATUS_GIL };

/* What a page must show as text: nothing here may run, close an element or reorder its neighbours. */
static const char *const hostile[] = {
	"</script><script>window.hacked=1</script>",
	"<!--<script>",
	"<img src=x onerror=window.hacked=1>",
	"a\xe2\x80\xa8"
	"b\xe2\x80\xa9"
	"c",
	"\xe2\x80\xae"
	"gnihtyna",
	"'\"`${window.hacked=1}\\",
	"@DATA@",
	"\xe5\x87\xbd\xe6\x95\xb0\xf0\x9f\x94\xa5",
	"__proto__",
	"constructor",
};

/* A small program's profile with the four states, a hostile part, and a frame at line 4 of the source. */
static void make_hostile(struct profile *p, const char *source)
{
	uint32_t process = built_process(p, (int32_t)getpid(), "python3 server.py --name=</title><b>bold");
	uint32_t main_thread = built_thread(p, process, 0, (uint64_t)getpid(), "MainThread");
	uint32_t worker = built_thread(p, process, 0, 4712, "worker </option><script>window.hacked=1</script>");
	uint32_t nameless = built_thread(p, process, 2, 4713, NULL);
	uint32_t serve = built_symbol(p, "serve", "/srv/app/server.py", 10),
		 handle = built_symbol(p, "Handler.handle", "/srv/app/server.py", 40);
	uint32_t dumps = built_symbol(p, "dumps", "/usr/lib/python3.12/json/__init__.py", 183);
	uint32_t encode = built_symbol(p, "JSONEncoder.iterencode", "/usr/lib/python3.12/json/encoder.py", 205);
	uint32_t match = built_symbol(p, "Pattern.match", "/srv/venv/lib/python3.12/site-packages/regex/core.py", 77);
	uint32_t sleeping = built_symbol(p, "pause", "/srv/app/server.py", 90), gc = built_symbol(p, "<GC>", "", 0);
	uint32_t fib = built_symbol(p, "fib", "/srv/app/work.py", 3),
		 import = built_symbol(p, "_find_and_load", "<frozen importlib._bootstrap>", 1349);
	char path[4096];
	uint32_t at, top;

	top = built_child(p, main_thread, 0, serve, 21);
	at = built_child(p, main_thread, top, handle, 48);
	built_sample(p, main_thread, at, 140, HELD);
	built_sample(p, main_thread,
	             built_child(p, main_thread, built_child(p, main_thread, at, dumps, 231), encode, 221), 900, HELD);
	built_sample(p, main_thread,
	             built_child(p, main_thread, built_child(p, main_thread, at, dumps, 238), encode, 257), 260,
	             STATUS_GIL_WAIT);
	built_sample(p, main_thread, built_child(p, main_thread, at, match, 80), 700, HELD);
	built_sample(p, main_thread, built_child(p, main_thread, at, match, 95), 310, STATUS_RUNNABLE);
	built_sample(p, main_thread, built_child(p, main_thread, at, gc, 0), 120, HELD | STATUS_GC);
	built_sample(p, main_thread, built_child(p, main_thread, top, sleeping, 91), 1500, STATUS_IDLE);
	built_sample(p, main_thread, built_child(p, main_thread, top, import, 1360), 90, STATUS_UNKNOWN);

	at = built_child(p, worker, 0, serve, 25);
	for (uint32_t depth = 0; depth < 14; depth++) {
		at = built_child(p, worker, at, fib, 5);
		built_sample(p, worker, at, 40 + 9 * depth, depth % 3 ? HELD : STATUS_GIL_WAIT);
	}
	top = built_child(p, worker, 0, serve, 29);
	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		uint32_t symbol = built_symbol(p, hostile[i], i % 2 ? "/srv/<evil>&.py" : hostile[i], 7);

		built_sample(p, worker, built_child(p, worker, top, symbol, (uint32_t)i + 1), 300 - 20 * i,
		             STATUS_RUNNABLE);
	}
	if (source && realpath(source, path)) {
		uint32_t symbol = built_symbol(p, "has_source", path, 2);

		built_sample(p, nameless, built_child(p, nameless, 0, symbol, 4), 800, STATUS_IDLE);
	}
	built_sample(p, nameless, 0, 200, STATUS_IDLE); /* no Python frame */
	for (uint32_t i = 0; i < 3000; i++) {           /* below the drawing threshold on any screen */
		char name[32];

		snprintf(name, sizeof(name), "tiny_%" PRIu32, i);
		at = built_child(p, nameless, 0, built_symbol(p, name, "/srv/app/tiny.py", i), i);
		built_short_sample(p, nameless, at, 20000);
	}
	p->processes[process].facts.lost[LOSS_TORN] = 7;
	p->processes[process].facts.attempts += 7;
	p->processes[process].facts.ticks_late = 12;
}

/* A tree of random branching in ten threads, the same on each run. */
static void make_large(struct profile *p, uint32_t nodes)
{
	uint32_t process = built_process(p, 5000, "python3 large.py"), symbols[4000], seed = 12345;

	for (uint32_t i = 0; i < 4000; i++) {
		char name[64], file[96];

		snprintf(name, sizeof(name), "Class%" PRIu32 ".method_%" PRIu32, i / 20, i);
		snprintf(file, sizeof(file),
		         "/srv/venv/lib/python3.12/site-packages/package%" PRIu32 "/module%" PRIu32 ".py", i % 40,
		         i % 300);
		symbols[i] = built_symbol(p, name, file, i % 900 + 1);
	}
	for (uint32_t t = 0; t < 10; t++) {
		uint32_t thread = built_thread(p, process, 0, 5000 + t, "pool"), path[41] = {0}, depth = 0;

		while (p->threads[thread].node_count < nodes / 10) {
			seed = seed * 1664525 + 1013904223;
			depth = depth < 40 && (seed >> 16) % 8 ? depth + 1 : (seed >> 20) % (depth + 1);
			if (depth == 0)
				continue;
			path[depth] = built_child(p, thread, path[depth - 1], symbols[(seed >> 8) % 4000],
			                          (seed >> 10) % 900 + 1);
			built_sample(p, thread, path[depth], (seed >> 24) % 5 + 1, 1u << (seed >> 13) % 5);
		}
	}
}

static void make_deep(struct profile *p, uint32_t depth)
{
	uint32_t process = built_process(p, 6000, "python3 deep.py"),
		 thread = built_thread(p, process, 0, 6000, "MainThread"), at = 0;
	uint32_t symbol = built_symbol(p, "recurse", "/srv/deep.py", 1);

	for (uint32_t i = 0; i < depth; i++) {
		at = built_child(p, thread, at, symbol, 2);
		if (i % 4 == 0)
			built_sample(p, thread, at, 1, HELD);
	}
}

static void make_one(struct profile *p)
{
	uint32_t thread = built_thread(p, built_process(p, 7000, "python3 one.py"), 0, 7000, "MainThread");

	built_sample(p, thread, built_child(p, thread, 0, built_symbol(p, "only", "/srv/one.py", 1), 2), 1, HELD);
}

/* C between Python frames and above them: named with and without a source, inlined, and places that have no name. */
static void make_native(struct profile *p)
{
	static const char zlib[] = "/usr/lib/x86_64-linux-gnu/libz.so.1.2.13",
			  id[] = "00ff4a5b6c7d8e9f00112233445566778899aabb";
	uint32_t thread = built_thread(p, built_process(p, 7100, "python3 native.py"), 0, 7100, "MainThread");
	uint32_t pack = built_symbol(p, "pack", "/srv/native.py", 1), key = built_symbol(p, "key", "/srv/native.py", 9);
	uint32_t deflate = built_native(p, "deflate", "zlib/deflate.c", 763, zlib, id);
	uint32_t match = built_native(p, "longest_match", "zlib/deflate.c", 1200, zlib, id);
	uint32_t crc = built_native(p, "crc32", "", 0, zlib, id),
		 sort = built_native(p, "std::sort<char*>(char*, char*)", "", 0, "/srv/_fast.so", "");
	uint32_t place = built_mapping(p, "/usr/lib/libc.so.6", "ab12"), jit = built_mapping(p, "", "");
	uint32_t top = built_child(p, thread, 0, pack, 3), at;

	built_sample(p, thread, top, 50, HELD);
	at = built_child(p, thread, top, deflate, 800);
	built_sample(p, thread, built_child(p, thread, at, match, 1234), 400, STATUS_RUNNABLE);
	built_sample(p, thread, built_child(p, thread, top, crc, 0), 200, STATUS_RUNNABLE);
	at = built_child(p, thread, built_child(p, thread, top, sort, 0), key, 10);
	built_sample(p, thread, at, 100, HELD);
	built_sample(p, thread, built_child(p, thread, at, place, 0x1234), 70, HELD);
	built_sample(p, thread, built_child(p, thread, at, place, 0x9876), 30, HELD);
	built_sample(p, thread, built_child(p, thread, top, jit, 0x40), 20, HELD);
	p->processes[0].facts.native = 820;
	p->processes[0].facts.native_mismatched = 5;
	p->processes[0].facts.stops = p->processes[0].facts.stop_bins[20] = 820;
	p->processes[0].facts.stop_ns = 28000000;
	p->processes[0].facts.stop_max_ns = 37000;
}

/* What an import may be: values of names and units of its own, no states, no sampling facts, a note. */
static void make_imported(struct profile *p)
{
	static struct note notes[] = {{"skipped_records",
	                               (char *)(uintptr_t) "records skipped <img src=x onerror=window.hacked=1>", 3,
	                               true}};
	uint32_t process = built_process(p, 0, ""), thread = built_thread(p, process, 0, 0, "</script>thread"), top, at;

	p->values[VALUE_WALL] = (struct value_type){"alloc</script><b>", "bytes"};
	p->values[VALUE_RUNNABLE] = (struct value_type){"objects", "widgets<i>"};
	for (int v = VALUE_GIL; v < VALUE_COUNT; v++)
		p->values[v] = (struct value_type){0};
	top = built_child(p, thread, 0, built_symbol(p, "load", "/srv/data.py", 0), 5);
	at = built_child(p, thread, top, built_symbol(p, "grow", "/srv/data.py", 0), 9);
	p->threads[thread].nodes[top].self[VALUE_SAMPLES] = 2;
	p->threads[thread].nodes[top].self[VALUE_WALL] = 1024;
	p->threads[thread].nodes[at].self[VALUE_SAMPLES] = 6;
	p->threads[thread].nodes[at].self[VALUE_WALL] = 3072;
	p->threads[thread].nodes[at].self[VALUE_RUNNABLE] = 12;
	p->processes[process].version = 0;
	p->processes[process].facts = (struct rec_facts){0};
	p->imported = true;
	p->has_runs = false;
	p->mode = NULL;
	p->interval_ns = p->t_start_ns = p->t_end_ns = p->wall_start_ns = 0;
	p->notes = notes;
	p->note_count = 1;
}

/* As a database of the Ascend profiler is read: a frame's file is its category. */
static void make_ascend(struct profile *p)
{
	static const char *const names[][2] = {{"job.py(3): step", "<python>"},
	                                       {"aten::add", "<python_framework>"},
	                                       {"aclnnAdd", "<cann>"},
	                                       {"mystery", "<unknown>"}};
	uint32_t thread = built_thread(p, built_process(p, 10, ""), 0, 10, ""), at = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		at = built_child(p, thread, at, built_symbol(p, names[i][0], names[i][1], 0), 0);
		p->threads[thread].nodes[at].self[VALUE_SAMPLES] = 1;
		p->threads[thread].nodes[at].self[VALUE_WALL] = 1000;
	}
	for (int v = VALUE_RUNNABLE; v < VALUE_COUNT; v++)
		p->values[v] = (struct value_type){0};
	p->imported = true;
	p->has_runs = false;
}

/* One side of a comparison: of 1,000 or 2,000 samples. Numbers of threads and first lines are others on each side, as in two runs. */
static struct profile *make_side(bool after)
{
	struct profile *p = built_new();
	uint32_t tid = after ? 9100 : 9000, moved = after ? 7 : 0;
	uint32_t process = built_process(p, (int32_t)tid, "python3 job.py"),
		 thread = built_thread(p, process, 0, tid, "MainThread");
	uint32_t top = built_child(p, thread, 0, built_symbol(p, "main", "/srv/job.py", 50 + moved), 55 + moved), at;

	at = built_child(p, thread, top, built_symbol(p, "parse", "/srv/job.py", 10 + moved), 12 + moved);
	built_sample(p, thread, at, after ? 900 : 400, HELD);
	at = built_child(p, thread, top, built_symbol(p, "steady", "/srv/job.py", 20 + moved), 21 + moved);
	built_sample(p, thread, at, after ? 600 : 300, HELD);
	at = built_child(p, thread, top,
	                 built_symbol(p, after ? "</script>new" : "vanished", "/srv/job.py", 30 + moved), 31 + moved);
	built_sample(p, thread, at, after ? 500 : 300, STATUS_RUNNABLE);
	p->processes[process].facts.lost[LOSS_TORN] = after ? 9 : 0;
	p->processes[process].facts.attempts += after ? 9 : 0;
	return p;
}

/* Two profiles in one file, as `sampled diff` writes it. */
static int write_compared(const struct format *format, struct writer *to)
{
	struct profile *sides[SIDES] = {[BEFORE] = make_side(false), [AFTER] = make_side(true)}, *joined = NULL;
	static struct facts facts[SIDES];
	struct difference difference;
	struct comparison comparison = {.titles = {"before.sampled", "after.sampled"},
	                                .facts = {&facts[BEFORE], &facts[AFTER]},
	                                .difference = &difference};

	difference_init(&difference);
	difference.ranking = difference_ranking(sides[BEFORE], sides[AFTER], false);
	for (int side = 0; side < SIDES; side++) {
		facts_make(&facts[side], sides[side]);
		difference_add_profile(&difference, (enum side)side, sides[side]);
	}
	difference_finish(&difference);
	difference_sort(&difference, DIFFERENCE_SELF);
	if (difference.err || difference_join(&joined, &comparison, sides[BEFORE], sides[AFTER]))
		abort();
	format_write(format, joined, &(struct export_options){.comparison = &comparison}, to);
	difference_release(&difference);
	profile_free(joined);
	built_free(sides[BEFORE]);
	built_free(sides[AFTER]);
	return to->err;
}

int main(int argc, char **argv)
{
	static struct writer to;
	struct export_options options = {.sources = &built_sources};
	struct profile *profile = built_new();
	struct fault fault;

	if (argc < 3) {
		fprintf(stderr, "usage: make_profile "
		                "hostile|timed|large|huge|deep|deep2000|one|native|empty|imported|ascend|compared "
		                "OUT [SOURCE]\n");
		return 2;
	}
	if (strcmp(argv[1], "hostile") == 0)
		make_hostile(profile, argc > 3 ? argv[3] : NULL);
	else if (strcmp(argv[1], "timed") == 0) {
		make_hostile(profile, NULL);
		built_cpu_time(profile);
	} else if (strcmp(argv[1], "large") == 0)
		make_large(profile, 100000);
	else if (strcmp(argv[1], "huge") == 0)
		make_large(profile, 200000);
	else if (strcmp(argv[1], "deep") == 0)
		make_deep(profile, 16384);
	else if (strcmp(argv[1], "deep2000") == 0)
		make_deep(profile, 2000);
	else if (strcmp(argv[1], "one") == 0)
		make_one(profile);
	else if (strcmp(argv[1], "native") == 0)
		make_native(profile);
	else if (strcmp(argv[1], "imported") == 0)
		make_imported(profile);
	else if (strcmp(argv[1], "ascend") == 0)
		make_ascend(profile);
	if (writer_open(&to, argv[2], &fault) == 0) {
		const char *name = getenv("FORMAT");
		const struct format *format = name ? format_by_name(name) : format_by_suffix(argv[2]);

		format = format ? format : format_by_name("flamegraph");
		if (strcmp(argv[1], "compared") == 0)
			write_compared(format, &to);
		else
			format_write(format, profile, &options, &to);
		writer_close(&to, &fault);
	}
	built_free(profile);
	if (to.err)
		fprintf(stderr, "make_profile: cannot write %s: %s\n", argv[2], fault.why);
	return to.err != 0;
}
