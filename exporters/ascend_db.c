/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/ascend_db.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define FILE_MAX_BYTES (UINT64_C(10) << 30)
/* "file:", each byte as %XX, the parameters. */
enum { HEADER_BYTES = 100, URI_BYTES = 3 * PATH_MAX + 64 };

static const char header_text[] = "SQLite format 3";

int ascend_db_fault(int result, const char *where, struct fault *fault)
{
	switch (result & 0xff) {
	case SQLITE_NOMEM:
		return fault_set(fault, -ENOMEM, "", "out of memory");
	case SQLITE_FULL:
		return fault_set(fault, -ENOSPC, "SQLITE_TMPDIR names another folder",
		                 "no room to sort its calls in a temporary file");
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_FORMAT:
		return fault_set(fault, -EPROTO, "", "the SQLite database is damaged (%s)", where);
	default:
		return fault_set(fault, -EPROTO, "", "SQLite cannot read it (%s): %s", where, sqlite3_errstr(result));
	}
}

static uint32_t be32(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* The head of the file (https://www.sqlite.org/fileformat.html, 1.3), so that a file that is cut off is called that. */
static int check_header(const struct ascend_db *d, struct fault *fault)
{
	unsigned char head[HEADER_BYTES];
	int64_t got = spool_read_at(&d->file, head, sizeof(head), 0);
	uint32_t page_bytes;
	uint64_t whole_bytes;

	if (got < 0)
		return fault_set(fault, (int)got, "", "%s", strerror((int)-got));
	if (got < (int64_t)sizeof(head) || memcmp(head, header_text, sizeof(header_text)) != 0)
		return fault_set(fault, -EPROTO, "", "it is no SQLite database: its head of %d bytes is not whole",
		                 HEADER_BYTES);
	page_bytes = (uint32_t)head[16] << 8 | head[17];
	page_bytes = page_bytes == 1 ? 65536 : page_bytes;
	if (page_bytes < 512 || page_bytes & (page_bytes - 1))
		return fault_set(fault, -EPROTO, "", "it is no SQLite database: pages of %" PRIu32 " bytes (byte 16)",
		                 page_bytes);
	/* The number of pages counts only where the version it was written with is the last one. */
	whole_bytes = be32(head + 24) == be32(head + 92) ? (uint64_t)be32(head + 28) * page_bytes : page_bytes;
	if (d->file.bytes < whole_bytes)
		return fault_set(fault, -EPROTO, "",
		                 "the SQLite database is cut off: it has %" PRIu64 " bytes of %" PRIu64, d->file.bytes,
		                 whole_bytes);
	return 0;
}

/* As a URI, so that no character of the name means anything. immutable: no lock, no journal and no log is looked for or made. */
static int make_uri(char uri[URI_BYTES], const char *path)
{
	size_t at = (size_t)snprintf(uri, URI_BYTES, "file:");

	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	for (; *path; path++) {
		unsigned char c = (unsigned char)*path;
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		             (c != '\0' && strchr("/._-", c));

		at += (size_t)snprintf(uri + at, URI_BYTES - at, plain ? "%c" : "%%%02X", c);
	}
	snprintf(uri + at, URI_BYTES - at, "?mode=ro&immutable=1");
	return 0;
}

/* The schema is the file's: no view, trigger, extension or function with effects of it is to run, and it is bounded in what it can ask for. */
static int make_safe(sqlite3 *db)
{
	static const int off[] = {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_TRIGGER,
	                          SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION};
	static const struct {
		int id, most;
	} limits[] = {
		{SQLITE_LIMIT_LENGTH, 16 << 20},   {SQLITE_LIMIT_SQL_LENGTH, 1 << 16},
		{SQLITE_LIMIT_VDBE_OP, 25000},     {SQLITE_LIMIT_EXPR_DEPTH, 50},
		{SQLITE_LIMIT_COMPOUND_SELECT, 2}, {SQLITE_LIMIT_FUNCTION_ARG, 8},
		{SQLITE_LIMIT_ATTACHED, 0},        {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 64},
		{SQLITE_LIMIT_VARIABLE_NUMBER, 8}, {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
		{SQLITE_LIMIT_WORKER_THREADS, 0},
	};

	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++)
		if (sqlite3_db_config(db, off[i], 0, (int *)NULL) != SQLITE_OK)
			return SQLITE_ERROR;
	if (sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)NULL) != SQLITE_OK)
		return SQLITE_ERROR;
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		sqlite3_limit(db, limits[i].id, limits[i].most);
	/* Sorting two million calls spills into a file, not into memory. */
	return sqlite3_exec(db,
	                    "PRAGMA trusted_schema=OFF; PRAGMA query_only=ON; PRAGMA mmap_size=0; "
	                    "PRAGMA temp_store=FILE; PRAGMA cache_size=-32768; PRAGMA cell_size_check=ON;",
	                    NULL, NULL, NULL);
}

/* 1, 0, or -1 when SQLite fails, with *ret_result. */
static int has_row(sqlite3 *db, const char *sql, const char *table, const char *column, int *ret_result)
{
	sqlite3_stmt *stmt;
	int result = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

	if (result == SQLITE_OK) {
		sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
		if (column)
			sqlite3_bind_text(stmt, 2, column, -1, SQLITE_STATIC);
		result = sqlite3_step(stmt);
		sqlite3_finalize(stmt);
	}
	*ret_result = result;
	return result == SQLITE_ROW ? 1 : result == SQLITE_DONE ? 0 : -1;
}

bool ascend_db_has_column(struct ascend_db *d, const char *table, const char *column)
{
	int result;

	return has_row(d->db, "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2 COLLATE NOCASE", table, column,
	               &result) == 1;
}

/* Real tables: a view or a virtual table of that name (which have no root page) would be a program. */
static int check_tables(struct ascend_db *d, struct fault *fault)
{
	static const char *const tables[] = {"PYTORCH_API", "STRING_IDS"};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		int result;
		int found = has_row(d->db,
		                    "SELECT 1 FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND "
		                    "name = ?1 COLLATE NOCASE",
		                    tables[i], NULL, &result);

		if (found < 0)
			return ascend_db_fault(result, "its schema", fault);
		if (!found)
			return fault_set(fault, -EPROTO, "",
			                 "it is an SQLite database, but not of the Ascend PyTorch profiler: "
			                 "it has no table %s",
			                 tables[i]);
	}
	return 0;
}

static bool has_wal(const char *path)
{
	char wal[PATH_MAX + 8];
	struct stat stat_of;

	snprintf(wal, sizeof(wal), "%s-wal", path);
	return stat(wal, &stat_of) == 0 && stat_of.st_size > 0;
}

static int open_db(struct ascend_db *d, const char *path, struct fault *fault)
{
	char uri[URI_BYTES];
	int result;

	if (make_uri(uri, path))
		return fault_set(fault, -ENAMETOOLONG, "", "its name is too long");
	result = sqlite3_open_v2(uri, &d->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
	spool_forget_name(&d->file); /* open is open */
	if (result == SQLITE_OK)
		result = make_safe(d->db);
	if (result != SQLITE_OK)
		return ascend_db_fault(result, "opening it", fault);
	return check_tables(d, fault);
}

int ascend_db_open(struct ascend_db *d, struct input *in, struct fault *fault)
{
	int err;

	d->db = NULL;
	d->has_wal = in->is_file && has_wal(in->path);
	err = spool_open(&d->file, in, FILE_MAX_BYTES, fault);
	if (err)
		return err;
	err = check_header(d, fault);
	if (!err)
		err = spool_name(&d->file, fault);
	if (!err)
		err = open_db(d, d->file.copied ? d->file.path : in->path, fault);
	if (err)
		ascend_db_close(d);
	return err;
}

void ascend_db_close(struct ascend_db *d)
{
	sqlite3_close(d->db);
	d->db = NULL;
	spool_close(&d->file);
}
