/* SPDX-License-Identifier: Apache-2.0 */
/* What code objects are called, and whether one calls another by that name (callnames.h). */
#ifndef SAMPLED_SAMPLER_CODENAMES_H
#define SAMPLED_SAMPLER_CODENAMES_H

#include <stddef.h>

#include "sampler/codes.h"

/* Takes the two last parts of a qualified name of `bytes` bytes, such as "Node" and "append" of "tree.Node.append", into code->owner and code->name. */
void codenames_note(struct code *code, const char *text, size_t bytes);

enum named {
	NAMED_NOT,
	NAMED_AMONG,  /* the caller calls that name at several places */
	NAMED_SINGLE, /* … at this one only */
};

/* Whether what has the callee's name is called where a frame of `code` stands at this offset, or (`resumes`) what that made is resumed; of a class' __init__:
 * what has the name of the class. A generator expression is named by its code, where the caller consumes it. Asks the target the first time; without r, or where the time for decoding is used up, it is not known as yet. */
enum named codenames_calls(struct codes *codes, const struct pyabi *abi, const struct remote *r, struct code *code, int64_t offset,
                           const struct code *callee, bool resumes);
/* Whether it is known by that that a generator of this code is not consumed where a frame of `code` stands at this offset: a generator expression is that is made there,
 * or it is one itself, and made at another place. */
bool codenames_excludes(const struct code *code, int64_t offset, const struct code *generator);
/* Whether it is known by that that somewhere in `code` what a function of the callee's name made is resumed, and nowhere else. */
bool codenames_resumes(const struct code *code, const struct code *callee);

#endif
