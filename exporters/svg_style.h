/* SPDX-License-Identifier: Apache-2.0 */
/* The style sheet of a still flame graph, and text in XML. */
#ifndef SAMPLED_EXPORTERS_SVG_STYLE_H
#define SAMPLED_EXPORTERS_SVG_STYLE_H

#include <stddef.h>

#include "aggregator/profile.h"
#include "exporters/difference.h"
#include "exporters/writer.h"

/* Text as XML: what must not stand in XML 1.0, or would reorder its neighbours, becomes U+FFFD. */
void svg_write_xml(struct writer *to, const char *text);

/* All classes, light and dark: c0 … by file, v native code, t threads and what has no file, o "(other)", g0 … grew, s0 … shrank, n no change. */
void svg_write_style(struct writer *to);
/* The class of a function's frames: native code's, or its file's, always the same for the same file. NULL: a thread's. */
void svg_symbol_class(char *to, size_t room, const struct symbol *symbol);
/* The class of a change: the stronger, the larger a part of the larger of the two shares it is. */
void svg_change_class(char *to, size_t room, const struct change *change, double larger_percent);

#endif
