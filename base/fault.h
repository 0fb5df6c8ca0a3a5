/* SPDX-License-Identifier: Apache-2.0 */
/* Why something failed, in words for the user. Layers below daemon/ fill it and return -errno; daemon/ alone prints it,
 * as "sampled: WHAT: WHY (HINT)". WHY and HINT are one line each, without a full stop; HINT may be empty. */
#ifndef SAMPLED_BASE_FAULT_H
#define SAMPLED_BASE_FAULT_H

struct fault {
	int err; /* -errno, as returned; 0: nothing failed */
	char why[256];
	char hint[256];
};

/* Fills *fault (which may be NULL) and returns err, so that `return fault_set(…)` reads well. why is a printf format. */
__attribute__((format(printf, 4, 5))) int fault_set(struct fault *fault, int err, const char *hint, const char *why, ...);

#endif
