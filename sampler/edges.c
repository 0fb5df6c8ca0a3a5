/* SPDX-License-Identifier: Apache-2.0 */
/* A set of 64-bit keys: a false "known" needs a collision of all 64 bits. One thing still, above 400 lines: the rules by which a call
 * gets into the set, which all weigh the same counts of the same keys. */
#include "sampler/edges.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/ways.h"
#include "sampler/keyset.h"

#define ROOM_FIRST 1024u /* of the keys that are known */

#define PENDING_ROOM 4096u
#define PENDING_WAYS 16u /* so many keys of one stack may fall together and still all become known */
#define PENDING_NS   (20 * NS_PER_S)
/* By share: so many sightings in single copies, each standing for so many of the site's or the callee's. A copy takes up to a
 * quarter of a microsecond, so of the sightings of a function that runs for one every tenth or so is torn. */
#define SHARE_SIGHTINGS 16
#define SHARE           2
#define ROUGH_SIGHTINGS 64 /* where sites and callees are counted now and then only, with the weight of the others */
#define LEFT_SIGHTINGS  64 /* by then a site where something else is called is known for that */
#define ODD_SIGHTINGS                                                                                                  \
	32 /* in two copies, where what stands at the site does not call, or does so only when it falls back */
/* Of what was seen of a call's site, or its callee, so much must have been alike in two copies; and while that is little still, more: where
 * sampler and target go in step, a copy that is torn is often torn in the same way again, and three of these come together soon. */
#define ALIKE_SHARE 100
#define EARLY_SHARE 16
#define EARLY_SEEN  400
/* Where one site calls several functions in turn, or one is called from many, each is its callee by so many sightings in single copies, the callable on the caller's value stack, if that is
 * nearly all that was seen of the callee with this caller, at whatever site. */
#define HANDED_SIGHTINGS 16
#define HANDED_SHARE(all) ((all) - (all) / 8)
#define CONTEXTS    3 /* in which a call of what the caller was given has to be known, to be possible in all */
#define COUNTS      16384u /* counters; parts that fall together count as one, which only makes a call wait longer */
#define HALVE_NS    (10 * NS_PER_S)

struct pending { /* not known yet */
	uint64_t key;
	uint64_t first_ns;
	uint16_t sightings; /* in both copies of a double read */
	uint16_t singles;   /* in one copy; stops at the most it can hold */
	uint16_t handed;    /* of these, with the callee on the caller's value stack */
	uint16_t proven;    /* while the callee was its caller's */
};

#define TALLIES     8192u
#define TALLY_WAYS  8u

#define SLOW_SHIFT 4 /* few calls are learnt at a time, and there may be hundreds of targets */
#define WIDE_SHIFT 2 /* with coroutines many are, and not in the order in which they are met */

struct tally {
	uint64_t key;
	uint32_t count;
};

struct edges {
	struct keyset known;
	uint32_t shift;   /* the rooms below are so many times halved */
	uint32_t *counts; /* COUNTS; of sites and callees, in the last seconds: halved now and then */
	uint64_t halved_ns;
	bool rough; /* the latest of them were counted with a weight above 1 */
	struct pending *pending; /* PENDING_ROOM; sets of PENDING_WAYS by key; a newer one takes the place of the oldest */
	struct tally *tallies;   /* TALLIES; sets of TALLY_WAYS by key (base/ways.h) */
};

static uint32_t room_of(const struct edges *e, uint32_t room)
{
	return room >> e->shift;
}

static void free_tables(struct edges *e)
{
	free(e->counts);
	free(e->pending);
	free(e->tallies);
}

/* Makes the tables of what is not known yet, empty, for this shift. -ENOMEM: they are what they were. */
static int make_tables(struct edges *e, uint32_t shift)
{
	struct edges made = {.shift = shift};

	made.counts = calloc(room_of(&made, COUNTS), sizeof(*made.counts));
	made.pending = calloc(room_of(&made, PENDING_ROOM), sizeof(*made.pending));
	made.tallies = calloc(room_of(&made, TALLIES), sizeof(*made.tallies));
	if (!made.counts || !made.pending || !made.tallies) {
		free_tables(&made);
		return -ENOMEM;
	}
	free_tables(e);
	e->shift = shift;
	e->counts = made.counts;
	e->pending = made.pending;
	e->tallies = made.tallies;
	return 0;
}

int edges_new(struct edges **ret_edges, bool slow)
{
	uint32_t shift = slow ? SLOW_SHIFT : 0;
	struct edges *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	if (keyset_init(&e->known, ROOM_FIRST >> shift) != 0 || make_tables(e, shift) != 0) {
		edges_free(e);
		return -ENOMEM;
	}
	*ret_edges = e;
	return 0;
}

void edges_widen(struct edges *e)
{
	if (e->shift > WIDE_SHIFT)
		(void)make_tables(e, WIDE_SHIFT); /* without memory it goes on as it is */
}

void edges_free(struct edges *e)
{
	if (!e)
		return;
	keyset_release(&e->known);
	free_tables(e);
	free(e);
}

bool edges_has(const struct edges *e, uint64_t key)
{
	return keyset_has(&e->known, key);
}

static void add(struct edges *e, uint64_t key)
{
	keyset_add(&e->known, key);
}

static uint32_t set_of(const struct edges *e, uint64_t key)
{
	return (uint32_t)(key >> 8) & (room_of(e, PENDING_ROOM) - 1) & ~(PENDING_WAYS - 1);
}

/* The entry of this key, made anew where there is none or it is too old, in the place of the oldest of its set. */
static struct pending *get_pending(struct edges *e, uint64_t key, uint64_t now_ns)
{
	struct pending *set = &e->pending[set_of(e, key)];
	struct pending *found = set;

	for (uint32_t i = 0; i < PENDING_WAYS; i++) {
		if (set[i].key == key) {
			found = &set[i];
			break;
		}
		if (set[i].first_ns < found->first_ns)
			found = &set[i];
	}
	if (found->key != key || now_ns - found->first_ns > PENDING_NS)
		*found = (struct pending){.key = key, .first_ns = now_ns};
	return found;
}

/* How often the rarer part of a call was seen. */
static uint64_t seen_of(const struct edges *e, const struct call *call)
{
	uint32_t site = e->counts[call->site & (room_of(e, COUNTS) - 1)], callee = e->counts[call->callee & (room_of(e, COUNTS) - 1)];

	return site < callee ? site : callee;
}

/* How often the callee was seen to be some caller's: counted apart from its sightings, as only one look in so many reads what proves it. */
static uint32_t *proven_of(struct edges *e, const struct call *call)
{
	return &e->counts[hash_u64(call->callee) & (room_of(e, COUNTS) - 1)];
}

/* The call alone, whoever led to it. */
static uint64_t edge_of(const struct call *call)
{
	return hash_combine(call->site, call->callee) | 1;
}

/* A copy that is torn pairs a site with the callee of the next one. So a site that is known to call something else says nothing by
 * its share. */
static bool calls_another(const struct edges *e, const struct call *call)
{
	return edges_has(e, call->site) && !edges_has(e, edge_of(call));
}

/* The same caller is known to call it, but not from there: a copy that is torn between the two. */
static bool is_called_elsewhere(const struct edges *e, const struct call *call)
{
	return call->pair && edges_has(e, call->pair) && !edges_has(e, edge_of(call));
}

/* Marks a site at which several functions are called. */
static uint64_t several_of(const struct call *call)
{
	return hash_u64(call->site) | 1;
}

/* A copy can be torn at the same site more often than not, where that calls C for an instant and a Python function shortly after. */
static bool can_be(struct pending *pending, const struct call *call)
{
	if (!call->can_be || call->can_be(call))
		return true;
	pending->singles = pending->handed = 0;
	return false;
}

static const struct pending *find_pending(const struct edges *e, uint64_t key)
{
	const struct pending *set = &e->pending[set_of(e, key)];

	for (uint32_t i = 0; i < PENDING_WAYS; i++)
		if (set[i].key == key)
			return &set[i];
	return NULL;
}

/* Counts one more single copy. */
static struct pending *add_single(struct edges *e, const struct call *call, uint64_t now_ns)
{
	struct pending *pending;

	if (call->pair != 0) {
		pending = get_pending(e, call->pair, now_ns);
		if (pending->singles < UINT16_MAX)
			pending->singles++;
	}
	pending = get_pending(e, call->key, now_ns);
	if (pending->singles < UINT16_MAX) {
		pending->singles++;
		if (call->handed)
			pending->handed++;
	}
	return pending;
}

/* Whether what was seen of the callee with this caller was seen there, by its caller's value stack. */
static bool is_handed(const struct edges *e, const struct call *call, const struct pending *pending, uint32_t least)
{
	const struct pending *pair = call->pair ? find_pending(e, call->pair) : NULL;

	return pair && pending->handed >= least && pending->handed >= HANDED_SHARE(pair->singles) && !is_called_elsewhere(e, call);
}

static void learn_edge(struct edges *e, const struct call *call)
{
	if (calls_another(e, call))
		add(e, several_of(call));
	add(e, call->site);
	add(e, edge_of(call));
	if (call->pair)
		add(e, call->pair);
}

void edges_learn(struct edges *e, const struct call *call)
{
	if (call->key != edge_of(call) && !edges_has(e, call->key)) /* in one context more */
		edges_tally(e, edge_of(call), 0);
	add(e, call->key);
	learn_edge(e, call);
}

/* Known, and nothing else is at its site. */
static bool is_alone(const struct edges *e, const struct call *call)
{
	return edges_has(e, edge_of(call)) && !edges_has(e, several_of(call));
}

bool edges_has_always(const struct edges *e, const struct call *call)
{
	return is_alone(e, call) && edges_tallied(e, edge_of(call)) >= CONTEXTS;
}

bool edges_has_single(const struct edges *e, const struct call *call)
{
	return call->given ? edges_has_always(e, call) : is_alone(e, call);
}

static uint64_t alike_needed(uint64_t seen)
{
	return EDGE_SIGHTINGS + seen / ALIKE_SHARE + (seen < EARLY_SEEN ? seen : EARLY_SEEN) / EARLY_SHARE;
}

/* Counts that the call, told by `key`, was seen alike. True: that suffices now. */
static bool is_seen_alike(struct edges *e, const struct call *call, uint64_t key, uint64_t now_ns)
{
	struct pending *pending;

	if (edges_has(e, key))
		return false;
	pending = get_pending(e, key, now_ns);
	if (pending->sightings < UINT16_MAX)
		pending->sightings++;
	if (pending->sightings < alike_needed(seen_of(e, call)) ||
	    (pending->sightings < ODD_SIGHTINGS && call->can_be && !call->can_be(call)))
		return false;
	*pending = (struct pending){0};
	return true;
}

bool edges_sight(struct edges *e, const struct call *call, uint64_t now_ns)
{
	bool enough = is_seen_alike(e, call, call->key, now_ns);

	if (enough)
		edges_learn(e, call);
	return enough;
}

bool edges_sight_proven(struct edges *e, const struct call *call, uint64_t now_ns)
{
	uint32_t all = ++*proven_of(e, call);
	/* What a caller was not given it calls whoever called it. */
	uint64_t key = call->given ? call->key : edge_of(call);
	struct pending *pending;

	if (edges_has(e, call->key))
		return false;
	pending = get_pending(e, key, now_ns);
	if (pending->proven < UINT16_MAX)
		pending->proven++;
	if (pending->proven < alike_needed(all))
		return false;
	*pending = (struct pending){0};
	edges_learn(e, call);
	return true;
}

bool edges_sight_edge(struct edges *e, const struct call *call, uint64_t now_ns)
{
	bool enough = is_seen_alike(e, call, edge_of(call), now_ns);

	if (enough)
		learn_edge(e, call);
	return enough;
}

bool edges_sight_once(struct edges *e, const struct call *call, uint64_t now_ns)
{
	struct pending *pending;
	uint64_t singles;
	bool enough;

	if (edges_has(e, call->key))
		return false;
	pending = add_single(e, call, now_ns);
	singles = pending->singles;
	enough = singles >= (e->rough ? ROUGH_SIGHTINGS : SHARE_SIGHTINGS) && singles * SHARE >= seen_of(e, call) && !calls_another(e, call);
	enough |= call->handed && is_handed(e, call, pending, HANDED_SIGHTINGS);
	if (!enough || !can_be(pending, call))
		return false;
	*pending = (struct pending){0};
	edges_learn(e, call);
	return true;
}

bool edges_sight_single(struct edges *e, const struct call *call, uint64_t now_ns)
{
	struct call edge = *call;

	edge.key = edge_of(call);
	if (!edges_sight_once(e, &edge, now_ns))
		return false;
	learn_edge(e, call);
	return true;
}

bool edges_sight_left(struct edges *e, const struct call *call, uint64_t now_ns)
{
	struct pending *pending;

	edges_count(e, call->site, 1, now_ns);
	edges_count(e, call->callee, 1, now_ns);
	if (edges_has(e, call->key))
		return true;
	pending = get_pending(e, call->key, now_ns);
	if (pending->singles < UINT16_MAX)
		pending->singles++;
	if (pending->singles < LEFT_SIGHTINGS || pending->singles * (uint64_t)SHARE < seen_of(e, call) ||
	    calls_another(e, call) || !can_be(pending, call))
		return false;
	*pending = (struct pending){0};
	edges_learn(e, call);
	return true;
}

bool edges_sight_left_single(struct edges *e, const struct call *call, uint64_t now_ns)
{
	struct call edge = *call;

	edge.key = edge_of(call);
	edges_sight_left(e, &edge, now_ns);
	return edges_has(e, call->key) || edges_has_single(e, call);
}

void edges_count(struct edges *e, uint64_t part, uint32_t weight, uint64_t now_ns)
{
	if (now_ns - e->halved_ns > HALVE_NS) {
		for (uint32_t i = 0; i < room_of(e, COUNTS); i++)
			e->counts[i] /= 2;
		for (uint32_t i = 0; i < room_of(e, PENDING_ROOM); i++) { /* what is compared with them */
			e->pending[i].singles /= 2;
			e->pending[i].handed /= 2;
			e->pending[i].proven /= 2;
		}
		e->halved_ns = now_ns;
	}
	e->rough = weight > 1;
	e->counts[part & (room_of(e, COUNTS) - 1)] += weight;
}

static struct tally *tallies_of(const struct edges *e, uint64_t key)
{
	return &e->tallies[ways_set(key >> 8, room_of(e, TALLIES), TALLY_WAYS)];
}

uint32_t edges_tally(struct edges *e, uint64_t key, uint32_t least)
{
	struct tally *set = tallies_of(e, key), tally;
	uint32_t way = 0;

	while (way < TALLY_WAYS - 1 && set[way].key != key)
		way++;
	tally = set[way].key == key ? set[way] : (struct tally){.key = key};
	if (least == 0)
		tally.count += tally.count < UINT32_MAX;
	else if (least > tally.count)
		tally.count = least;
	ways_make_first(set, sizeof(*set), way);
	set[0] = tally;
	return tally.count;
}

uint32_t edges_tallied(const struct edges *e, uint64_t key)
{
	const struct tally *set = tallies_of(e, key);

	for (uint32_t way = 0; way < TALLY_WAYS; way++)
		if (set[way].key == key)
			return set[way].count;
	return 0;
}
