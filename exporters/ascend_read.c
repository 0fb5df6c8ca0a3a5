/* SPDX-License-Identifier: Apache-2.0 */
/* Databases of the Ascend PyTorch profiler (torch_npu), ascend_pytorch_profiler_RANK.db: SQLite, with the tables
 * PYTORCH_API(startNs, endNs, globalTid, name, …) and STRING_IDS(id, value); globalTid is pid << 32 | tid
 * (hiascend.com, "Data in ascend_pytorch_profiler_{Rank_ID}.db"). They hold calls, not samples: a count is a call, and the time is real.
 *
 * Calls are nested by their times: in the order of start, the longer first, each lies within the innermost one that has not ended. What would end
 * after its caller is cut at the caller's end, so that no call's children take longer than itself. Of calls with the same start and end the one
 * with the lower name number is the outer one: any rule would do, but there must be one, or the same file could give two profiles.
 *
 * A frame's file is its category in angle brackets, so that a flame graph that colours by file colours by category. The categories and the words
 * they are known by are those of the profiler's own tool (MindStudio Insight, scripts/flame_graph): first those of CANN, then those of the
 * framework, then Python. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "aggregator/lookup.h"
#include "base/buf.h"
#include "base/hash.h"
#include "exporters/ascend_db.h"
#include "exporters/formats.h"

/* Depth is bounded since such a file costs nothing to make; threads are, since each costs memory whatever the builder's bound. */
enum { DEPTH_MAX = 1000, THREADS_MAX = 1 << 16 };

struct name {
	int64_t id;
	uint32_t symbol;
	bool is_step, is_empty;
};

struct call {
	uint32_t node;
	uint64_t start_ns, end_ns, children_ns;
};

struct ascend {
	struct ascend_db db;
	struct builder *to;
	struct fault *fault;
	struct buf names; /* struct name */
	struct lookup by_id;
	struct name unknown;
	struct call stack[DEPTH_MAX];
	uint32_t depth;
	struct thread_tree like; /* of the thread at hand */
	uint64_t global_tid;
	uint32_t thread, thread_count;
	uint64_t total_ns, first_ns, cut_ns;
	uint64_t rows, steps, no_time, backwards, clipped, nameless, deep;
};

bool ascend_detect(const unsigned char *head, size_t bytes)
{
	return bytes >= 16 && memcmp(head, "SQLite format 3", 16) == 0;
}

/* --- names --- */

static bool holds_any(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcasestr(text, *words))
			return true;
	return false;
}

static const char *category_of(const char *name)
{
	static const char *const cann[] = {"cann", "ascendcl", "aclnn", "aclrt", "aclmdl", "aclprof", "hccl", NULL};
	static const char *const framework[] = {"torch", "aten::", "c10::", "aten_", NULL}; /* torch_npu, too */
	static const char *const python[] = {"python", NULL};

	if (holds_any(name, cann))
		return "<cann>";
	if (holds_any(name, framework))
		return "<python_framework>";
	return strstr(name, ".py") || holds_any(name, python) ? "<python>" : "<unknown>";
}

static uint32_t id_hash(int64_t id)
{
	return (uint32_t)hash_u64((uint64_t)id);
}

static const struct name *find_name(const struct ascend *a, int64_t id)
{
	const struct name *names = (const struct name *)(const void *)a->names.data;
	uint32_t at = id_hash(id), found;

	while ((found = lookup_next(&a->by_id, id_hash(id), &at)) != LOOKUP_NONE)
		if (names[found].id == id)
			return &names[found];
	return NULL;
}

static struct name make_name(struct ascend *a, int64_t id, const char *text, size_t bytes)
{
	struct name name = {.id = id, .is_empty = bytes == 0};
	const char *category;

	if (bytes == 0) {
		text = "unknown";
		bytes = strlen(text);
	}
	category = category_of(text);
	name.is_step = strncasecmp(text, "ProfilerStep#", strlen("ProfilerStep#")) == 0;
	name.symbol = builder_symbol(a->to, text, bytes, category, strlen(category), 0, FRAME_PYTHON, 0);
	return name;
}

/* Only the strings that name calls: the table holds shapes and whole call stacks as well. */
static int read_names(struct ascend *a)
{
	static const char sql[] = "SELECT CAST(id AS INTEGER), CAST(value AS TEXT) FROM STRING_IDS "
				  "WHERE CAST(id AS INTEGER) IN (SELECT CAST(name AS INTEGER) FROM PYTORCH_API)";
	sqlite3_stmt *stmt;
	int result = sqlite3_prepare_v2(a->db.db, sql, -1, &stmt, NULL), err = 0;

	while (result == SQLITE_OK || result == SQLITE_ROW) {
		result = sqlite3_step(stmt);
		if (result == SQLITE_ROW && !find_name(a, sqlite3_column_int64(stmt, 0))) {
			const char *text = (const char *)sqlite3_column_text(stmt, 1);
			struct name name = make_name(a, sqlite3_column_int64(stmt, 0), text ? text : "",
			                             (size_t)sqlite3_column_bytes(stmt, 1));

			buf_add(&a->names, &name, sizeof(name));
			err = a->names.err ? a->names.err
			                   : lookup_add(&a->by_id, id_hash(name.id),
			                                (uint32_t)(a->names.bytes / sizeof(name)) - 1);
			if (err)
				break;
		}
	}
	sqlite3_finalize(stmt);
	if (err)
		return fault_set(a->fault, err, "", "out of memory");
	return result == SQLITE_DONE ? 0 : ascend_db_fault(result, "table STRING_IDS", a->fault);
}

/* --- calls --- */

/* The innermost call has ended: what its children left of it is its own. */
static void pop(struct ascend *a)
{
	const struct call *call = &a->stack[--a->depth];
	uint64_t duration_ns = call->end_ns - call->start_ns, values[VALUE_COUNT] = {[VALUE_SAMPLES] = 1};

	values[VALUE_WALL] = duration_ns - call->children_ns;
	a->total_ns += values[VALUE_WALL];
	builder_add(a->to, a->thread, call->node, values);
	if (a->depth > 0)
		a->stack[a->depth - 1].children_ns += duration_ns;
	if (a->like.t_last_ns < call->end_ns)
		a->like.t_last_ns = call->end_ns;
}

static void end_thread(struct ascend *a)
{
	while (a->depth > 0)
		pop(a);
	if (a->thread_count > 0)
		builder_thread(a->to, &a->like); /* its times */
}

static int begin_thread(struct ascend *a, uint64_t global_tid, uint64_t start_ns)
{
	int32_t pid = (int32_t)(global_tid >> 32);

	end_thread(a);
	if (a->thread_count++ == THREADS_MAX)
		return fault_set(a->fault, -EPROTO, "", "it has more than %d threads", THREADS_MAX);
	if (a->thread_count == 1 || (int32_t)(a->global_tid >> 32) != pid)
		a->like.process = builder_process(a->to, &(struct process){.pid = pid});
	a->like = (struct thread_tree){.process = a->like.process,
	                               .tid = global_tid & UINT32_MAX,
	                               .is_main = (global_tid & UINT32_MAX) == global_tid >> 32,
	                               .t_first_ns = start_ns};
	a->global_tid = global_tid;
	if (a->first_ns == 0 || start_ns < a->first_ns)
		a->first_ns = start_ns;
	a->thread = builder_thread(a->to, &a->like);
	return builder_error(a->to);
}

static int add_call(struct ascend *a, uint64_t global_tid, uint64_t start_ns, uint64_t end_ns, const struct name *name)
{
	int err = 0;

	if (a->thread_count == 0 || global_tid != a->global_tid)
		err = begin_thread(a, global_tid, start_ns);
	if (err)
		return err;
	while (a->depth > 0 && a->stack[a->depth - 1].end_ns <= start_ns)
		pop(a);
	if (a->total_ns > INT64_MAX)
		return fault_set(a->fault, -EPROTO, "", "the calls up to the %" PRIu64 "th last longer than 292 years",
		                 a->rows);
	if (a->depth == DEPTH_MAX) { /* its time stays with its caller */
		a->deep++;
		return 0;
	}
	if (a->depth > 0 && end_ns > a->stack[a->depth - 1].end_ns) {
		a->clipped++;
		a->cut_ns += end_ns - a->stack[a->depth - 1].end_ns;
		end_ns = a->stack[a->depth - 1].end_ns;
	}
	a->nameless += name->is_empty;
	a->stack[a->depth] = (struct call){.start_ns = start_ns, .end_ns = end_ns};
	a->stack[a->depth].node =
		builder_child(a->to, a->thread, a->depth ? a->stack[a->depth - 1].node : 0, name->symbol, 0);
	a->depth++;
	return builder_error(a->to);
}

static int take_row(struct ascend *a, sqlite3_stmt *stmt)
{
	int64_t start_ns = sqlite3_column_int64(stmt, 1), end_ns = sqlite3_column_int64(stmt, 2);
	const struct name *name = NULL;

	a->rows++;
	if (sqlite3_column_type(stmt, 3) != SQLITE_NULL)
		name = find_name(a, sqlite3_column_int64(stmt, 3));
	name = name ? name : &a->unknown;
	if (name->is_step) {
		a->steps++;
	} else if (sqlite3_column_type(stmt, 0) == SQLITE_NULL || sqlite3_column_type(stmt, 1) == SQLITE_NULL ||
	           sqlite3_column_type(stmt, 2) == SQLITE_NULL || start_ns < 0) {
		a->no_time++;
	} else if (end_ns <= start_ns) {
		a->backwards++;
	} else {
		return add_call(a, (uint64_t)sqlite3_column_int64(stmt, 0), (uint64_t)start_ns, (uint64_t)end_ns, name);
	}
	return 0;
}

/* Older files lack columns; without times there is nothing to show. Times are stored as text in some. */
static int read_calls(struct ascend *a)
{
	bool has_tid = ascend_db_has_column(&a->db, "PYTORCH_API", "globalTid");
	const char *sql =
		has_tid ? "SELECT CAST(globalTid AS INTEGER), CAST(startNs AS INTEGER), CAST(endNs AS INTEGER), "
			  "CAST(name AS INTEGER) FROM PYTORCH_API ORDER BY 1, 2, 3 DESC, 4"
			: "SELECT 0, CAST(startNs AS INTEGER), CAST(endNs AS INTEGER), "
			  "CAST(name AS INTEGER) FROM PYTORCH_API ORDER BY 2, 3 DESC, 4";
	sqlite3_stmt *stmt;
	int result = sqlite3_prepare_v2(a->db.db, sql, -1, &stmt, NULL), err = 0;

	while (!err && (result == SQLITE_OK || result == SQLITE_ROW)) {
		result = sqlite3_step(stmt);
		if (result == SQLITE_ROW)
			err = take_row(a, stmt);
	}
	sqlite3_finalize(stmt);
	if (!err && result != SQLITE_DONE)
		err = ascend_db_fault(result, "table PYTORCH_API", a->fault);
	end_thread(a);
	return err;
}

static int check_columns(struct ascend *a)
{
	static const struct {
		const char *table, *column;
	} needed[] = {{"PYTORCH_API", "startNs"},
	              {"PYTORCH_API", "endNs"},
	              {"PYTORCH_API", "name"},
	              {"STRING_IDS", "id"},
	              {"STRING_IDS", "value"}};

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!ascend_db_has_column(&a->db, needed[i].table, needed[i].column))
			return fault_set(a->fault, -EPROTO, "", "its table %s has no column %s", needed[i].table,
			                 needed[i].column);
	return 0;
}

static void say(struct ascend *a)
{
	const struct {
		const char *key, *label;
		uint64_t number;
		bool loss;
	} notes[] = {
		{"calls", "calls in the database", a->rows, false},
		{"skipped_steps", "skipped: profiler steps", a->steps, false},
		{"skipped_no_time", "skipped: no time or thread", a->no_time, true},
		{"skipped_backwards", "skipped: end not after start", a->backwards, true},
		{"clipped_calls", "cut at their caller's end", a->clipped, true},
		{"clipped_us", "time that was cut so, in \u00b5s", (a->cut_ns + 500) / 1000, true},
		{"unknown_names", "calls without a name", a->nameless, true},
		{"too_deep", "left out: over 1,000 deep", a->deep, true},
		{"unread_log", "logs beside it, not read", a->db.has_wal, true},
	};

	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++)
		builder_note(a->to, notes[i].key, notes[i].label, (double)notes[i].number, notes[i].loss);
}

/* Times since 1970 in all files seen; the profile's start is a point in time only then. */
static void set_start(struct builder *to, uint64_t first_ns)
{
	const uint64_t year_2001_ns = UINT64_C(1000000000000000000);

	if (first_ns >= year_2001_ns && builder_profile(to)->wall_start_ns == 0)
		builder_profile(to)->wall_start_ns = first_ns;
}

int ascend_read(struct input *from, struct builder *to, struct fault *fault)
{
	struct ascend *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return fault_set(fault, -ENOMEM, "", "out of memory");
	a->to = to;
	a->fault = fault;
	builder_profile(to)->imported = true;
	builder_profile(to)->uncounted = true; /* calls */
	builder_value(to, "time", "nanoseconds", VALUE_WALL);
	err = ascend_db_open(&a->db, from, fault);
	if (!err) {
		a->unknown = make_name(a, 0, "", 0);
		err = check_columns(a);
		if (!err)
			err = read_names(a);
		if (!err)
			err = read_calls(a);
		if (!err && a->thread_count == 0)
			err = a->rows ? fault_set(fault, -EPROTO, "", "none of its %" PRIu64 " calls has a time", a->rows)
			              : fault_set(fault, -EPROTO, "", "it has no calls: its table PYTORCH_API is empty");
		say(a);
		set_start(to, a->first_ns);
		ascend_db_close(&a->db);
	}
	buf_release(&a->names);
	lookup_release(&a->by_id);
	free(a);
	return err ? err : builder_error(to);
}
