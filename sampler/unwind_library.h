/* SPDX-License-Identifier: Apache-2.0 */
/* One step of libunwind's: for the frames whose rules take a DWARF expression. It is loaded by who unwinds alone, sees nothing but the copy of a
 * stack and the bytes of a file's tables, and is ended when it asks too often. */
#ifndef SAMPLED_SAMPLER_UNWIND_LIBRARY_H
#define SAMPLED_SAMPLER_UNWIND_LIBRARY_H

#include "sampler/unwind.h"
#include "sampler/unwind_tables.h"

struct unwind_library;

struct unwind_copy { /* of a stack */
	const uint8_t *bytes;
	raddr_t from;
	uint32_t count;
};

struct unwind_place { /* of the frame that is left */
	const struct unwind_tables *tables;
	struct unwind_fde fde;
	uint64_t bias; /* of both */
	raddr_t addr;  /* lies in fde: its rules hold */
};

/* Loads libunwind, of this process for good. 0; -ENOSYS: it is not there, or not for this machine; -ENOMEM. */
int unwind_library_new(struct unwind_library **ret_library);
void unwind_library_free(struct unwind_library *library);
/* What was learnt of addresses is no longer good. */
void unwind_library_flush(struct unwind_library *library);

/* The caller's registers in *regs. *accesses is how often memory may be asked for yet. 0; -ENODATA: a register or a piece of stack that is not there;
 * -E2BIG: too many accesses; -EPROTO: it failed otherwise. */
int unwind_library_step(struct unwind_library *library, const struct unwind_place *place,
                        const struct unwind_copy *copy, struct unwind_regs *regs, uint32_t *accesses);

#endif
