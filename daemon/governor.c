/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/governor.h"

#include <math.h>

enum { SLOWDOWN_MOST = 256 };

/* It slows down as far as the excess asks for, at once; it speeds up a step at a time, when that step would leave some room. However much the
 * rest takes, sampling keeps a part of the budget: to sample less and less would not bring the rest down. */
static const double ROOM = 0.9, LEAST = 0.2;

void governor_init(struct governor *g, double budget)
{
	*g = (struct governor){.budget = budget, .slowdown = 1};
}

static uint32_t wanted(const struct governor *g)
{
	double left = g->budget - (g->share - g->sampling), factor;

	if (left < g->budget * LEAST)
		left = g->budget * LEAST;
	factor = ceil(g->slowdown * g->sampling / left);
	if (g->sampling > left)
		return factor < SLOWDOWN_MOST ? (uint32_t)factor : SLOWDOWN_MOST;
	if (g->slowdown > 1 && g->sampling * g->slowdown / (g->slowdown - 1) < left * ROOM)
		return g->slowdown - 1;
	return g->slowdown;
}

bool governor_look(struct governor *g, uint64_t now_ns, uint64_t used_ns, uint64_t sampling_ns)
{
	unsigned at = g->looks % (GOVERNOR_LOOKS + 1), first;
	uint32_t before = g->slowdown;

	g->used_ns[at] = used_ns;
	g->sampling_ns[at] = sampling_ns;
	g->t_ns[at] = now_ns;
	g->looks++;
	g->settled++;
	if (g->looks < 2)
		return false;
	first = g->looks > GOVERNOR_LOOKS ? g->looks % (GOVERNOR_LOOKS + 1) : 0;
	if (now_ns > g->t_ns[first]) {
		g->share = (double)(used_ns - g->used_ns[first]) / (double)(now_ns - g->t_ns[first]);
		g->sampling = (double)(sampling_ns - g->sampling_ns[first]) / (double)(now_ns - g->t_ns[first]);
	}
	/* What was spent at another rate says nothing of this one; nor does the start, in which processes are opened. */
	if (g->budget > 0 && g->settled <= GOVERNOR_LOOKS + 2)
		return false;
	g->slowdown = g->budget > 0 ? wanted(g) : 1; /* the budget may be gone since it slowed down */
	if (g->slowdown == before)
		return false;
	g->settled = 0;
	return true;
}
