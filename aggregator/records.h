/* SPDX-License-Identifier: Apache-2.0 */
/* What can be said of a record by itself, for all that take records in. */
#ifndef SAMPLED_AGGREGATOR_RECORDS_H
#define SAMPLED_AGGREGATOR_RECORDS_H

#include "aggregator/profile.h"
#include "sampler/record.h"

/* Whether the record is of a known type and as long as that needs, its texts are within it and without NULs, and its ids and events are
 * possible. Symbols and the frames of stacks are looked at where they are taken in (symbols.c, stack.c). 0 or -EPROTO. */
int record_check(const struct rec_head *record);

/* What tells mappings with the same path and build id apart: 0 where there is nothing to tell, as of a file that has a build id. struct symbol
 * has it as its first_line. The record has been checked. */
uint32_t record_mapping_key(const struct rec_mapping *record);

/* Takes what a REC_TARGET, which has been checked, says of the process. 0 or -ENOMEM (all is as before). */
int process_describe(struct process *process, const struct rec_target *record);

#endif
