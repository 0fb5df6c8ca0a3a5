/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/difference.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "exporters/walk.h"

/* Two-sided, 95 %. */
static const double NOISE_Z = 1.959964;
/* Of hits, on each side, for a normal distribution to stand in for the binomial one (Cochran's rule). */
static const double HITS_MIN = 5;

void difference_init(struct difference *d)
{
	*d = (struct difference){.has_samples = true, .is_time = true, .unit = "seconds"};
}

void difference_release(struct difference *d)
{
	text_set_release(&d->texts);
	pair_set_release(&d->functions);
	free(d->rows);
	d->rows = NULL;
}

static struct ranking by_weight_of(const struct profile *before, const struct profile *after)
{
	enum value_index a = profile_weight(before), b = profile_weight(after);
	bool same = a == b && strcmp(before->values[a].unit, after->values[b].unit) == 0;

	return (struct ranking){.by = same ? a : VALUE_SAMPLES, .label = "self"};
}

/* An empty profile has no say. */
static bool is_empty(const struct profile *profile)
{
	return profile_sum(profile, VALUE_SAMPLES) == 0;
}

struct ranking difference_ranking(const struct profile *before, const struct profile *after, bool by_weight)
{
	struct ranking a = ranking_of(is_empty(before) ? after : before), b = ranking_of(is_empty(after) ? before : after);

	if (by_weight || !ranking_is_part(&a) || !ranking_is_part(&b))
		return by_weight_of(before, after);
	if (a.by == b.by)
		return a;
	return (struct ranking){.by = VALUE_WALL, .less_idle = true, .label = "running"};
}

/* The index of the row of a function, added when there is none yet; INTERN_FAILED: no memory. */
static uint32_t row_of(struct difference *d, enum side side, const char *name, const char *file)
{
	uint32_t name_number = text_set_add(&d->texts, name, strlen(name)), index = INTERN_FAILED;
	uint32_t file_number = text_set_add(&d->texts, file, strlen(file));

	if (d->row_count == d->row_room) {
		uint32_t room = d->row_room ? 2 * d->row_room : 256;
		struct difference_row *larger =
			room < INTERN_FAILED / 2 ? realloc(d->rows, room * sizeof(*larger)) : NULL;

		if (!larger)
			goto fail;
		d->rows = larger;
		d->row_room = room;
	}
	if (name_number != INTERN_FAILED && file_number != INTERN_FAILED)
		index = pair_set_add(&d->functions, name_number, file_number);
	if (index == INTERN_FAILED)
		goto fail;
	if (index == d->row_count)
		d->rows[d->row_count++] = (struct difference_row){
			.name = name_number, .file = file_number, .file_before = file_number};
	d->rows[index].in[side] = true;
	return index;
fail:
	d->err = -ENOMEM;
	return INTERN_FAILED;
}

/* The line after stands; before, where there is no other. */
static void set_line(struct difference_row *row, uint32_t line, enum side side)
{
	if (line && (side == AFTER || row->line == 0))
		row->line = line;
}

/* --- from a profile --- */

struct side_fold {
	struct difference *d;
	enum side side;
	double scale;
	const uint32_t *rows; /* of each symbol */
	uint32_t *open;       /* frames of each row on the path from the root to here */
};

static double amount(const struct side_fold *f, const uint64_t values[VALUE_COUNT])
{
	const struct ranking *ranking = &f->d->ranking;
	uint64_t states[STATE_COUNT], waiting;

	if (!f->d->waiting)
		return (double)ranking_amount(ranking, values) * f->scale;
	values_states(values, states);
	waiting = states[STATE_IDLE] + (ranking->less_idle ? 0 : states[STATE_GIL_WAIT]);
	return (double)waiting * f->scale;
}

static int fold_tree(const struct side_fold *f, const struct thread_tree *tree)
{
	uint64_t *totals = profile_totals(tree);
	uint32_t at = 0, next, left;

	if (!totals)
		return -ENOMEM;
	f->d->wholes[f->side].self += f->d->waiting ? (double)totals[VALUE_WALL] * f->scale : amount(f, totals);
	f->d->wholes[f->side].self_samples += totals[VALUE_SAMPLES];
	while ((next = walk_next(tree, at, &left)) != 0) {
		const struct node *node = &tree->nodes[next];
		uint32_t row = f->rows[node->symbol];
		struct side_sums *sums = &f->d->rows[row].sides[f->side];

		for (; left > 0; left--) {
			f->open[f->rows[tree->nodes[at].symbol]]--;
			at = tree->nodes[at].parent;
		}
		sums->self += amount(f, node->self);
		sums->self_samples += node->self[VALUE_SAMPLES];
		if (f->open[row]++ == 0) {
			sums->total += amount(f, totals + (size_t)next * VALUE_COUNT);
			sums->total_samples += totals[(size_t)next * VALUE_COUNT];
		}
		at = next;
	}
	for (; at; at = tree->nodes[at].parent)
		f->open[f->rows[tree->nodes[at].symbol]]--;
	free(totals);
	return 0;
}

/* Samples that were idle in part, or had a part of the CPU, count in part: as time divided by that of one. Where each has a weight w from 0 to 1, they prove
 * as much as (Σw)² / Σw² whole ones, which is no less than this Σw. */
static void count_parts(struct difference *d, enum side side, uint64_t wall_ns)
{
	struct side_sums *whole = &d->wholes[side];
	double per_s = wall_ns ? (double)whole->self_samples * (double)NS_PER_S / (double)wall_ns : 0;

	for (uint32_t i = 0; i < d->row_count; i++) {
		struct side_sums *sums = &d->rows[i].sides[side];

		sums->self_samples = (uint64_t)llround(sums->self * per_s);
		sums->total_samples = (uint64_t)llround(sums->total * per_s);
	}
	whole->self_samples = (uint64_t)llround(whole->self * per_s);
}

int difference_add_profile(struct difference *d, enum side side, const struct profile *profile)
{
	enum value_index by = d->ranking.by;
	uint32_t *rows = calloc(profile->symbol_count + (size_t)1, sizeof(*rows));
	struct side_fold f = {.d = d, .side = side, .rows = rows, .scale = 1};

	d->is_time &= strcmp(profile->values[by].unit, "nanoseconds") == 0;
	if (d->is_time)
		f.scale = 1 / (double)NS_PER_S;
	else
		d->unit = by == VALUE_SAMPLES ? "samples" : profile->values[by].unit;
	if (profile->t_end_ns > profile->t_start_ns)
		d->duration_s[side] = (double)(profile->t_end_ns - profile->t_start_ns) / (double)NS_PER_S;
	for (uint32_t i = 0; rows && i < profile->symbol_count && !d->err; i++) {
		const struct symbol *symbol = &profile->symbols[i];

		rows[i] = row_of(d, side, symbol->name, symbol->file);
		if (!d->err)
			set_line(&d->rows[rows[i]], symbol->first_line, side);
	}
	f.open = calloc(d->row_count + (size_t)1, sizeof(*f.open));
	if (!rows || !f.open)
		d->err = -ENOMEM;
	for (uint32_t i = 0; i < profile->thread_count && !d->err; i++)
		d->err = fold_tree(&f, &profile->threads[i]);
	d->samples[side] = d->wholes[side].self_samples;
	if (ranking_is_part(&d->ranking))
		count_parts(d, side, profile_sum(profile, VALUE_WALL));
	free(rows);
	free(f.open);
	return d->err;
}

int difference_add_callgraph(struct difference *d, enum side side, const struct callgraph *graph)
{
	d->has_samples = false; /* calls are counted there, not samples */
	if (!graph->is_time) {
		d->is_time = false;
		d->unit = graph->unit;
	}
	d->wholes[side].self += graph->sampled_s;
	for (uint32_t i = 0; i < graph->function_count && !d->err; i++) {
		const struct callgraph_function *function = &graph->functions[i];
		uint32_t row = row_of(d, side, callgraph_name(graph, i), callgraph_file(graph, i));

		if (d->err)
			break;
		set_line(&d->rows[row], function->line, side);
		d->rows[row].sides[side].self += function->sums.self_s;
		d->rows[row].sides[side].total += function->sums.total_s;
	}
	return d->err;
}

/* --- what changed --- */

const char *difference_shares_of(const struct difference *d)
{
	return d->ranking.by == VALUE_CPU ? "CPU time" : d->ranking.less_idle ? "time that is not idle" : "all that was sampled";
}

double difference_percent(const struct difference *d, enum side side, double part)
{
	return d->wholes[side].self > 0 ? 100 * part / d->wholes[side].self : 0;
}

struct change difference_test(const uint64_t hits[SIDES], const uint64_t all[SIDES])
{
	double share[SIDES], pooled, error, spread = 0, z;
	struct change change = {0};

	if (all[BEFORE] == 0 || all[AFTER] == 0)
		return change;
	for (int side = 0; side < SIDES; side++) {
		double near = ((double)hits[side] + 1) / ((double)all[side] + 2);

		share[side] = (double)hits[side] / (double)all[side];
		spread += near * (1 - near) / ((double)all[side] + 2);
	}
	pooled = ((double)hits[BEFORE] + (double)hits[AFTER]) / ((double)all[BEFORE] + (double)all[AFTER]);
	error = sqrt(pooled * (1 - pooled) * (1 / (double)all[BEFORE] + 1 / (double)all[AFTER]));
	z = error > 0 ? (share[AFTER] - share[BEFORE]) / error : 0;
	change.points = 100 * (share[AFTER] - share[BEFORE]);
	change.within = 100 * NOISE_Z * sqrt(spread);
	change.is_certain = fabs(z) >= NOISE_Z && pooled * (double)all[BEFORE] >= HITS_MIN &&
	                    pooled * (double)all[AFTER] >= HITS_MIN;
	return change;
}

static struct change change_of(const struct difference *d, const struct difference_row *row, bool total)
{
	const struct side_sums *before = &row->sides[BEFORE], *after = &row->sides[AFTER];
	double points = difference_percent(d, AFTER, total ? after->total : after->self) -
	                difference_percent(d, BEFORE, total ? before->total : before->self);
	uint64_t hits[SIDES] = {total ? before->total_samples : before->self_samples,
	                        total ? after->total_samples : after->self_samples};
	uint64_t all[SIDES] = {d->wholes[BEFORE].self_samples, d->wholes[AFTER].self_samples};
	struct change change = {.is_certain = true};

	if (d->has_samples) {
		change = difference_test(hits, all);
		/* Where weights tell another story than counts, there is none. */
		change.is_certain &= (change.points > 0) == (points > 0);
	}
	change.points = points;
	return change;
}

int difference_finish(struct difference *d)
{
	if (!d->err)
		d->err = difference_match_moved(d);
	for (uint32_t i = 0; i < d->row_count; i++) {
		d->rows[i].self = change_of(d, &d->rows[i], false);
		d->rows[i].total = change_of(d, &d->rows[i], true);
	}
	return d->err;
}

const struct change *difference_change(const struct difference_row *row, enum difference_key key)
{
	return key == DIFFERENCE_TOTAL ? &row->total : &row->self;
}

enum difference_kind difference_kind(const struct difference_row *row, enum difference_key key)
{
	const struct change *change = difference_change(row, key);
	bool before = row->sides[BEFORE].total > 0, after = row->sides[AFTER].total > 0;

	if (before != after)
		return after ? KIND_NEW : KIND_GONE;
	if (fabs(change->points) < 1e-9) /* what rounding leaves */
		return KIND_SAME;
	return change->points > 0 ? KIND_GREW : KIND_SHRANK;
}

const char *difference_kind_text(enum difference_kind kind)
{
	static const char *const texts[] = {[KIND_SAME] = "same",
	                                    [KIND_NEW] = "new",
	                                    [KIND_GREW] = "grew",
	                                    [KIND_SHRANK] = "shrank",
	                                    [KIND_GONE] = "gone"};

	return texts[kind];
}

const char *difference_name(const struct difference *d, const struct difference_row *row)
{
	return text_set_get(&d->texts, row->name, NULL);
}

const char *difference_file(const struct difference *d, const struct difference_row *row)
{
	return text_set_get(&d->texts, row->file, NULL);
}

struct sorting {
	const struct difference *d;
	enum difference_key key;
};

static int compare_sizes(double a, double b)
{
	return (fabs(a) < fabs(b)) - (fabs(a) > fabs(b));
}

static int compare_rows(const void *left, const void *right, void *context)
{
	const struct sorting *s = context;
	const struct difference_row *a = left, *b = right;
	int order = 0;

	if (s->key != DIFFERENCE_NAME) {
		order = compare_sizes(difference_change(a, s->key)->points, difference_change(b, s->key)->points);
		if (!order)
			order = compare_sizes(a->total.points, b->total.points);
	}
	if (!order)
		order = strcmp(difference_name(s->d, a), difference_name(s->d, b));
	return order ? order : strcmp(difference_file(s->d, a), difference_file(s->d, b));
}

void difference_sort(struct difference *d, enum difference_key key)
{
	struct sorting sorting = {.d = d, .key = key};

	if (d->row_count)
		qsort_r(d->rows, d->row_count, sizeof(*d->rows), compare_rows, &sorting);
}
