/* SPDX-License-Identifier: Apache-2.0 */
/* Text of others (arguments, titles, names of threads, what a server answers) may hold passwords: what looks like one is masked before the text is
 * kept or shown. It is told by the name in front of it, so what has no such name is not found: a mask is no proof. */
#ifndef SAMPLED_BASE_SECRETS_H
#define SAMPLED_BASE_SECRETS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define SECRETS_MASK "***"

/* Whether the value of such a name is nobody else's business: DB_PASSWORD, apiKey, Authorization. */
bool secrets_is_name(const char *name, size_t bytes);

/* Appends the text with values masked:
 *     --password=X  DB_PASSWORD=X  "token": "X"  Authorization: Bearer X     up to the argument's end, or to that of the word or the quotes
 *     --password X                                                            the next argument or word, unless it is a long option
 *     scheme://user:X@host  https://X@host                                    up to the last @ of the authority
 * NULs divide arguments, and stay. */
void secrets_mask(struct buf *to, const char *text, size_t bytes);

#endif
