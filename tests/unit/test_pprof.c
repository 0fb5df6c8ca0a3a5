/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exporters/format.h"
#include "exporters/formats.h"
#include "exporters/pprof.h"
#include "exporters/protobuf.h"
#include "tests/unit/build_profile.h"

static struct input in;
static struct fault fault;

/* --- helpers --- */

/* The file as it lies on disk, packed. */
static struct buf packed(const struct profile *p)
{
	static struct writer to;
	int fd = memfd_create("pprof", MFD_CLOEXEC);
	struct buf file = {0};

	writer_open_fd(&to, fd);
	cr_assert_eq(format_write(format_by_name("pprof"), p, &(struct export_options){0}, &to), 0);
	cr_assert_eq(writer_close(&to, NULL), 0);
	cr_assert_eq(pread(fd, buf_reserve(&file, to.bytes), to.bytes, 0), (ssize_t)to.bytes);
	file.bytes = to.bytes;
	close(fd);
	return file;
}

static struct buf unpacked(const struct profile *p)
{
	struct buf file = packed(p), content = {0};

	cr_assert_eq(input_open_bytes(&in, file.data, file.bytes), 0);
	cr_assert_eq(input_rest(&in, &content, SIZE_MAX), 0);
	input_close(&in);
	buf_release(&file);
	return content;
}

/* *ret_profile is whatever could be read before an error. */
static int read_input(struct profile **ret_profile)
{
	struct builder *builder;
	int err;

	fault = (struct fault){0};
	cr_assert_eq(builder_new(&builder, &(struct builder_options){.memory_max_bytes = 256 << 20}), 0);
	err = pprof_read(&in, builder, &fault);
	cr_assert_eq(err, fault.err);
	cr_assert_eq(builder_finish(builder, ret_profile), 0);
	builder_free(builder);
	input_close(&in);
	return err;
}

static int read_bytes(const void *data, size_t bytes, struct profile **ret_profile)
{
	cr_assert_eq(input_open_bytes(&in, data, bytes), 0);
	return read_input(ret_profile);
}

static struct profile *read_good(struct buf *file)
{
	struct profile *p;

	cr_assert(pprof_detect((unsigned char *)file->data, file->bytes < 4096 ? file->bytes : 4096) ||
	          (unsigned char)file->data[0] == 0x1f);
	cr_assert_eq(read_bytes(file->data, file->bytes, &p), 0, "%s", fault.why);
	buf_release(file);
	return p;
}

static const struct note *note_of(const struct profile *p, const char *key)
{
	for (uint32_t i = 0; i < p->note_count; i++)
		if (strcmp(p->notes[i].key, key) == 0)
			return &p->notes[i];
	return NULL;
}

static double noted(const struct profile *p, const char *key)
{
	const struct note *note = note_of(p, key);

	return note ? note->number : 0;
}

/* The only child of a node, which must have this name and line. */
static uint32_t only_child(const struct profile *p, uint32_t thread, uint32_t node, const char *name, uint32_t line)
{
	const struct node *nodes = p->threads[thread].nodes;
	uint32_t child = nodes[node].child;

	cr_assert(child && !nodes[child].sibling);
	cr_assert_str_eq(p->symbols[nodes[child].symbol].name, name);
	cr_assert_eq(nodes[child].line, line);
	return child;
}

/* Files of other writers are made with these. */
static void string(struct buf *file, const char *text)
{
	pb_bytes(file, PPROF_STRING, text, strlen(text));
}

static void type(struct buf *file, uint64_t name, uint64_t unit)
{
	struct buf m = {0};

	pb_uint(&m, PPROF_TYPE_NAME, name);
	pb_uint(&m, PPROF_TYPE_UNIT, unit);
	pb_message(file, PPROF_SAMPLE_TYPE, &m);
	buf_release(&m);
}

static void function(struct buf *file, uint64_t id, uint64_t name, uint64_t path, uint64_t line)
{
	struct buf m = {0};

	pb_uint(&m, PPROF_FUNCTION_ID, id);
	pb_uint(&m, PPROF_FUNCTION_NAME, name);
	pb_uint(&m, PPROF_FUNCTION_FILE, path);
	pb_uint(&m, PPROF_FUNCTION_FIRST_LINE, line);
	pb_message(file, PPROF_FUNCTION, &m);
	buf_release(&m);
}

/* With up to two lines; a function 0 ends them. */
static void location(struct buf *file, uint64_t id, uint64_t mapping, uint64_t address, const uint64_t (*lines)[2], unsigned count)
{
	struct buf m = {0}, line = {0};

	pb_uint(&m, PPROF_LOCATION_ID, id);
	pb_uint(&m, PPROF_LOCATION_MAPPING, mapping);
	pb_uint(&m, PPROF_LOCATION_ADDRESS, address);
	for (unsigned i = 0; i < count; i++) {
		pb_uint(&line, PPROF_LINE_FUNCTION, lines[i][0]);
		pb_uint(&line, PPROF_LINE_NUMBER, lines[i][1]);
		pb_message(&m, PPROF_LOCATION_LINE, &line);
	}
	pb_message(file, PPROF_LOCATION, &m);
	buf_release(&m);
	buf_release(&line);
}

/* Not packed: both forms must be read, and ours are packed. */
static void sample(struct buf *file, const uint64_t *ids, unsigned id_count, const int64_t *values, unsigned value_count)
{
	struct buf m = {0};

	for (unsigned i = 0; i < id_count; i++) {
		pb_varint(&m, PPROF_SAMPLE_LOCATION << 3);
		pb_varint(&m, ids[i]);
	}
	for (unsigned i = 0; i < value_count; i++) {
		pb_varint(&m, PPROF_SAMPLE_VALUE << 3);
		pb_varint(&m, (uint64_t)values[i]);
	}
	pb_message(file, PPROF_SAMPLE, &m);
	buf_release(&m);
}

/* --- writing --- */

static void expect_once(const struct buf *content, const char *bytes, size_t count)
{
	const char *found = memmem(content->data, content->bytes, bytes, count);

	cr_assert_not_null(found);
	cr_assert_null(memmem(found + 1, content->bytes - (size_t)(found + 1 - content->data), bytes, count));
}

#define EXPECT_ONCE(content, text) expect_once(content, text, sizeof(text) - 1)

/* Strings: 0 "", 1 samples, 2 count, 3 wall, 4 nanoseconds, 5 cpu, 6 gil, 7 thread, 8 T, 9 tid, 10 f, 11 a.py. */
Test(pprof, one_sample_by_hand)
{
	static const char begin[] = "\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03\x10\x04\x0a\x04\x08\x05\x10\x04\x0a\x04\x08\x06\x10\x04"
				    /* location 1; 2 samples, 2,000,000 ns, all on the CPU, none with the GIL; thread T; tid 10 */
				    "\x12\x19\x0a\x01\x01\x12\x08\x02\x80\x89\x7a\x80\x89\x7a\x00\x1a\x04\x08\x07\x10\x08\x1a\x04\x08\x09\x18\x0a";
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "python3 x.py"), 0, 10, "T");
	struct buf content, file;

	built_sample(p, t, built_child(p, t, 0, built_symbol(p, "f", "a.py", 3), 4), 2, STATUS_RUNNABLE);
	content = unpacked(p);
	cr_assert(content.bytes > sizeof(begin) && memcmp(content.data, begin, sizeof(begin) - 1) == 0);
	EXPECT_ONCE(&content, "\x22\x0a\x08\x01\x10\x01\x22\x04\x08\x01\x10\x04");         /* location 1: line 4 of function 1 */
	EXPECT_ONCE(&content, "\x2a\x0a\x08\x01\x10\x0a\x18\x0a\x20\x0b\x28\x03");         /* function 1: f of a.py, from line 3 on */
	EXPECT_ONCE(&content, "\x32\x00\x32\x07samples\x32\x05" "count\x32\x04wall\x32\x0bnanoseconds\x32\x08runnable\x32\x03gil"
	                      "\x32\x06thread\x32\x01T\x32\x03tid\x32\x01" "f\x32\x04" "a.py");
	EXPECT_ONCE(&content, "\x48\x80\x80\xa8\xb1\xe3\x9f\xe7\xcb\x17\x50\x80\xe4\x97\xd0\x12\x5a\x04\x08\x03\x10\x04\x60\xc0\x84\x3d"); /* times */
	cr_assert(memcmp(content.data + content.bytes - 2, "\x70\x03", 2) == 0, "wall is shown by default");
	buf_release(&content);
	file = packed(p);
	cr_assert(memcmp(file.data, "\x1f\x8b\x08\0\0\0\0\0\0\x03", 10) == 0, "no name and no time in the head");
	buf_release(&file);
	built_free(p);
}

Test(pprof, the_same_profile_gives_the_same_bytes)
{
	struct buf files[2];

	for (int i = 0; i < 2; i++) {
		struct profile *p = built_new();
		uint32_t t = built_thread(p, built_process(p, 10, "x"), 0, 10, "T");

		for (uint32_t f = 0; f < 300; f++)
			built_sample(p, t, built_child(p, t, 0, built_symbol(p, "f", "a.py", f), f), f + 1, f);
		files[i] = packed(p);
		built_free(p);
	}
	cr_assert(files[0].bytes == files[1].bytes && memcmp(files[0].data, files[1].data, files[0].bytes) == 0);
	buf_release(&files[0]);
	buf_release(&files[1]);
}

/* --- round trip --- */

static void expect_sums(const struct profile *a, const struct profile *b)
{
	static const enum value_index kept[] = {VALUE_SAMPLES, VALUE_WALL, VALUE_RUNNABLE, VALUE_GIL};

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		cr_assert_eq(profile_sum(a, kept[i]), profile_sum(b, kept[i]));
		cr_assert(profile_has(b, kept[i]));
	}
}

Test(pprof, what_is_written_is_read)
{
	struct profile *p = built_new(), *q;
	uint32_t process = built_process(p, 10, "python3 x.py"), t = built_thread(p, process, 0, 10, "MainThread");
	uint32_t other = built_thread(p, process, 0, 11, NULL), top;
	struct buf file;

	top = built_child(p, t, 0, built_symbol(p, "main", "/srv/app.py", 3), 4);
	built_sample(p, t, built_child(p, t, top, built_symbol(p, "<GC>", "", 0), 0), 7, STATUS_RUNNABLE | STATUS_GIL);
	built_sample(p, t, top, 2, STATUS_IDLE);
	built_sample(p, other, 0, 5, STATUS_IDLE);
	p->processes[process].facts.lost[LOSS_TORN] = 1234;
	p->processes[process].facts.unsampled_ns = 123456789;
	file = packed(p);
	q = read_good(&file);
	expect_sums(p, q);
	cr_assert(q->imported);
	cr_assert_eq(q->process_count, 1);
	cr_assert_eq(q->processes[0].pid, 10);
	cr_assert_str_eq(q->processes[0].name, "python3 x.py");
	cr_assert_eq(q->thread_count, 2);
	cr_assert_str_eq(q->threads[0].name, "MainThread");
	cr_assert(q->threads[0].is_main && q->threads[0].tid == 10);
	cr_assert(q->threads[1].name == NULL && q->threads[1].tid == 11 && !q->threads[1].is_main);
	cr_assert_eq(q->threads[1].nodes[0].self[VALUE_SAMPLES], 5);
	top = only_child(q, 0, 0, "main", 4);
	cr_assert_eq(q->threads[0].nodes[top].self[VALUE_SAMPLES], 2);
	cr_assert_str_eq(q->symbols[q->threads[0].nodes[top].symbol].file, "/srv/app.py");
	cr_assert_eq(q->symbols[q->threads[0].nodes[top].symbol].first_line, 3);
	top = only_child(q, 0, top, "<GC>", 0);
	cr_assert_eq(q->symbols[q->threads[0].nodes[top].symbol].kind, FRAME_SPECIAL);
	cr_assert_eq(q->t_end_ns - q->t_start_ns, p->t_end_ns - p->t_start_ns);
	cr_assert_eq(q->wall_start_ns, p->wall_start_ns);
	cr_assert_eq(q->interval_ns, p->interval_ns);
	cr_assert_eq(noted(q, "lost_torn"), 1234);
	cr_assert_eq(noted(q, "unsampled_ns"), 123456789);
	cr_assert(note_of(q, "lost_torn")->loss);
	profile_free(q);
	built_free(p);
}

/* "cpu" is the kernel's count, and nothing else is called so. */
Test(pprof, cpu_time_is_called_cpu)
{
	for (int told = 0; told < 2; told++) {
		struct profile *p = built_new(), *q;
		uint32_t t = built_thread(p, built_process(p, 10, "python3 x.py"), 0, 10, "MainThread");
		struct buf file;

		built_sample(p, t, built_child(p, t, 0, built_symbol(p, "main", "/srv/app.py", 3), 4), 10, STATUS_RUNNABLE | STATUS_GIL);
		if (told)
			built_cpu_time(p);
		file = packed(p);
		q = read_good(&file);
		cr_expect_eq(profile_has(q, VALUE_CPU), told);
		cr_expect_eq(profile_has(q, VALUE_RUN_WAIT), told);
		for (enum value_index v = VALUE_SAMPLES; v <= VALUE_GIL; v++)
			cr_expect_eq(profile_sum(q, v), profile_sum(p, v), "%s", profile_value_types[v].name);
		cr_expect_eq(profile_sum(q, VALUE_CPU), told ? 7000000 : 0);
		cr_expect_eq(profile_sum(q, VALUE_RUN_WAIT), told ? 1000000 : 0);
		cr_expect_eq(profile_weight(q), VALUE_WALL);
		profile_free(q);
		built_free(p);
	}
}

Test(pprof, several_processes_keep_their_names)
{
	struct profile *p = built_new(), *q;
	uint32_t a = built_process(p, 10, "one"), b = built_process(p, 20, "two");
	struct buf file;

	built_sample(p, built_thread(p, a, 0, 10, "A"), 0, 1, 0);
	built_sample(p, built_thread(p, b, 2, 21, "B"), 0, 2, 0);
	file = packed(p);
	q = read_good(&file);
	cr_assert_eq(q->process_count, 2);
	cr_assert_str_eq(q->processes[0].name, "one");
	cr_assert_str_eq(q->processes[1].name, "two");
	cr_assert(q->threads[1].process == 1 && q->threads[1].tid == 21);
	cr_assert_eq(noted(q, "labels_left_out"), 1, "the interpreter");
	profile_free(q);
	built_free(p);
}

Test(pprof, an_empty_profile_stays_one)
{
	struct profile *p = built_new(), *q;
	struct buf file = packed(p);

	q = read_good(&file);
	cr_assert(q->process_count == 0 && q->thread_count == 0 && profile_sum(q, VALUE_SAMPLES) == 0);
	profile_free(q);
	built_free(p);
}

Test(pprof, the_deepest_stack_and_hostile_names)
{
	struct profile *p = built_new(), *q;
	uint32_t t = built_thread(p, built_process(p, 10, "\xff\x1b"), 0, 10, "a\xc2"), at = 0;
	uint32_t symbol = built_symbol(p, "\xed\xa0\x80\n\";</script", "\x01", 1);
	char *name = malloc(4097);
	struct buf file;

	memset(name, 'x', 4096);
	name[4096] = '\0';
	for (unsigned i = 0; i < REC_DEPTH_MAX - 1; i++)
		at = built_child(p, t, at, symbol, i);
	at = built_child(p, t, at, built_symbol(p, name, "b.py", UINT32_MAX), UINT32_MAX);
	built_sample(p, t, at, 3, 0);
	file = packed(p);
	q = read_good(&file);
	cr_assert_eq(q->threads[0].node_count, REC_DEPTH_MAX + 1);
	cr_assert_str_eq(q->symbols[q->threads[0].nodes[REC_DEPTH_MAX].symbol].name, name);
	cr_assert_eq(q->threads[0].nodes[REC_DEPTH_MAX].line, UINT32_MAX);
	cr_assert_str_eq(q->symbols[q->threads[0].nodes[1].symbol].name, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\n\";</script");
	cr_assert_eq(noted(q, "truncated_stacks"), 0);
	profile_free(q);
	built_free(p);
	free(name);
}

Test(pprof, a_pipe_is_kept_and_read_twice)
{
	struct profile *p = built_new(), *q;
	struct buf file;
	char path[32];
	int ends[2];

	built_sample(p, built_thread(p, built_process(p, 10, "x"), 0, 10, "T"), 0, 9, 0);
	file = packed(p);
	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(write(ends[1], file.data, file.bytes), (ssize_t)file.bytes);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
	cr_assert_eq(input_open(&in, path, &fault), 0);
	close(ends[1]);
	cr_assert_eq(read_input(&q), 0, "%s", fault.why);
	cr_assert_eq(profile_sum(q, VALUE_SAMPLES), 9);
	close(ends[0]);
	buf_release(&file);
	profile_free(q);
	built_free(p);
}

/* --- files of others --- */

/* As Go's profiler writes them: cpu is the weight, a location has inlined functions, the innermost first. */
Test(pprof, inlined_functions_and_addresses)
{
	static const char *const strings[] = {"", "samples", "count", "cpu", "nanoseconds", "inner", "outer", "x.go", "/usr/lib/libc.so.6"};
	struct buf file = {0}, mapping = {0};
	struct profile *p;
	uint32_t at;

	type(&file, 1, 2);
	type(&file, 3, 4);
	sample(&file, (uint64_t[]){77, 3}, 2, (int64_t[]){2, 20}, 2);
	pb_uint(&mapping, PPROF_MAPPING_ID, 9);
	pb_uint(&mapping, PPROF_MAPPING_FILE, 8);
	pb_message(&file, PPROF_MAPPING, &mapping);
	location(&file, 3, 0, 0, (const uint64_t[][2]){{500, 11}, {UINT64_MAX, 12}}, 2);
	location(&file, 77, 9, 0xabc, NULL, 0);
	function(&file, UINT64_MAX, 6, 7, 10);
	function(&file, 500, 5, 7, 5);
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		string(&file, strings[i]);
	p = read_good(&file);
	at = only_child(p, 0, 0, "outer", 12);
	at = only_child(p, 0, at, "inner", 11);
	at = only_child(p, 0, at, "<0xabc>", 0);
	cr_assert_str_eq(p->symbols[p->threads[0].nodes[at].symbol].file, "libc.so.6");
	cr_assert_eq(p->threads[0].nodes[at].self[VALUE_SAMPLES], 2);
	cr_assert_eq(p->threads[0].nodes[at].self[VALUE_WALL], 20);
	cr_assert_str_eq(p->values[VALUE_WALL].name, "cpu");
	cr_assert_eq(profile_weight(p), VALUE_WALL);
	cr_assert_str_eq(p->processes[0].name, "/usr/lib/libc.so.6", "the first mapping is the program");
	cr_assert_eq(noted(p, "references"), 0);
	buf_release(&mapping);
	profile_free(p);
}

/* A heap profile: what is shown is inuse_space, beside it inuse_objects; the default type says otherwise. */
Test(pprof, types_of_all_kinds)
{
	static const char *const strings[] = {"", "alloc_objects", "count", "alloc_space", "bytes", "inuse_objects", "inuse_space", "wall", "milliseconds"};
	struct buf file = {0};
	struct profile *p;

	for (int with_default = 0; with_default < 2; with_default++) {
		type(&file, 1, 2);
		type(&file, 3, 4);
		type(&file, 5, 2);
		type(&file, 6, 4);
		sample(&file, NULL, 0, (int64_t[]){1, 10, 3, 30}, 4);
		if (with_default)
			pb_uint(&file, PPROF_DEFAULT_TYPE, 3);
		for (size_t i = 0; i < 7; i++)
			string(&file, strings[i]);
		p = read_good(&file);
		cr_assert_eq(profile_sum(p, VALUE_SAMPLES), with_default ? 1 : 3);
		cr_assert_str_eq(p->values[VALUE_WALL].name, with_default ? "alloc_space" : "inuse_space");
		cr_assert_eq(profile_sum(p, VALUE_WALL), with_default ? 10 : 30);
		cr_assert_str_eq(p->values[VALUE_WALL].unit, "bytes");
		cr_assert_str_eq(p->values[VALUE_RUNNABLE].name, with_default ? "inuse_objects" : "alloc_objects");
		cr_assert_not_null(note_of(p, "samples_type"));
		profile_free(p);
	}
	type(&file, 7, 8); /* a time alone: records are counted */
	sample(&file, NULL, 0, (int64_t[]){15}, 1);
	sample(&file, NULL, 0, (int64_t[]){20}, 1);
	for (size_t i = 0; i < 9; i++)
		string(&file, strings[i]);
	p = read_good(&file);
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 2);
	cr_assert_eq(profile_sum(p, VALUE_WALL), 35000000);
	cr_assert(profile_has(p, VALUE_WALL));
	cr_assert_eq(noted(p, "samples_are_records"), 2);
	profile_free(p);
	type(&file, 5, 2); /* a count alone */
	sample(&file, NULL, 0, (int64_t[]){15}, 1);
	for (size_t i = 0; i < 9; i++)
		string(&file, strings[i]);
	p = read_good(&file);
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 15);
	cr_assert_eq(profile_weight(p), VALUE_SAMPLES);
	profile_free(p);
	for (unsigned i = 0; i < 70; i++) /* more than there is room for, and than we look at */
		type(&file, 1 + i % 7, 2 + i / 7);
	sample(&file, NULL, 0, (int64_t[70]){1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 70);
	for (size_t i = 0; i < 9; i++)
		string(&file, strings[i]);
	p = read_good(&file);
	cr_assert_eq(noted(p, "types_left_out"), 70 - VALUE_COUNT);
	profile_free(p);
}

Test(pprof, what_is_wrong_is_counted)
{
	static const char *const strings[] = {"", "samples", "count", "f", "tid", "12", "thread_name", "W", "colour", "pid"};
	struct buf file = {0}, m = {0}, label = {0};
	struct profile *p;

	type(&file, 1, 2);
	location(&file, 1, 0, 0, (const uint64_t[][2]){{1, UINT64_MAX}}, 1);
	location(&file, 1, 0, 0x99, NULL, 0);                      /* the same id again */
	location(&file, 2, 0, 0, (const uint64_t[][2]){{44, 1}}, 1); /* no such function */
	function(&file, 1, 3, 999, 0);                             /* no such string */
	sample(&file, (uint64_t[]){1}, 1, (int64_t[]){5}, 1);
	sample(&file, (uint64_t[]){1}, 1, (int64_t[]){-7}, 1);
	sample(&file, (uint64_t[]){2}, 1, (int64_t[]){1}, 1);
	sample(&file, (uint64_t[]){3}, 1, (int64_t[]){1}, 1); /* no such location */
	sample(&file, (uint64_t[]){1}, 1, (int64_t[]){1, 1}, 2);
	sample(&file, (uint64_t[]){1}, 1, NULL, 0);
	sample(&file, (uint64_t[]){1}, 1, (int64_t[]){INT64_MAX}, 1);
	pb_varint(&m, PPROF_SAMPLE_VALUE << 3);
	pb_varint(&m, 1);
	for (uint64_t key = 4; key < 10; key += key == 4 ? 2 : key == 6 ? 2 : 1) {
		pb_uint(&label, PPROF_LABEL_KEY, key);
		pb_uint(&label, key == 9 ? PPROF_LABEL_NUM : PPROF_LABEL_STR, key == 9 ? 12 : key + 1);
		pb_message(&m, PPROF_SAMPLE_LABEL, &label);
	}
	pb_message(&file, PPROF_SAMPLE, &m);
	pb_uint(&file, PPROF_KEEP_FRAMES, 3);
	pb_uint(&file, 1000, 3);
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		string(&file, strings[i]);
	p = read_good(&file);
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 8);
	cr_assert_eq(noted(p, "negative"), 1);
	cr_assert_eq(noted(p, "misfits"), 2);
	cr_assert_eq(noted(p, "overflows"), 1);
	cr_assert_eq(noted(p, "ids_twice"), 1);
	cr_assert_eq(noted(p, "references"), 3);
	cr_assert_eq(noted(p, "labels_left_out"), 1);
	cr_assert_eq(p->thread_count, 2);
	cr_assert(p->threads[1].tid == 12 && p->threads[1].is_main && strcmp(p->threads[1].name, "W") == 0);
	cr_assert_eq(p->processes[p->threads[1].process].pid, 12);
	buf_release(&m);
	buf_release(&label);
	profile_free(p);
}

Test(pprof, stacks_deeper_than_ours_are_cut_at_the_root)
{
	struct buf file = {0}, m = {0}, ids = {0};
	struct profile *p;
	const struct thread_tree *tree;

	type(&file, 1, 2);
	for (unsigned i = 0; i < REC_DEPTH_MAX + 100; i++)
		pb_varint(&ids, 1 + (i >= REC_DEPTH_MAX));
	pb_message(&m, PPROF_SAMPLE_LOCATION, &ids);
	pb_bytes(&m, PPROF_SAMPLE_VALUE, "\x01", 1);
	pb_message(&file, PPROF_SAMPLE, &m);
	location(&file, 1, 0, 1, NULL, 0);
	location(&file, 2, 0, 2, NULL, 0);
	for (unsigned i = 0; i < 3; i++)
		string(&file, (const char *const[]){"", "samples", "count"}[i]);
	p = read_good(&file);
	tree = &p->threads[0];
	cr_assert_eq(tree->node_count, REC_DEPTH_MAX + 1);
	cr_assert_str_eq(p->symbols[tree->nodes[1].symbol].name, "<truncated>");
	cr_assert_str_eq(p->symbols[tree->nodes[2].symbol].name, "<0x1>");
	cr_assert_eq(noted(p, "truncated_stacks"), 1);
	profile_free(p);
	buf_release(&m);
	buf_release(&ids);
}

/* --- damage --- */

static struct buf small_file(void)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "python3 x.py"), 0, 10, "T"), at;
	struct buf content;

	at = built_child(p, t, 0, built_symbol(p, "f", "a.py", 3), 4);
	built_sample(p, t, at, 2, STATUS_RUNNABLE);
	built_sample(p, t, built_child(p, t, at, built_symbol(p, "g", "a.py", 8), 9), 200, STATUS_RUNNABLE);
	content = unpacked(p);
	built_free(p);
	return content;
}

Test(pprof, cut_at_every_byte)
{
	struct buf content = small_file();
	unsigned whole = 0;

	for (size_t bytes = 0; bytes < content.bytes; bytes++) {
		struct profile *p;
		int err = read_bytes(content.data, bytes, &p);

		/* Between two fields nothing shows that it was cut. */
		cr_assert(err == 0 || err == -EPROTO);
		whole += err == 0;
		profile_free(p);
	}
	cr_assert(whole > 20 && whole < 100, "%u", whole);
	buf_release(&content);
}

Test(pprof, every_byte_flipped)
{
	struct buf content = small_file();

	for (size_t at = 0; at < content.bytes; at++)
		for (unsigned bit = 0; bit < 8; bit++) {
			struct profile *p;
			int err;

			content.data[at] ^= (char)(1 << bit);
			err = read_bytes(content.data, content.bytes, &p);
			cr_assert(err == 0 || err == -EPROTO);
			profile_free(p);
			content.data[at] ^= (char)(1 << bit);
		}
	buf_release(&content);
}

Test(pprof, faults_say_where)
{
	static const struct {
		const char *bytes;
		size_t count;
		const char *why;
	} bad[] = {
		{"\x0a\x04\x08\x01\x10\x02\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 16, "a sample at byte 6"},
		{"\x0a\x04\x08\x01\x10\x02\x22\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 16, "a location at byte 6"},
		{"\x0a\x04\x08\x01\x10\x02\x2a\x02\x08\x80", 10, "a function at byte 6"},
		{"\x0a\x04\x08\x01\x10\x02\x28\x02", 8, "a function at byte 6"},
		{"\x0a\x04\x08\x01\x10\x02\x07", 7, "a field at byte 6"},
		{"\x0a\x04\x08\x01\x10\x02\x12\x02\x0a\x05", 10, "a sample at byte 6"},
		{"\x48\x01", 2, "no sample type"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct profile *p;

		cr_assert_eq(read_bytes(bad[i].bytes, bad[i].count, &p), -EPROTO, "case %zu", i);
		cr_assert_not_null(strstr(fault.why, bad[i].why), "%s", fault.why);
		profile_free(p);
	}
}

Test(pprof, a_packed_file_that_is_cut_says_so)
{
	struct profile *p = built_new(), *q;
	struct buf file;

	built_sample(p, built_thread(p, built_process(p, 10, "x"), 0, 10, "T"), 0, 9, 0);
	file = packed(p);
	for (size_t bytes = file.bytes - 1; bytes > 20; bytes--) {
		cr_assert_eq(read_bytes(file.data, bytes, &q), -EPROTO, "%zu", bytes);
		cr_assert_not_null(strstr(fault.why, "compressed"));
		profile_free(q);
	}
	buf_release(&file);
	built_free(p);
}

Test(pprof, other_files_are_not_taken_for_it)
{
	static const char *const others[] = {
		"", "\n", "\n\n\n\nmain;f 1\n", "main;f 12\n", "{\"a\":1}", "# callgrind format\n", "\x7f" "ELF", "{(u", "digraph", "PK\x03\x04",
		"\x0a\x80\x01\x0a\x20", /* OTLP: a resource */
		"SQLite format 3",
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_assert(!pprof_detect((const unsigned char *)others[i], strlen(others[i])), "case %zu", i);
	cr_assert(pprof_detect((const unsigned char *)"\x0a\x04\x08\x01\x10\x02", 6));
	cr_assert(pprof_detect((const unsigned char *)"\x48\x01\x5a\x04\x08\x01\x10\x02\x12\x7f\x0a", 11), "cut, time and period first");
}
