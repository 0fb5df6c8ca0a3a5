/* SPDX-License-Identifier: Apache-2.0 */
/* Where the sources of a session's processes are, and whose rights they are read with: noted while a process lives, so
 * that its lines can be shown after its end. The main thread notes, the thread that writes profiles reads. */
#ifndef SAMPLED_DAEMON_PLACES_H
#define SAMPLED_DAEMON_PLACES_H

#include <stdint.h>
#include <sys/types.h>

#include "exporters/source.h"

struct places;

/* 0 or -ENOMEM. */
int places_new(struct places **ret_places);
void places_free(struct places *places);

/* Looks at a process, for the first time or again: it may have gone to another directory, or have given up rights. What
 * cannot be had, or goes beyond a bound, costs its source lines and nothing else. */
void places_note(struct places *places, pid_t pid, uint64_t start_time);

/* For exporters; valid until places_free(). One thread at a time. */
const struct source_access *places_access(const struct places *places);

#endif
