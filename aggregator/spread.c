/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/spread.h"

#include <stdlib.h>

#include "sampler/record.h"

enum { FIRST_PARTS = 8, PARTS_MAX = 512 };
enum { RANK_OTHER, RANK_BLOCKED, RANK_HOLDS, RANK_WAITS, RANK_RUNS };

enum { ALONE_OF = 16 }; /* times that are remembered, about */

/* How late the kernel may count: a tick, the longest of which are so far apart. */
#define TICK_NS UINT64_C(10000000)

void spread_release(struct spread *spread, struct budget *budget)
{
	budget_give(budget, spread->room * sizeof(*spread->parts));
	free(spread->parts);
	*spread = (struct spread){0};
}

/* Who waits for the GIL and is runnable was woken for a look at it, which takes microseconds, and a busy machine lets it wait for them; or it runs C
 * code still, and will wait (mend_status() of sampler/runs.c). Who is blocked in that wait may have run C code since the sample before: pieces of it that
 * are shorter than the interval are hardly ever met. */
static uint32_t rank_of(unsigned status)
{
	if (status & STATUS_RUNNABLE)
		return status & STATUS_GIL_WAIT ? RANK_WAITS : RANK_RUNS;
	if (status & STATUS_GIL)
		return RANK_HOLDS;
	return status & STATUS_GIL_WAIT ? RANK_BLOCKED : RANK_OTHER;
}

static int grow(struct spread *spread, struct budget *budget)
{
	uint32_t more = spread->room ? spread->room : FIRST_PARTS;
	struct spread_part *parts;

	if (spread->room >= PARTS_MAX || !budget_take(budget, more * sizeof(*parts)))
		return -1;
	parts = realloc(spread->parts, (spread->room + more) * sizeof(*parts));
	if (!parts) {
		budget_give(budget, more * sizeof(*parts));
		return -1;
	}
	spread->parts = parts;
	spread->room += more;
	return 0;
}

static int compare_parts(const void *left, const void *right)
{
	const struct spread_part *a = left, *b = right;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return (a->node > b->node) - (a->node < b->node);
}

/* One part for each node of a rank; if that leaves no room either, one for each two: nodes of neighbouring numbers were first met at about the same
 * time, in stacks that are much alike. */
static void join(struct spread *spread)
{
	struct spread_part *parts = spread->parts;
	uint32_t kept = 0, pairs = 0;

	qsort(parts, spread->count, sizeof(*parts), compare_parts);
	for (uint32_t i = 0; i < spread->count; i++) {
		if (kept > 0 && compare_parts(&parts[kept - 1], &parts[i]) == 0)
			parts[kept - 1].weight_ns += parts[i].weight_ns;
		else
			parts[kept++] = parts[i];
	}
	spread->count = kept;
	if (kept <= spread->room / 2)
		return;
	for (uint32_t i = 0; i < kept; i++) {
		struct spread_part part = parts[i];

		if (i + 1 < kept && parts[i + 1].rank == part.rank) {
			i++;
			part.node = part.weight_ns >= parts[i].weight_ns ? part.node : parts[i].node;
			part.weight_ns += parts[i].weight_ns;
		}
		parts[pairs++] = part;
	}
	spread->count = pairs;
}

void spread_add(struct spread *spread, uint32_t node, uint64_t weight_ns, unsigned status, struct budget *budget)
{
	uint32_t rank = rank_of(status);

	spread->any = true;
	spread->last = node;
	if (spread->count == 0 || rank > spread->rank)
		spread->rank = rank;
	if (spread->count > 0) {
		struct spread_part *latest = &spread->parts[spread->count - 1];

		if (latest->node == node && latest->rank == rank) {
			latest->weight_ns += weight_ns;
			return;
		}
	}
	if (spread->count == spread->room && grow(spread, budget) != 0) {
		if (spread->room == 0)
			return; /* `last` gets it all */
		join(spread);
	}
	spread->parts[spread->count++] = (struct spread_part){.node = node, .rank = rank, .weight_ns = weight_ns};
}

/* RANK_OTHER: whatever was there, for a while in which nothing better was. */
static bool is_of(const struct spread_part *part, uint32_t rank)
{
	return part->rank == rank || rank == RANK_OTHER;
}

static unsigned __int128 weight_of(const struct spread *spread, uint32_t rank)
{
	unsigned __int128 all = 0;

	for (uint32_t i = 0; i < spread->count; i++)
		if (is_of(&spread->parts[i], rank))
			all += spread->parts[i].weight_ns;
	return all;
}

static uint64_t at_most(unsigned __int128 value, uint64_t most)
{
	return value < most ? (uint64_t)value : most;
}

/* To the stacks of one rank, by weight; what has been given is taken off. */
static void give_rank(const struct spread *spread, uint32_t rank, uint64_t *cpu_ns, uint64_t *wait_ns,
                      uint64_t cpu_most, uint64_t wait_most, spread_give_fn *give, void *context)
{
	unsigned __int128 all = weight_of(spread, rank), upto = 0;
	uint64_t cpu_given = 0, wait_given = 0;
	unsigned shift = 0;

	while (all >> shift > UINT64_MAX) /* so that products stay within 128 bits */
		shift++;
	for (uint32_t i = 0; i < spread->count && all > 0; i++) {
		uint64_t cpu_upto, wait_upto;

		if (!is_of(&spread->parts[i], rank))
			continue;
		upto += spread->parts[i].weight_ns;
		cpu_upto = (uint64_t)(cpu_most * (upto >> shift) / (all >> shift));
		wait_upto = (uint64_t)(wait_most * (upto >> shift) / (all >> shift));
		give(context, spread->parts[i].node, cpu_upto - cpu_given, wait_upto - wait_given);
		cpu_given = cpu_upto;
		wait_given = wait_upto;
	}
	*cpu_ns -= cpu_given;
	*wait_ns -= wait_given;
}

static void learn(uint64_t *sum, uint64_t value)
{
	*sum -= *sum / ALONE_OF;
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}

/* Of time in which nothing else ran: how much those that wait for the GIL use, for how long they are there. */
static void learn_alone(struct spread *spread, uint64_t cpu_ns, uint64_t wait_ns)
{
	uint64_t waited = at_most(weight_of(spread, RANK_WAITS) + weight_of(spread, RANK_BLOCKED), UINT64_MAX);

	if (waited == 0)
		return;
	learn(&spread->alone.cpu_ns, cpu_ns);
	learn(&spread->alone.wait_ns, wait_ns);
	learn(&spread->alone.weight_ns, waited);
}

/* How much of `most` is theirs, by what they use alone. */
static uint64_t as_alone(const struct spread *spread, uint64_t used_alone_ns, unsigned __int128 waited, uint64_t most)
{
	uint64_t weight = at_most(waited, UINT64_MAX);

	if (used_alone_ns < spread->alone.weight_ns)
		weight = (uint64_t)((unsigned __int128)weight * used_alone_ns / spread->alone.weight_ns);
	return at_most(weight, most);
}

/* To those that wait for the GIL, of time in which others ran: as much as they use alone, as far as that was seen. Else, to those that are runnable, of the
 * CPU time what is more than the others were there for, and more than the kernel owes these from before; for the rest of their time they waited for a CPU. */
static void give_waiting(struct spread *spread, uint64_t *cpu_ns, uint64_t *wait_ns, spread_give_fn *give,
                         void *context)
{
	unsigned __int128 due = weight_of(spread, RANK_RUNS) + spread->owed_ns, waited = weight_of(spread, RANK_WAITS);
	uint64_t cpu = at_most(waited, *cpu_ns - at_most(due, *cpu_ns)), told = *cpu_ns - cpu,
		 wait = at_most(waited - cpu, *wait_ns);
	uint32_t rank = waited ? RANK_WAITS : RANK_BLOCKED;

	spread->owed_ns = due > told ? at_most(due - told, TICK_NS) : 0;
	if (spread->alone.weight_ns > 0) {
		waited += weight_of(spread, RANK_BLOCKED);
		cpu = as_alone(spread, spread->alone.cpu_ns, waited, *cpu_ns);
		wait = as_alone(spread, spread->alone.wait_ns, waited, *wait_ns);
	}
	give_rank(spread, rank, cpu_ns, wait_ns, cpu, wait, give, context);
}

void spread_give(struct spread *spread, uint64_t cpu_ns, uint64_t wait_ns, spread_give_fn *give, void *context)
{
	cpu_ns += spread->cpu_ns;
	wait_ns += spread->wait_ns;
	if (spread->count > 0 && spread->rank == RANK_RUNS)
		give_waiting(spread, &cpu_ns, &wait_ns, give, context);
	else if (spread->count > 0 && spread->rank != RANK_HOLDS)
		learn_alone(spread, cpu_ns, wait_ns);
	give_rank(spread, spread->rank == RANK_BLOCKED ? RANK_OTHER : spread->rank, &cpu_ns, &wait_ns, cpu_ns, wait_ns,
	          give, context);
	if (spread->any && (cpu_ns || wait_ns)) {
		give(context, spread->last, cpu_ns, wait_ns);
		cpu_ns = wait_ns = 0;
	}
	spread->cpu_ns = cpu_ns;
	spread->wait_ns = wait_ns;
	spread->count = 0;
}
