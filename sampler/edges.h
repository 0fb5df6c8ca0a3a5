/* SPDX-License-Identifier: Apache-2.0 */
/* Which calls are known to be possible. A sample made of known calls is accepted at once; another one must first prove
 * itself. A call is the callee's code and the EDGE_SITES innermost call sites (code and instruction) that led to it, so that a
 * function whose callee depends on who called it is judged right, too. A call becomes known
 *
 * - when it was seen alike in both copies of a double read EDGE_SIGHTINGS times, or
 * - by its share: a copy that is torn shows a false call once in ten, a hundred, a thousand times that its site and its callee are
 *   seen, while a true one, be it ever so seldom, is a good part of all calls of its callee, or of all that its site is seen at. That is
 *   for calls whose frames were copied in one piece, or were the same before and after it.
 *
 * All of it within seconds. Bounded: when full, the table begins anew. */
#ifndef SAMPLED_SAMPLER_EDGES_H
#define SAMPLED_SAMPLER_EDGES_H

#include <stdbool.h>
#include <stdint.h>

#define EDGE_SIGHTINGS 3
#define EDGE_SITES     5

struct call {
	uint64_t key;  /* of the callee and the sites that led to it; the three are hashes, not 0 */
	uint64_t site; /* where the caller stands */
	uint64_t callee;
	uint64_t pair; /* the caller's function and the callee, wherever in it that is called; 0: there is no caller */
	bool seldom;   /* where it stands, mostly nothing is called */
	bool given;    /* the caller's code calls, or awaits, what it was given: that can depend on who called it */
	bool handed;   /* the caller's value stack has the callee for this call, as it was copied with it */
	bool proven;   /* the callee was its caller's while both were read, if not of the frames below them */
	bool adjacent; /* caller and callee were copied in one piece */
	/* Asked before it is learnt by its share: whether what stands at its site can call; NULL: yes. */
	bool (*can_be)(const struct call *call);
	const void *context;
};

struct edges;

/* slow: with a sixteenth of the memory, for few samples a second. 0 or -ENOMEM. */
int edges_new(struct edges **ret_edges, bool slow);
void edges_free(struct edges *edges);
/* With more of the memory again, for a process in which coroutines were met. What was seen of calls that are not known yet is forgotten. */
void edges_widen(struct edges *edges);
bool edges_has(const struct edges *edges, uint64_t key);
/* Seen alike in two copies once more. True: with this sighting it has become known. */
bool edges_sight(struct edges *edges, const struct call *call, uint64_t now_ns);
/* The same for the call alone, whoever led to it. */
bool edges_sight_edge(struct edges *edges, const struct call *call, uint64_t now_ns);
/* Seen to be its caller's callee before and behind the reading of the caller. True: known, by its share of all that was seen so of the callee;
 * where the caller was not given what it calls, whoever led to it. */
bool edges_sight_proven(struct edges *edges, const struct call *call, uint64_t now_ns);
/* Seen while nothing moved: known. */
void edges_learn(struct edges *edges, const struct call *call);
/* Seen in one copy. True: known by its share now. */
bool edges_sight_once(struct edges *edges, const struct call *call, uint64_t now_ns);
/* Seen in one copy, the callee left already. True: known, by its share of the callee's sightings if by nothing else: that of a function
 * which runs for a few nanoseconds is never seen otherwise. */
bool edges_sight_left(struct edges *edges, const struct call *call, uint64_t now_ns);
/* Seen in one copy whose other frames may be of other instants. True: the call alone, whoever led to it, is known by its share now. */
bool edges_sight_single(struct edges *edges, const struct call *call, uint64_t now_ns);
/* The same with the callee left already. True: the call is known, or is the only one that is known of its site. */
bool edges_sight_left_single(struct edges *edges, const struct call *call, uint64_t now_ns);
/* Whether it is the only call that is known of its site, and, where the caller was given what it calls, in several contexts: so that it is possible
 * whoever led to it. */
bool edges_has_single(const struct edges *edges, const struct call *call);
/* Whether it is the only call that is known of its site, and known in several contexts, whatever its caller was given: so it is possible whoever led to it. */
bool edges_has_always(const struct edges *edges, const struct call *call);
/* Counts that a site or a callee was seen, `weight` times. */
void edges_count(struct edges *edges, uint64_t part, uint32_t weight, uint64_t now_ns);

/* Counts by key; few are kept, and a newer key takes the place of one that was unused for long. edges_tally() adds one, or raises the count
 * to `least` where that is not 0, and returns it. */
uint32_t edges_tally(struct edges *edges, uint64_t key, uint32_t least);
uint32_t edges_tallied(const struct edges *edges, uint64_t key);

#endif
