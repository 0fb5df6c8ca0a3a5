/* SPDX-License-Identifier: Apache-2.0 */
/* Functions whose file was renamed or lies elsewhere after: each would be one that is gone and one that is new.
 *
 * A function that one side alone has is looked for on the other by its name and the last three parts of its file's path, then by the last two, the
 * last one, and by its name alone. It is matched where just one function on each side fits: what fits twice may be either, and stays as it is. */
#include "exporters/difference.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS_MAX = 3 };

struct matching {
	struct difference *d;
	unsigned parts; /* of a path, that have to be alike */
};

static bool is_lone(const struct difference_row *row)
{
	return row->in[BEFORE] != row->in[AFTER];
}

/* The last `parts` of a path; all of it where it has no more. */
static const char *path_end(const char *path, unsigned parts)
{
	const char *at = path + strlen(path);

	for (; parts > 0 && at > path; at--)
		if (at[-1] == '/' && --parts == 0)
			break;
	return at;
}

static int compare(const void *left, const void *right, void *context)
{
	const struct matching *m = context;
	const struct difference_row *a = &m->d->rows[*(const uint32_t *)left], *b = &m->d->rows[*(const uint32_t *)right];

	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	return strcmp(path_end(difference_file(m->d, a), m->parts), path_end(difference_file(m->d, b), m->parts));
}

/* The row after goes on as the one before; that is left without a side. */
static void match(struct difference_row *before, struct difference_row *after)
{
	after->sides[BEFORE] = before->sides[BEFORE];
	after->file_before = before->file;
	after->in[BEFORE] = true;
	before->in[BEFORE] = false;
}

/* Returns how many are still alone. */
static uint32_t match_all(struct matching *m, uint32_t *lone, uint32_t count)
{
	struct difference_row *rows = m->d->rows;
	uint32_t left = 0;

	qsort_r(lone, count, sizeof(*lone), compare, m);
	for (uint32_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && compare(&lone[i], &lone[end], m) == 0;)
			end++;
		if (end == i + 2 && rows[lone[i]].in[BEFORE] != rows[lone[i + 1]].in[BEFORE]) {
			bool first = rows[lone[i]].in[BEFORE];

			match(&rows[lone[first ? i : i + 1]], &rows[lone[first ? i + 1 : i]]);
			continue;
		}
		for (uint32_t at = i; at < end; at++)
			lone[left++] = lone[at];
	}
	return left;
}

static void drop_matched(struct difference *d)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < d->row_count; i++)
		if (d->rows[i].in[BEFORE] || d->rows[i].in[AFTER])
			d->rows[kept++] = d->rows[i];
	d->row_count = kept;
}

int difference_match_moved(struct difference *d)
{
	uint32_t *lone = calloc(d->row_count + (size_t)1, sizeof(*lone)), count = 0;
	struct matching m = {.d = d};

	if (!lone)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->row_count; i++)
		if (is_lone(&d->rows[i]) && difference_file(d, &d->rows[i])[0])
			lone[count++] = i;
	for (unsigned i = 0; i <= PARTS_MAX && count > 0; i++) {
		m.parts = PARTS_MAX - i;
		count = match_all(&m, lone, count);
	}
	free(lone);
	drop_matched(d);
	return 0;
}
