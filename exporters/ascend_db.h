/* SPDX-License-Identifier: Apache-2.0 */
/* Opening an SQLite database that came from somewhere else: read-only, without anything of its own being run. */
#ifndef SAMPLED_EXPORTERS_ASCEND_DB_H
#define SAMPLED_EXPORTERS_ASCEND_DB_H

#include <stdbool.h>
#include <sqlite3.h>

#include "base/fault.h"
#include "exporters/input.h"
#include "exporters/spool.h"

struct ascend_db {
	sqlite3 *db;
	struct spool file;
	bool has_wal; /* beside it lies a write-ahead log, which is not read */
};

/* 0 or -errno with *fault filled: -EPROTO it is no whole database with the tables PYTORCH_API and STRING_IDS, -EFBIG it is too large. */
int ascend_db_open(struct ascend_db *d, struct input *in, struct fault *fault);
void ascend_db_close(struct ascend_db *d);

/* Whether a table has this column. */
bool ascend_db_has_column(struct ascend_db *d, const char *table, const char *column);
/* What SQLite has returned, as a fault; `where` says in doing what. Its messages quote the file, so only the kind of error is told. */
int ascend_db_fault(int result, const char *where, struct fault *fault);

#endif
