/* SPDX-License-Identifier: Apache-2.0 */
/* Which native frames are the interpreter's own machinery: what stands between a Python frame and the next, or below the first, and says nothing that
 * the Python frames do not. */
#ifndef SAMPLED_EXPORTERS_NAMES_FOLD_H
#define SAMPLED_EXPORTERS_NAMES_FOLD_H

#include <stdbool.h>
#include <stdint.h>

/* name: as in the source, without marks of clones. flags: MAPPING_* of its module. innermost: nothing was called from there: then what looks something
 * up or computes stays, which is folded where it only leads to more. */
bool name_is_machinery(const char *name, uint32_t flags, bool innermost);

#endif
