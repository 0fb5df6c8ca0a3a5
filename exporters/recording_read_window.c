/* SPDX-License-Identifier: Apache-2.0 */
/* What was sampled and lost in a window of a recording. Facts are totals, written each second or so: at the window's ends they are taken to have
 * grown evenly between the two that lie around it. Samples are counted, so these are exact. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/recording_reader.h"

#define FIELD(name) ((offsetof(struct rec_facts, name) - offsetof(struct rec_facts, interval_ns)) / 8)

/* The last facts at or before a moment, and the first behind it. */
struct around {
	uint64_t before[FACTS_FIELDS], behind[FACTS_FIELDS];
	bool has_behind;
};

struct window_facts {
	struct around from, to;
};

static void window_ns(const struct reader *r, uint64_t *ret_from_ns, uint64_t *ret_to_ns)
{
	builder_window(r->to, ret_from_ns, ret_to_ns);
	*ret_from_ns += r->base_ns;
	*ret_to_ns = *ret_to_ns ? *ret_to_ns + r->base_ns : UINT64_MAX;
}

static void look(struct around *around, const struct read_process *process, uint64_t t_ns)
{
	if (process->facts[FIELD(t_last_ns)] <= t_ns) {
		memcpy(around->before, process->facts, sizeof(around->before));
	} else if (!around->has_behind) {
		memcpy(around->behind, process->facts, sizeof(around->behind));
		around->has_behind = true;
	}
}

bool reader_window_facts(struct reader *r, struct read_process *process)
{
	uint64_t from_ns, to_ns;

	if (!builder_has_window(r->to))
		return true;
	if (!process->window)
		process->window = calloc(1, sizeof(*process->window));
	if (!process->window)
		return false;
	window_ns(r, &from_ns, &to_ns);
	if (r->base_ns == 0) /* no run yet */
		from_ns = to_ns = UINT64_MAX;
	look(&process->window->from, process, from_ns);
	look(&process->window->to, process, to_ns);
	return true;
}

/* A total at a moment. Facts may be hostile: what falls stands still. */
static uint64_t at(const struct around *around, unsigned field, uint64_t start_ns, uint64_t t_ns)
{
	uint64_t low = around->before[field], high = around->behind[field];
	uint64_t low_ns = around->before[FIELD(t_last_ns)], high_ns = around->behind[FIELD(t_last_ns)];

	low_ns = low_ns ? low_ns : start_ns;
	if (!around->has_behind || high <= low || high_ns <= low_ns || t_ns <= low_ns)
		return low;
	return low + (uint64_t)((double)(high - low) * ((double)(t_ns - low_ns) / (double)(high_ns - low_ns)));
}

/* A window from the beginning on holds what was before the first sample, too. */
void reader_window_cut(const struct reader *r, struct read_process *process)
{
	uint64_t from_ns, to_ns, *facts = process->facts, start_ns = facts[FIELD(t_start_ns)];
	bool from_start;

	if (!process->window)
		return;
	window_ns(r, &from_ns, &to_ns);
	from_start = from_ns == r->base_ns;
	for (unsigned i = FIELD(ticks); i < FACTS_FIELDS; i++) {
		uint64_t first = from_start ? 0 : at(&process->window->from, i, start_ns, from_ns),
			 last = at(&process->window->to, i, start_ns, to_ns);

		if (i != FIELD(stop_max_ns)) /* no total: it may have been in the window */
			facts[i] = last > first ? last - first : 0;
	}
	facts[FIELD(t_start_ns)] = start_ns > from_ns ? start_ns : from_ns;
	if (facts[FIELD(t_last_ns)] > to_ns)
		facts[FIELD(t_last_ns)] = to_ns;
	if (facts[FIELD(t_last_ns)] < facts[FIELD(t_start_ns)])
		facts[FIELD(t_last_ns)] = facts[FIELD(t_start_ns)];
}
