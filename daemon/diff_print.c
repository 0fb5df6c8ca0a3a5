/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/diff_print.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "exporters/ranking.h"

enum {
	COLUMNS_DEFAULT = 120,
	COLUMNS_WHOLE = 110, /* from here on all columns fit, and leave room for the function */
};

/* A smaller change reads 0.00, and is none. */
#define SHOWN_POINTS 0.005

static const char *const side_names[SIDES] = {[BEFORE] = "before", [AFTER] = "after"};

static unsigned columns_of(const struct diff_view *view)
{
	return view->columns ? view->columns : COLUMNS_DEFAULT;
}

/* In a narrow terminal there is only what the rows are sorted by. */
static bool is_whole(const struct diff_view *view)
{
	return columns_of(view) >= COLUMNS_WHOLE;
}

static bool shows(const struct diff_view *view, bool total)
{
	return is_whole(view) || total == (view->key == DIFFERENCE_TOTAL);
}

static void end_line(struct buf *line, struct writer *to)
{
	while (line->bytes > 0 && line->data[line->bytes - 1] == ' ')
		line->bytes--;
	buf_putc(line, '\n');
	if (line->err && !to->err)
		to->err = line->err;
	writer_add(to, line->data, line->bytes);
	line->bytes = 0;
}

static void heading(const struct diff_view *view, struct writer *to, const char *text)
{
	writer_printf(to, view->color ? "\n\033[1m%s\033[0m\n" : "\n%s\n", text);
}

static bool has_rates(const struct difference *d)
{
	return d->is_time && d->duration_s[BEFORE] > 0 && d->duration_s[AFTER] > 0;
}

static double rate(const struct difference *d, enum side side, double amount_s)
{
	return d->duration_s[side] > 0 ? amount_s / d->duration_s[side] : 0;
}

/* One of the two inputs, and what was lost in it. */
static void print_side(const struct diff_view *view, enum side side, struct writer *to)
{
	const struct difference *d = view->difference;
	struct buf line = {0};
	char count[32];

	buf_printf(&line, "  %-7s ", side_names[side]);
	utf8_fit(&line, view->titles[side], is_whole(view) ? 60 : 25, true);
	buf_puts(&line, ": ");
	if (d->has_samples) {
		facts_count_text(count, sizeof(count), d->samples[side]);
		buf_printf(&line, "%s sample%s", count, d->samples[side] == 1 ? "" : "s");
	}
	if (!d->has_samples || strcmp(d->unit, "samples") != 0) {
		buf_printf(&line, "%s%.6g ", d->has_samples ? ", " : "", d->wholes[side].self);
		utf8_fit(&line, d->wholes[side].self == 1 && d->is_time ? "second" : d->unit, 40, false);
		buf_puts(&line, ranking_is_part(&d->ranking) ? " " : "");
		buf_puts(&line, ranking_is_part(&d->ranking) ? d->ranking.label : "");
	}
	if (d->duration_s[side] > 0)
		buf_printf(&line, " in %.3f s", d->duration_s[side]);
	end_line(&line, to);
	for (size_t i = 0; view->facts[side] && i < view->facts[side]->count; i++) {
		const struct fact *fact = &view->facts[side]->items[i];

		if (fact->weight != FACT_LOSS)
			continue;
		buf_puts(&line, "        ! ");
		utf8_fit(&line, fact->label, 60, false);
		buf_printf(&line, ": %s", fact->text);
		end_line(&line, to);
	}
	buf_release(&line);
}

static void add_change(struct buf *line, const struct difference *d, const struct difference_row *row, bool total)
{
	const struct change *change = total ? &row->total : &row->self;
	const struct side_sums *before = &row->sides[BEFORE], *after = &row->sides[AFTER];

	buf_printf(line, "%7.2f %7.2f %+8.2f", difference_percent(d, BEFORE, total ? before->total : before->self),
	           difference_percent(d, AFTER, total ? after->total : after->self), change->points);
	if (d->has_samples)
		buf_printf(line, " %6.2f %c ", change->within, change->is_certain ? ' ' : '~');
	else
		buf_puts(line, "      -   ");
}

/* "name (file:line)" in the columns that are left. A name that must be cut leaves room for the line, by which functions that begin alike are told
 * apart. */
static void add_place(struct buf *line, const struct diff_view *view, const struct difference *d, const struct difference_row *row)
{
	unsigned width = columns_of(view), columns = line->bytes < width ? width - (unsigned)line->bytes : 0,
		 room = columns, whole, used, tail;
	const char *name = difference_name(d, row), *file = difference_file(d, row);
	size_t start = line->bytes;
	char number[16] = ")";

	if (view->columns) /* a terminal */
		file = ranking_short_file(file);
	tail = row->line ? (unsigned)snprintf(number, sizeof(number), ":%" PRIu32 ")", row->line) : 1;
	whole = utf8_fit(line, name, UINT32_MAX, false);
	line->bytes = start;
	if (file[0] && columns > 30)
		room = columns * 3 / 5;
	if (file[0] && row->line && whole > columns && columns > 20)
		room = columns - tail - 3 - difference_is_moved(row);
	used = utf8_fit(line, name, room, false);
	if (file[0] == '\0' || columns < used + tail + (whole > columns ? 3 : 6) + difference_is_moved(row))
		return;
	buf_puts(line, difference_is_moved(row) ? " (~" : " (");
	utf8_fit(line, file, columns - used - tail - (difference_is_moved(row) ? 3 : 2), true);
	buf_puts(line, number);
}

static void print_row(const struct diff_view *view, const struct difference *d, const struct difference_row *row, struct writer *to)
{
	enum difference_kind kind = difference_kind(row, view->key);
	struct buf line = {0};

	for (int total = 0; total <= 1; total++)
		if (shows(view, total))
			add_change(&line, d, row, total);
	if (has_rates(d) && is_whole(view))
		buf_printf(&line, "%7.3f %7.3f  ", rate(d, BEFORE, row->sides[BEFORE].self),
		           rate(d, AFTER, row->sides[AFTER].self));
	if (kind == KIND_NEW || kind == KIND_GONE)
		buf_printf(&line, "%-4s ", difference_kind_text(kind));
	else
		buf_puts(&line, "     ");
	add_place(&line, view, d, row);
	end_line(&line, to);
	buf_release(&line);
}

static bool is_in(const struct diff_view *view, const struct difference_row *row, bool grew)
{
	enum difference_kind kind = difference_kind(row, view->key);

	if (fabs(difference_change(row, view->key)->points) < SHOWN_POINTS)
		return false;
	return grew ? kind == KIND_GREW || kind == KIND_NEW : kind == KIND_SHRANK || kind == KIND_GONE;
}

static void print_part_head(const struct diff_view *view, struct writer *to)
{
	bool rates = has_rates(view->difference) && is_whole(view);

	for (int total = 0; total <= 1; total++)
		if (shows(view, total))
			writer_printf(to, "%7s%*s", total ? "total %" : "self %", total ? 0 : 29, "");
	writer_printf(to, rates ? "%27sself s/s\n" : "%s\n", "");
	for (int total = 0; total <= 1; total++)
		if (shows(view, total))
			writer_printf(to, "%s", total && is_whole(view) ? "    before   after   change   95 %" : " before   after   change   95 %");
	writer_puts(to, rates ? "    before   after\n" : "\n");
}

static void print_part(const struct diff_view *view, bool grew, struct writer *to)
{
	const struct difference *d = view->difference;
	uint32_t shown = 0, left_out = 0;

	heading(view, to, grew ? "GREW" : "SHRANK");
	print_part_head(view, to);
	for (uint32_t i = 0; i < d->row_count && !to->err; i++) {
		if (!is_in(view, &d->rows[i], grew))
			continue;
		if (view->limit && shown == view->limit) {
			left_out++;
			continue;
		}
		print_row(view, d, &d->rows[i], to);
		shown++;
	}
	if (!shown)
		writer_puts(to, "  nothing\n");
	if (left_out)
		writer_printf(to, "  and %" PRIu32 " more functions (--limit)\n", left_out);
}

/* Who sleeps, or waits for the GIL, more or less than before: what has changed for certain, up and down together. */
static void print_waiting(const struct diff_view *view, struct writer *to)
{
	const struct difference *d = view->waiting;
	uint32_t shown = 0;

	heading(view, to, "WAITING");
	writer_printf(to, "(%s; shares of all time, beyond the noise)\n",
	              d->ranking.less_idle ? "idle" : "idle, or for the GIL");
	for (uint32_t i = 0; i < d->row_count && !to->err && (!view->limit || shown < view->limit); i++) {
		const struct change *change = difference_change(&d->rows[i], view->key);

		if (!change->is_certain || fabs(change->points) < SHOWN_POINTS)
			continue;
		if (!shown++)
			print_part_head(view, to);
		print_row(view, d, &d->rows[i], to);
	}
	if (!shown)
		writer_puts(to, "  no change\n");
}

void diff_print_table(const struct diff_view *view, struct writer *to)
{
	const struct difference *d = view->difference;
	uint32_t same = 0, moved = 0;

	for (uint32_t i = 0; i < d->row_count; i++)
		moved += difference_is_moved(&d->rows[i]);
	writer_printf(to, "sampled: what changed, in shares of %s on each side%s\n", difference_shares_of(d),
	              ranking_is_part(&d->ranking) ? " (--value wall: of all)" : "");
	for (int side = 0; side < SIDES; side++)
		print_side(view, (enum side)side, to);
	writer_puts(to, "  change in points of percent; 95 %: half of its interval, if samples are\n"
	                "  independent; ~: within the noise\n");
	if (has_rates(d) && is_whole(view))
		writer_puts(to,
		            "  self s/s: seconds of self time for each second of the profile, all threads together\n");
	else if (!is_whole(view))
		writer_printf(to, "  %s, and seconds: in a terminal of %d columns\n",
		              view->key == DIFFERENCE_TOTAL ? "self" : "total", COLUMNS_WHOLE);
	if (moved)
		writer_puts(to, "  (~FILE): the function was in another file before, and is matched by its name\n");
	if (!d->has_samples)
		writer_puts(to, "  without sample counts on both sides there is no interval\n");
	print_part(view, true, to);
	print_part(view, false, to);
	for (uint32_t i = 0; i < d->row_count; i++)
		same += !is_in(view, &d->rows[i], true) && !is_in(view, &d->rows[i], false);
	if (view->waiting)
		print_waiting(view, to);
	if (same)
		writer_printf(to, "\n%" PRIu32 " functions without change\n", same);
}

static void json_amounts(const struct difference *d, const struct difference_row *row, bool total, struct writer *to)
{
	const struct change *change = total ? &row->total : &row->self;

	writer_printf(to, "\"%s\":{", total ? "total" : "self");
	for (int side = 0; side < SIDES; side++) {
		const struct side_sums *sums = &row->sides[side];
		double amount = total ? sums->total : sums->self;

		writer_printf(to, "\"%s\":{\"amount\":%.9g,\"percent\":%.6f", side_names[side], amount,
		              difference_percent(d, (enum side)side, amount));
		if (d->has_samples)
			writer_printf(to, ",\"samples\":%" PRIu64, total ? sums->total_samples : sums->self_samples);
		if (has_rates(d))
			writer_printf(to, ",\"per_second\":%.9g", rate(d, (enum side)side, amount));
		writer_puts(to, "},");
	}
	writer_printf(to, "\"points\":%.6f,", change->points);
	if (d->has_samples)
		writer_printf(to, "\"within\":%.6f,\"significant\":%s}", change->within,
		              change->is_certain ? "true" : "false");
	else
		writer_puts(to, "\"within\":null,\"significant\":null}");
}

static void json_side(const struct diff_view *view, enum side side, struct writer *to)
{
	const struct difference *d = view->difference;
	const struct facts *facts = view->facts[side];

	writer_printf(to, "\"%s\":{\"file\":", side_names[side]);
	writer_json_string(to, view->titles[side]);
	writer_printf(to, ",\"sum\":%.9g", d->wholes[side].self);
	if (d->has_samples)
		writer_printf(to, ",\"samples\":%" PRIu64, d->samples[side]);
	if (d->duration_s[side] > 0)
		writer_printf(to, ",\"duration_s\":%.9g", d->duration_s[side]);
	writer_puts(to, ",\"facts\":{");
	for (size_t i = 0; facts && i < facts->count; i++) {
		if (i)
			writer_putc(to, ',');
		writer_json_string(to, facts->items[i].key);
		writer_printf(to, ":%.17g", facts->items[i].number);
	}
	writer_puts(to, "}},\n");
}

static void json_functions(const struct diff_view *view, const struct difference *d, const char *key, struct writer *to)
{
	writer_printf(to, ",\n\"%s\":[", key);
	for (uint32_t i = 0; i < d->row_count && !to->err && (!view->limit || i < view->limit); i++) {
		const struct difference_row *row = &d->rows[i];

		writer_printf(to, "%s\n{\"name\":", i ? "," : "");
		writer_json_string(to, difference_name(d, row));
		writer_puts(to, ",\"file\":");
		writer_json_string(to, difference_file(d, row));
		if (difference_is_moved(row)) {
			writer_puts(to, ",\"file_before\":");
			writer_json_string(to, text_set_get(&d->texts, row->file_before, NULL));
		}
		writer_printf(to, ",\"line\":%" PRIu32 ",\"change\":\"%s\",", row->line,
		              difference_kind_text(difference_kind(row, view->key)));
		json_amounts(d, row, false, to);
		writer_putc(to, ',');
		json_amounts(d, row, true, to);
		writer_putc(to, '}');
	}
	writer_putc(to, ']');
}

void diff_print_json(const struct diff_view *view, struct writer *to)
{
	const struct difference *d = view->difference;

	writer_puts(to, "{\"version\":1,\n");
	for (int side = 0; side < SIDES; side++)
		json_side(view, (enum side)side, to);
	writer_puts(to, "\"unit\":");
	writer_json_string(to, d->unit);
	writer_printf(to, ",\"shares_of\":\"%s\"", d->ranking.by == VALUE_CPU ? "cpu" : d->ranking.less_idle ? "running" : "all");
	json_functions(view, d, "functions", to);
	if (view->waiting)
		json_functions(view, view->waiting, "waiting", to);
	writer_puts(to, "}\n");
}
