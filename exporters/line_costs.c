/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/line_costs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int make_room(struct line_costs *costs)
{
	uint32_t more = costs->row_room ? costs->row_room * 2 : 64;
	struct line_cost *larger;

	if (costs->places.count < costs->row_room)
		return 0;
	larger = more < INTERN_FAILED / 2 ? realloc(costs->rows, more * sizeof(*larger)) : NULL;
	if (!larger)
		return -ENOMEM;
	costs->rows = larger;
	costs->row_room = more;
	return 0;
}

int line_costs_add(struct line_costs *costs, const struct line_cost *cost)
{
	uint32_t count = costs->places.count, index;

	if (make_room(costs))
		return -ENOMEM;
	index = pair_set_add(&costs->places, cost->of, cost->line);
	if (index == INTERN_FAILED)
		return -ENOMEM;
	if (index == count) {
		costs->rows[index] = *cost;
		return 0;
	}
	costs->rows[index].calls += cost->calls;
	costs->rows[index].samples += cost->samples;
	costs->rows[index].weight += cost->weight;
	costs->rows[index].cpu_ns += cost->cpu_ns;
	costs->rows[index].gil_ns += cost->gil_ns;
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct line_cost *left = a, *right = b;

	if (left->of != right->of)
		return left->of < right->of ? -1 : 1;
	return (left->line > right->line) - (left->line < right->line);
}

struct line_cost *line_costs_sorted(const struct line_costs *costs)
{
	struct line_cost *sorted = calloc(costs->places.count + (size_t)1, sizeof(*sorted));

	if (sorted && costs->places.count > 0) {
		memcpy(sorted, costs->rows, costs->places.count * sizeof(*sorted));
		qsort(sorted, costs->places.count, sizeof(*sorted), by_place);
	}
	return sorted;
}

const struct line_cost *line_costs_of(const struct line_cost *sorted, uint32_t count, uint32_t of, uint32_t *ret_count)
{
	uint32_t low = 0, high = count, end;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (sorted[middle].of < of)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < count && sorted[end].of == of;)
		end++;
	*ret_count = end - low;
	return sorted + low;
}

void line_costs_release(struct line_costs *costs)
{
	pair_set_release(&costs->places);
	free(costs->rows);
	*costs = (struct line_costs){0};
}
