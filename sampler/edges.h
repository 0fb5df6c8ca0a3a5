/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are known to be possible: seen alike in both copies of a double read EDGE_SIGHTINGS times within seconds (once
 * may be chance: a copy that is torn the same way twice). A sample made of known calls is accepted at once; another one must
 * first prove itself. A call is the callee's code and the
 * EDGE_SITES innermost call sites (code and instruction) that led to it, so that a function whose callee depends on who called
 * it is judged right, too. Bounded: when full, the table
 * begins anew. */
#ifndef SAMPLED_SAMPLER_EDGES_H
#define SAMPLED_SAMPLER_EDGES_H

#include <stdbool.h>
#include <stdint.h>

#define EDGE_SIGHTINGS 3
#define EDGE_SITES 5

struct edges;

int edges_new(struct edges **ret_edges);
void edges_free(struct edges *edges);
bool edges_has(const struct edges *edges, uint64_t key);
/* Seen alike once more. True: with this sighting it has become known. */
bool edges_sight(struct edges *edges, uint64_t key, uint64_t now_ns);

#endif
