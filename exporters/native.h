/* SPDX-License-Identifier: Apache-2.0 */
/* Native frames as formats show them that know functions, files and lines only. */
#ifndef SAMPLED_EXPORTERS_NATIVE_H
#define SAMPLED_EXPORTERS_NATIVE_H

#include <stdbool.h>

#include "aggregator/profile.h"

/* "libz.so.1" of "/usr/lib/libz.so.1". */
const char *native_module_name(const char *module);
/* Whether native_show() would change anything. */
bool native_needs_showing(const struct profile *profile);
/* A profile in which places in mappings are functions called "libz.so.1+0x1234", and functions without a source file have their module's name as
 * file. Symbols keep module and build id. The caller frees it. 0 or -errno. */
int native_show(const struct profile *profile, struct profile **ret_shown);
/* Of a symbol that is shown with a file: whether a line goes with it. Not where the file is a module. */
bool native_has_line(const struct symbol *symbol, uint32_t line);

#endif
