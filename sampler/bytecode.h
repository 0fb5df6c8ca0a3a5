/* SPDX-License-Identifier: Apache-2.0 */
/* What the bytecode of a code object says of the frames that execute it (3.11+). */
#ifndef SAMPLED_SAMPLER_BYTECODE_H
#define SAMPLED_SAMPLER_BYTECODE_H

#include "sampler/codes.h"

#define SCANNED_MAX (1u << 20) /* bytes of bytecode; what is longer is not looked at */

/* Which instructions leave the frame, which can call, and which run no Python code. Specialisation changes bytecode while it runs, but none
 * of these. Behind an instruction that hides another one, what looks like one may be a cache. Without memory, or where the bytecode cannot be read,
 * nothing is known. */
void bytecode_read(const struct pyabi *abi, const struct remote *r, struct code *code);

/* What a frame is to the one below it: the innermost; called, or, if it is a coroutine's, awaited through C; or run by the interpreter's loop for it,
 * as a function or (3.12+) as a generator that is resumed. */
enum called { CALLED_NONE, CALLED_BY_C, AWAITED_BY_C, CALLED_DIRECTLY, RESUMED_DIRECTLY };

/* Whether a frame that stands at this instruction can have such a callee. Where what stands there seems to run no Python code at all, the target is asked whether what watches the program has put another
 * instruction in its place meanwhile; r is NULL where the target is no more. */
bool bytecode_has_call(const struct pyabi *abi, const struct remote *r, const struct code *code, int64_t offset,
                       enum called called);

/* Whether the instruction that a frame stands at is such, at this moment, that it can run a Python function in the interpreter's loop: not if
 * it is specialised for what does not, nor where mostly nothing is called and it is not specialised for what is. True where r is NULL. */
bool bytecode_may_call(const struct pyabi *abi, const struct remote *r, const struct code *code, int64_t offset);

/* Of how many calls of this code it is read at this moment that they are specialised for the functions of a code object with this version (struct code), and where
 * a frame stands meanwhile that is in the last of them. 0 as well where it cannot be read, or r is NULL. */
uint32_t bytecode_find_calls(const struct pyabi *abi, const struct remote *r, const struct code *code, uint32_t version,
                             int64_t *ret_offset);

/* The version of the function for which the call that a frame stands in is specialised at this moment; 0: for none, or r is NULL. */
uint32_t bytecode_specialised_for(const struct pyabi *abi, const struct remote *r, const struct code *code, int64_t offset);

#endif
