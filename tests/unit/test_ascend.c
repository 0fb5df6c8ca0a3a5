/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/formats.h"
#include "tests/unit/read_back.h"
#include "tests/unit/written.h"

static const char schema[] =
	"CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT);"
	"CREATE TABLE PYTORCH_API (startNs TEXT, endNs TEXT, globalTid INTEGER, connectionId INTEGER, name INTEGER);"
	"INSERT INTO STRING_IDS VALUES (1, 'main.py(1): main'), (2, 'aten::add'), (3, 'aclnnAdd'),"
	"(4, 'ProfilerStep#3'), (5, ''), (6, NULL), (7, 'profilerstep#4'), (8, 'Enqueue');";

static unsigned char *file;
static size_t file_bytes;

/* Makes the file by SQL, from nothing; pages are small so that it has several. */
static void make(const char *first, const char *second)
{
	sqlite3_int64 bytes;
	sqlite3 *db;

	cr_assert_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
	cr_assert_eq(sqlite3_exec(db, "PRAGMA page_size = 512", NULL, NULL, NULL), SQLITE_OK);
	cr_assert_eq(sqlite3_exec(db, first, NULL, NULL, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
	cr_assert_eq(sqlite3_exec(db, second, NULL, NULL, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
	sqlite3_free(file);
	file = sqlite3_serialize(db, "main", &bytes, 0);
	cr_assert_not_null(file);
	file_bytes = (size_t)bytes;
	sqlite3_close(db);
}

static int read_made(size_t bytes, struct profile **ret_profile, struct fault *fault)
{
	cr_assert(ascend_detect(file, bytes) == (bytes >= 16));
	return read_as(ret_profile, "ascend", file, bytes, &(struct builder_options){0}, fault);
}

static struct profile *read_whole(void)
{
	struct profile *p;
	struct fault fault;

	cr_assert_eq(read_made(file_bytes, &p, &fault), 0, "%s", fault.why);
	return p;
}

static double note(const struct profile *p, const char *key)
{
	for (uint32_t i = 0; i < p->note_count; i++)
		if (strcmp(p->notes[i].key, key) == 0)
			return p->notes[i].number;
	cr_assert_fail("no note %s", key);
	return -1;
}

static void expect(struct profile *p, const char *lines, uint64_t total_ns)
{
	char *text = written(p, "collapsed", &(struct export_options){0});

	cr_assert_str_eq(text, lines, "%s", text);
	cr_assert_eq(profile_sum(p, VALUE_WALL), total_ns);
	free(text);
}

static void expect_fault(const char *why)
{
	struct profile *p;
	struct fault fault;

	cr_assert_eq(read_made(file_bytes, &p, &fault), -EPROTO);
	cr_assert_not_null(strstr(fault.why, why), "%s", fault.why);
}

/* tid 10 of process 10 is 42949672970. */
Test(ascend, calls_nest_by_their_times)
{
	struct profile *p;

	make(schema, "INSERT INTO PYTORCH_API VALUES "
	             "(150, 160, 42949672970, 0, 3), (100, 200, 42949672970, 0, 1), (110, 180, 42949672970, 0, 2),"
	             "(160, 180, 42949672970, 0, 3), (180, 200, 42949672970, 0, 2), (200, 201, 42949672970, 0, 2),"
	             "(7, 9, 42949672971, 0, 8)");
	p = read_whole();
	expect(p,
	       "# value: time, in nanoseconds\n"
	       "thread 10;main.py(1): main (<python>:0);aten::add (<python_framework>:0) 60\n"
	       "thread 10;main.py(1): main (<python>:0);aten::add (<python_framework>:0);aclnnAdd (<cann>:0) 30\n"
	       "thread 10;main.py(1): main (<python>:0) 10\n"
	       "thread 11;Enqueue (<unknown>:0) 2\n"
	       "thread 10;aten::add (<python_framework>:0) 1\n",
	       101 + 2);
	cr_assert_eq(p->processes[0].pid, 10);
	cr_assert(p->threads[0].is_main);
	cr_assert_not(p->threads[1].is_main);
	cr_assert_eq(p->threads[0].t_first_ns, 100);
	cr_assert_eq(p->threads[0].t_last_ns, 201);
	cr_assert_eq(p->threads[0].nodes[1].self[VALUE_WALL], 100 - 70 - 20);
	cr_assert_str_eq(p->values[VALUE_WALL].name, "time");
	cr_assert_str_eq(p->values[VALUE_WALL].unit, "nanoseconds");
	cr_assert(p->imported);
	profile_free(p);
}

Test(ascend, bad_records_are_counted)
{
	struct profile *p;

	make(schema, "INSERT INTO PYTORCH_API VALUES (100, 200, 1, 0, 1), (150, 250, 1, 0, 2), (160, 300, 1, 0, 3),"
	             "(1, NULL, 1, 0, 2), (NULL, 2, 1, 0, 2), (1, 2, NULL, 0, 2), (-5, 2, 1, 0, 2),"
	             "(5, 5, 1, 0, 2), (6, 5, 1, 0, 2),"
	             "(1, 900, 1, 0, 4), (1, 900, 1, 0, 7), (NULL, NULL, 1, 0, 4),"
	             "(300, 301, 1, 0, 5), (301, 302, 1, 0, 6), (302, 303, 1, 0, 99), (303, 304, 1, 0, NULL)");
	p = read_whole();
	expect(p,
	       "# value: time, in nanoseconds\n"
	       "thread 1;main.py(1): main (<python>:0) 50\n"
	       "thread 1;main.py(1): main (<python>:0);aten::add (<python_framework>:0);aclnnAdd (<cann>:0) 40\n"
	       "thread 1;main.py(1): main (<python>:0);aten::add (<python_framework>:0) 10\n"
	       "thread 1;unknown (<unknown>:0) 4\n",
	       104);
	cr_assert_eq(note(p, "calls"), 16);
	cr_assert_eq(note(p, "skipped_no_time"), 4);
	cr_assert_eq(note(p, "skipped_backwards"), 2);
	cr_assert_eq(note(p, "skipped_steps"), 3);
	cr_assert_eq(note(p, "clipped_calls"), 2);
	cr_assert_eq(note(p, "unknown_names"), 4);
	cr_assert_eq(note(p, "too_deep"), 0);
	profile_free(p);
}

Test(ascend, same_times_nest_by_their_names_number)
{
	struct profile *p;

	make(schema, "INSERT INTO PYTORCH_API VALUES (1, 5, 1, 0, 3), (1, 5, 1, 0, 2), (1, 5, 1, 0, 3)");
	p = read_whole();
	expect(p,
	       "# value: time, in nanoseconds\n"
	       "thread 1;aten::add (<python_framework>:0);aclnnAdd (<cann>:0);aclnnAdd (<cann>:0) 4\n",
	       4);
	profile_free(p);
}

Test(ascend, times_of_any_size)
{
	struct profile *p;

	make(schema, "INSERT INTO PYTORCH_API VALUES (0, 9223372036854775807, -1, 0, 2), ('1700000000000000000', "
	             "'1700000000000000005', 1, 0, 2)");
	p = read_whole();
	cr_assert_eq(p->thread_count, 2);
	cr_assert_eq(profile_sum(p, VALUE_WALL), (uint64_t)INT64_MAX + 5);
	profile_free(p);
	make(schema,
	     "INSERT INTO PYTORCH_API VALUES (0, 9223372036854775807, 1, 0, 2), (0, 9223372036854775807, 2, 0, 2),"
	     "(0, 9223372036854775807, 3, 0, 2), (5, 6, 4, 0, 2)");
	expect_fault("last longer than 292 years");
}

Test(ascend, without_calls_it_is_refused)
{
	struct profile *p;
	struct fault fault;

	make(schema, "");
	cr_assert_eq(read_made(file_bytes, &p, &fault), -EPROTO);
	cr_assert_str_eq(fault.why, "it has no calls: its table PYTORCH_API is empty");
}

Test(ascend, hostile_names)
{
	struct profile *p;

	make(schema,
	     "INSERT INTO STRING_IDS VALUES (20, 'a;b' || char(10) || char(0) || 'c'), (21, x'61ff62'),"
	     "(22, replace(hex(zeroblob(4000)), '0', 'n')), (-3, '</script>');"
	     "INSERT INTO PYTORCH_API VALUES (1, 2, 1, 0, 20), (2, 3, 1, 0, 21), (3, 4, 1, 0, 22), (4, 5, 1, 0, -3)");
	p = read_whole();
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 4);
	cr_assert_eq(p->threads[0].node_count, 5);
	cr_assert_eq(note(p, "unknown_names"), 0);
	cr_assert_leq(strlen(p->symbols[p->threads[0].nodes[3].symbol].name), REC_TEXT_MAX + 3);
	profile_free(p);
}

/* Nothing of the file's own is run: views, virtual tables; a trigger or an index on an expression changes nothing. */
Test(ascend, what_would_be_a_program_is_refused)
{
	struct profile *p;

	make("CREATE TABLE STRING_IDS (id, value)", "CREATE VIEW PYTORCH_API AS WITH RECURSIVE c(x) AS (VALUES (1) "
	                                            "UNION ALL SELECT x + 1 FROM c) SELECT x AS startNs, x + 1 AS "
	                                            "endNs, 1 AS globalTid, 1 AS name FROM c");
	expect_fault("no table PYTORCH_API");
	make(schema, "CREATE TRIGGER t AFTER INSERT ON STRING_IDS BEGIN SELECT load_extension('x'); END;"
	             "INSERT INTO PYTORCH_API VALUES (1, 2, 1, 0, 2)");
	p = read_whole();
	cr_assert_eq(profile_sum(p, VALUE_SAMPLES), 1);
	profile_free(p);
}

Test(ascend, other_databases_are_refused)
{
	make("CREATE TABLE t (x)", "");
	expect_fault("no table PYTORCH_API");
	make("CREATE TABLE PYTORCH_API (startNs, endNs, name)", "");
	expect_fault("no table STRING_IDS");
	make("CREATE TABLE PYTORCH_API (startNs, endNs, globalTid)", "CREATE TABLE STRING_IDS (id, value)");
	expect_fault("has no column name");
}

Test(ascend, cut_off_anywhere_is_a_fault)
{
	struct profile *p;
	struct fault fault;

	make(schema, "INSERT INTO PYTORCH_API VALUES (1, 2, 1, 0, 2)");
	for (size_t bytes = 0; bytes < file_bytes; bytes += bytes < 600 ? 1 : 37) {
		cr_assert_eq(read_made(bytes, &p, &fault), -EPROTO, "%zu", bytes);
		cr_assert_not_null(strstr(fault.why, "SQLite"), "%s", fault.why);
	}
}

Test(ascend, every_byte_flipped)
{
	static const unsigned char flips[] = {0x01, 0xff, 0x80};
	struct profile *p;
	struct fault fault;

	make(schema, "INSERT INTO PYTORCH_API VALUES (1, 20, 1, 0, 2), (3, 4, 1, 0, 3), (5, 6, 2, 0, 1)");
	for (size_t at = 16; at < file_bytes; at++) {
		unsigned char was = file[at];
		int err;

		file[at] ^= flips[at % sizeof(flips)];
		err = read_made(file_bytes, &p, &fault);
		cr_assert(err == 0 || fault.why[0] != '\0', "byte %zu", at);
		profile_free(p);
		file[at] = was;
	}
}
