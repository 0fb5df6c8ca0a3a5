/* SPDX-License-Identifier: Apache-2.0 */
/* Call graphs as SVG, laid out by Graphviz' program dot, which we start. */
#ifndef SAMPLED_DAEMON_GRAPHVIZ_H
#define SAMPLED_DAEMON_GRAPHVIZ_H

#include <stdbool.h>

#include "aggregator/profile.h"
#include "base/fault.h"
#include "exporters/format.h"

/* Whether a format that goes into this file is meant to pass through Graphviz: dot into NAME.svg. */
bool graphviz_is_meant(const struct format *format, const char *path);
/* Whether the program is there. 0 or -errno with *fault filled. */
int graphviz_check(struct fault *fault);
/* Writes an SVG; nothing, where it fails. 0 or -errno with *fault filled; an error of `to` sticks in it and is not returned. */
int graphviz_write(const struct callgraph *graph, const struct export_options *options, struct writer *to,
                   struct fault *fault);
int graphviz_write_profile(const struct profile *profile, const struct export_options *options, struct writer *to,
                           struct fault *fault);

#endif
