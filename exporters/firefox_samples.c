/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's samples in the Firefox Profiler's format. Each is a row of its own as long as there are not too many; then some
 * alike of one run share a row, and their number is its weight. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "exporters/firefox.h"
#include "exporters/json_parts.h"

/* Some 200 MB of text. */
#define ROWS_MAX (UINT64_C(1) << 24)

struct sample_row {
	uint64_t t_ns; /* of its first sample, never falling */
	uint32_t node, count;
	unsigned status;
};

struct sample_rows {
	const struct thread_tree *thread;
	uint32_t row_samples;
	size_t at;     /* run */
	uint32_t done; /* samples of it */
	uint64_t t_ns;
};

static bool next_row(struct sample_rows *rows, struct sample_row *ret_row)
{
	while (rows->at < rows->thread->run_count) {
		const struct run *run = &rows->thread->runs[rows->at];
		uint64_t t_ns = run->t_first_ns;
		uint32_t left = run->count - rows->done;

		if (left == 0) {
			rows->at++;
			rows->done = 0;
			continue;
		}
		if (rows->done)
			t_ns += (uint64_t)run->span_ns * rows->done / (run->count - 1u);
		rows->t_ns = t_ns > rows->t_ns ? t_ns : rows->t_ns;
		*ret_row = (struct sample_row){.t_ns = rows->t_ns,
		                               .node = run->node,
		                               .status = run->status,
		                               .count = left < rows->row_samples ? left : rows->row_samples};
		rows->done += ret_row->count;
		return true;
	}
	return false;
}

uint32_t firefox_row_samples(const struct profile *profile)
{
	uint32_t row_samples = 1;

	for (uint64_t rows = UINT64_MAX; rows > ROWS_MAX && row_samples <= RUN_COUNT_MAX; row_samples *= 2) {
		rows = 0;
		for (uint32_t i = 0; i < profile->thread_count; i++)
			for (size_t j = 0; j < profile->threads[i].run_count; j++)
				rows += (profile->threads[i].runs[j].count + row_samples - 1) / row_samples;
		if (rows <= ROWS_MAX)
			break;
	}
	return row_samples;
}

/* How many rows there are. */
static uint64_t write_stack_column(struct sample_rows rows, struct writer *to)
{
	struct sample_row row;
	uint64_t count = 0;

	writer_puts(to, "\"stack\":[");
	for (; next_row(&rows, &row) && !to->err; count++) {
		if (row.node)
			json_item(to, count == 0, row.node - 1);
		else
			writer_puts(to, count == 0 ? "null" : ",null");
	}
	writer_putc(to, ']');
	return count;
}

static void write_time_column(struct sample_rows rows, uint64_t base_ns, struct writer *to)
{
	struct sample_row row;
	uint64_t before_ns = base_ns;

	writer_puts(to, ",\n\"timeDeltas\":[");
	for (bool first = true; next_row(&rows, &row) && !to->err; first = false) {
		if (!first)
			writer_putc(to, ',');
		json_decimal(to, row.t_ns > before_ns ? row.t_ns - before_ns : 0, 6);
		before_ns = row.t_ns > before_ns ? row.t_ns : before_ns;
	}
	writer_putc(to, ']');
}

/* The samples of a node that its CPU time goes to: those in which the thread was runnable, or all where it never was. */
struct cpu_share {
	uint64_t runnable, all, given;
};

static bool has_share(const struct cpu_share *share, const struct sample_row *row)
{
	return share->runnable == 0 || row->status & STATUS_RUNNABLE;
}

/* The kernel's count, which the profile has by node: each node's is spread evenly over its samples, in whole nanoseconds whose sum is exact. */
static void write_cpu_column(struct sample_rows rows, struct writer *to)
{
	struct cpu_share *shares = calloc(rows.thread->node_count, sizeof(*shares));
	struct sample_rows pass = rows;
	struct sample_row row;

	if (!shares) {
		writer_fail(to, -ENOMEM);
		return;
	}
	while (next_row(&pass, &row)) {
		shares[row.node].all += row.count;
		shares[row.node].runnable += row.status & STATUS_RUNNABLE ? row.count : 0;
	}
	writer_puts(to, ",\n\"threadCPUDelta\":[");
	for (bool first = true; next_row(&rows, &row) && !to->err; first = false) {
		struct cpu_share *share = &shares[row.node];
		unsigned __int128 cpu_ns = rows.thread->nodes[row.node].self[VALUE_CPU];
		uint64_t whole = share->runnable ? share->runnable : share->all, before = share->given;

		if (has_share(share, &row))
			share->given += row.count;
		json_item(to, first, (uint64_t)(cpu_ns * share->given / whole - cpu_ns * before / whole));
	}
	writer_putc(to, ']');
	free(shares);
}

void firefox_write_samples(const struct profile *profile, const struct thread_tree *thread, uint64_t base_ns,
                           uint32_t row_samples, struct writer *to)
{
	struct sample_rows start = {.thread = thread, .row_samples = row_samples}, rows = start;
	struct sample_row row;
	uint64_t count;

	writer_putc(to, '{');
	count = write_stack_column(start, to);
	write_time_column(start, base_ns, to);
	if (profile_has(profile, VALUE_CPU))
		write_cpu_column(start, to);
	writer_puts(to, ",\n\"weight\":");
	if (row_samples > 1) {
		writer_putc(to, '[');
		for (bool first = true; next_row(&rows, &row) && !to->err; first = false)
			json_item(to, first, row.count);
		writer_putc(to, ']');
	} else {
		writer_puts(to, "null");
	}
	writer_printf(to, ",\"weightType\":\"samples\",\"length\":%" PRIu64 "}", count);
}
