/* SPDX-License-Identifier: Apache-2.0 */
/* The filters of system calls of sandbox.h, by libseccomp, which is loaded when needed. */
#ifndef SAMPLED_EXPORTERS_SANDBOX_FILTER_H
#define SAMPLED_EXPORTERS_SANDBOX_FILTER_H

enum sandbox_kind {
	SANDBOX_READER,
	SANDBOX_TRACER, /* a reader that may stop what it reads */
	SANDBOX_PUSHER,
	SANDBOX_NAMER, /* only reads files and answers */
};

struct fault;

/* Refuses, with EPERM, all system calls but those of the kind, for all threads, for good. Needs no_new_privs. 0, or -errno with
 * *fault; -ENOPKG: libseccomp is not installed. */
int sandbox_filter(enum sandbox_kind kind, struct fault *fault);

#endif
