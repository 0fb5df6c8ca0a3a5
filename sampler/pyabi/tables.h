/* SPDX-License-Identifier: Apache-2.0 */
/* The tables, one file a minor version; for pyabi.c and debug_offsets.c alone. */
#ifndef SAMPLED_SAMPLER_PYABI_TABLES_H
#define SAMPLED_SAMPLER_PYABI_TABLES_H

#include "sampler/pyabi/pyabi.h"

extern const struct pyabi pyabi_3_6;
extern const struct pyabi pyabi_3_7;
extern const struct pyabi pyabi_3_8;
extern const struct pyabi pyabi_3_9;
extern const struct pyabi pyabi_3_10;
extern const struct pyabi pyabi_3_11;
extern const struct pyabi pyabi_3_12;

/* These publish most of their layout: only what they do not publish is in the tables, to be completed by
 * pyabi_from_debug_offsets(). */
extern const struct pyabi pyabi_3_13;
extern const struct pyabi pyabi_3_14;
extern const struct pyabi pyabi_3_15;

/* Names of opcodes; 256 each. */
extern const char *const pyabi_opnames_3_6[256];
extern const char *const pyabi_opnames_3_7[256];
extern const char *const pyabi_opnames_3_8[256];
extern const char *const pyabi_opnames_3_9[256];
extern const char *const pyabi_opnames_3_10[256];
extern const char *const pyabi_opnames_3_11[256];
extern const char *const pyabi_opnames_3_12[256];
extern const char *const pyabi_opnames_3_13[256];
extern const char *const pyabi_opnames_3_14[256];
extern const char *const pyabi_opnames_3_15[256];

#endif
