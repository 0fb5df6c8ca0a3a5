/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a file of Callgrind's: whose profile it is, our facts, and which events its costs are. */
#ifndef SAMPLED_EXPORTERS_CALLGRIND_HEAD_H
#define SAMPLED_EXPORTERS_CALLGRIND_HEAD_H

#include <stdbool.h>

#include "exporters/callgraph.h"
#include "exporters/writer.h"

/* Whether a cost has the graph's weight, besides the samples or alone. */
bool callgrind_has_weight(const struct callgraph *graph);
/* Up to the line "events:", which names them in the order of a cost. The head ends with a line of sums behind it. */
void callgrind_write_head(const struct callgraph *graph, struct writer *to);

#endif
