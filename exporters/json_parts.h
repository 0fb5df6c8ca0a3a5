/* SPDX-License-Identifier: Apache-2.0 */
/* What the formats in JSON share: names for people, and the facts. */
#ifndef SAMPLED_EXPORTERS_JSON_PARTS_H
#define SAMPLED_EXPORTERS_JSON_PARTS_H

#include <stdint.h>

#include "aggregator/profile.h"
#include "base/buf.h"
#include "exporters/format.h"

/* "MainThread (tid 11)", "thread 11"; with the interpreter where it is not the main one, and the process where there are several. */
void json_thread_name(struct buf *to, const struct profile *profile, const struct thread_tree *thread);
/* "python3 x.py (pid 10)", "3 processes"; the title that was asked for. */
void json_title(struct buf *to, const struct profile *profile, const struct export_options *options);
/* A text made in a buffer, as a JSON string; the buffer is emptied. An error of its own goes to the writer. */
void json_string_of(struct writer *to, struct buf *text);
/* {"samples":123,…}: every fact's number by its key. */
void json_facts(struct writer *to, const struct profile *profile);
/* Nanoseconds as a decimal number of the unit that is 10^digits (at most 9) of them: 1234567, 6 → 1.234567; 2000000, 6 → 2. */
void json_decimal(struct writer *to, uint64_t ns, unsigned digits);
/* A number in an array. */
void json_item(struct writer *to, bool first, uint64_t number);

#endif
