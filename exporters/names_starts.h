/* SPDX-License-Identifier: Apache-2.0 */
/* Where the function around an address begins, by the tables for unwinding, which stripped files have too. Hostile input: runs in the naming child. */
#ifndef SAMPLED_EXPORTERS_NAMES_STARTS_H
#define SAMPLED_EXPORTERS_NAMES_STARTS_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

struct function_starts;

/* Reads the tables of a loaded file. 0, -ENOEXEC (it has none, or they make no sense), -EFBIG or -ENOMEM. */
int function_starts_new(struct function_starts **ret_starts, Elf *elf);
void function_starts_free(struct function_starts *starts);
/* The address of the function's first byte, or of the part's of one that was split. False: no entry speaks of the address. NULL knows none. */
bool function_starts_find(const struct function_starts *starts, uint64_t address, uint64_t *ret_start);

#endif
