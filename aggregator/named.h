/* SPDX-License-Identifier: Apache-2.0 */
/* What native frames are called: a place in a mapping becomes a function, or several where functions were inlined, or none where it is the
 * interpreter's own machinery. A profile may carry such names, as it has them of a recording. */
#ifndef SAMPLED_AGGREGATOR_NAMED_H
#define SAMPLED_AGGREGATOR_NAMED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/profile.h"

/* One frame. Texts are UTF-8, never NULL; they live until the next call of whoever gave it. */
struct named_frame {
	const char *name;
	const char *file; /* of the source; "": unknown */
	uint32_t first_line, line;
	uint8_t kind;                  /* enum frame_kind */
	const char *module, *build_id; /* as struct symbol has them */
};

/* The most frames that one place becomes. */
enum { NAMED_FRAMES_MAX = 64 };

/* What a node's frame becomes, which is a native one: so many of `to`, outermost first; 0: it is folded into its caller; FRAMES_SAME: it stays as it
 * is. At most `room`, which is NAMED_FRAMES_MAX. */
typedef size_t named_frames(void *context, const struct profile *profile, const struct node *node,
                            struct named_frame *to, size_t room);

#define FRAMES_SAME SIZE_MAX

/* Names of places. All functions take NULL for an empty table. */
struct named;

/* Says what the place `where` of a mapping (an index into profile.symbols) becomes; all is copied. What is known already stays. *table is made at the
 * first. 0, -ENOMEM, or -E2BIG: it is full. */
int named_add(struct named **table, uint32_t symbol, uint32_t where, const struct named_frame *frames, size_t count);
void named_free(struct named *table);
/* The frames of a place, or FRAMES_SAME. */
size_t named_find(const struct named *table, uint32_t symbol, uint32_t where, struct named_frame *to, size_t room);
/* The places by number, from 0: *ret_symbol and *ret_where; false: there are no more. */
bool named_place(const struct named *table, uint32_t number, uint32_t *ret_symbol, uint32_t *ret_where);

/* A named_frames: by the profile's own names (profile.named). */
size_t named_of_profile(void *none, const struct profile *profile, const struct node *node, struct named_frame *to,
                        size_t room);

/* Replaces a profile by one whose native frames are what `frames` says; sums and runs stay. 0 or -errno, and then it is as it was. */
int profile_name(struct profile **profile, named_frames *frames, void *context);

#endif
