/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a database of the Ascend profiler, two ways: as calls (16 bytes each: start, length, thread and name) in a sound database, whose
 * totals must hold together; and as bytes that change a sound one (offset, value), or that are one. */
#include <errno.h>
#include <sqlite3.h>
#include <string.h>

#include "tests/fuzz/common.h"

static void run(sqlite3 *db, const char *sql)
{
	expect(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
}

/* The file's bytes; the caller frees them with sqlite3_free(). */
static unsigned char *make_database(const uint8_t *data, size_t bytes, size_t *ret_bytes)
{
	unsigned char *file;
	sqlite3_stmt *stmt;
	sqlite3_int64 size;
	sqlite3 *db;

	expect(sqlite3_open(":memory:", &db) == SQLITE_OK);
	run(db, "PRAGMA page_size = 512; CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT);"
	        "CREATE TABLE PYTORCH_API (startNs TEXT, endNs INTEGER, globalTid INTEGER, name INTEGER);"
	        "INSERT INTO STRING_IDS VALUES (0, 'ProfilerStep#1'), (1, 'aten::add'), (2, 'main.py(1): f'), (3, "
	        "NULL), (4, 'aclnnAdd');");
	expect(sqlite3_prepare_v2(db, "INSERT INTO PYTORCH_API VALUES (?, ?, ?, ?)", -1, &stmt, NULL) == SQLITE_OK);
	for (; bytes >= 4; data += 4, bytes -= 4) {
		sqlite3_bind_int(stmt, 1, data[0]);
		sqlite3_bind_int(stmt, 2, data[0] + data[1] % 32 - 1);
		sqlite3_bind_int64(stmt, 3, (sqlite3_int64)(data[2] & 3) << 32 | (data[2] & 12));
		sqlite3_bind_int(stmt, 4, data[3] % 7);
		if (data[3] >= 250)
			sqlite3_bind_null(stmt, data[3] - 249 > 4 ? 4 : data[3] - 249);
		sqlite3_step(stmt);
		sqlite3_reset(stmt);
	}
	sqlite3_finalize(stmt);
	file = sqlite3_serialize(db, "main", &size, 0);
	expect(file != NULL);
	sqlite3_close(db);
	*ret_bytes = (size_t)size;
	return file;
}

static void read_file(const unsigned char *file, size_t bytes, bool sound)
{
	double rows = 0, lost = 0;
	int err;
	struct profile *p = fuzz_read("ascend", file, bytes, NULL, &err);

	expect(!sound || err == 0 || err == -EPROTO);
	if (!p)
		return;
	for (uint32_t i = 0; i < p->note_count; i++)
		if (strcmp(p->notes[i].key, "calls") == 0)
			rows += p->notes[i].number;
		else if (strncmp(p->notes[i].key, "skipped", 7) == 0 || strcmp(p->notes[i].key, "too_deep") == 0)
			lost += p->notes[i].number;
	if (!err)
		expect(rows - lost == (double)profile_sum(p, VALUE_SAMPLES));
	else /* it is refused where no call has a time */
		expect(!sound || rows == lost);
	profile_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	unsigned char *file;
	size_t file_bytes;

	if (bytes < 2 || bytes > 1 << 15)
		return 0;
	if (data[0] % 3 == 0) {
		read_file(data + 1, bytes - 1, false);
		return 0;
	}
	file = make_database(data + 1, bytes - 1 < 160 || data[0] % 3 == 1 ? bytes - 1 : 160, &file_bytes);
	if (data[0] % 3 == 2)
		for (size_t i = 1; i + 3 <= bytes; i += 3)
			file[(data[i] | (size_t)data[i + 1] << 8) % file_bytes] = data[i + 2];
	read_file(file, file_bytes, data[0] % 3 == 1);
	sqlite3_free(file);
	return 0;
}
