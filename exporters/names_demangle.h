/* SPDX-License-Identifier: Apache-2.0 */
/* What a person calls a symbol: `_ZNSt6vectorIiE9push_backEi.cold` is std::vector<int>::push_back. By libiberty (C++, and Rust's both manglings), which
 * bounds its own recursion. Hostile input: runs in the naming child. */
#ifndef SAMPLED_EXPORTERS_NAMES_DEMANGLE_H
#define SAMPLED_EXPORTERS_NAMES_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* Whether it looks like a mangled name. */
bool name_is_mangled(const char *symbol);
/* Without its version (@GLIBC_2.34), without what compilers append to parts and copies of a function (.cold, .part.0, .constprop.0), demangled without
 * parameters; cut to room - 1 bytes. Returns its length. */
size_t name_readable(char *to, size_t room, const char *symbol);

#endif
