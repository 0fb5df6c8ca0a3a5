/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a destination, for a server may be down for a day: of each kind of message a line a minute at most, so that none hides
 * another. What was not said is counted, and the latest of it is said at the end. */
#ifndef SAMPLED_DAEMON_PUSH_LOG_H
#define SAMPLED_DAEMON_PUSH_LOG_H

#include <stdint.h>

enum push_kind {
	PUSH_SAY_CONNECTION, /* nobody answers, or not in time, or not by HTTP */
	PUSH_SAY_CREDENTIAL, /* one that cannot be read */
	PUSH_SAY_BUSY,       /* 408, 425, 429, 502, 503, 504 */
	PUSH_SAY_DENIED,     /* 401, 403, 407 */
	PUSH_SAY_REDIRECT,   /* 3xx */
	PUSH_SAY_ADDRESS,    /* 404 and other answers to an address that is wrong */
	PUSH_SAY_SERVER,     /* other 5xx */
	PUSH_SAY_REFUSED,    /* 400, 413, 415, 422, and what a server took and refused all the same */
	PUSH_SAY_SPOOL,      /* files that make no sense, or that were removed unsent */
	PUSH_SAY_ALWAYS,     /* what happens once */
	PUSH_KINDS
};

enum { PUSH_SAID_BYTES = 512 }; /* kept of what was not said */

/* Zeroed once. */
struct push_log {
	const char *name; /* the destination's; NULL: of none. Not owned */
	struct {
		uint64_t said_ns; /* when something was last said; 0: nothing yet */
		uint64_t unsaid;  /* what was not, since */
		char latest[PUSH_SAID_BYTES];
	} kinds[PUSH_KINDS];
};

/* "sampled: push to NAME: TEXT". What looks secret in it is masked: it may be a server's word. */
__attribute__((format(printf, 3, 4))) void push_log(struct push_log *log, enum push_kind kind, const char *text, ...);
/* Of each kind the latest that was not said, and how much of it there was. */
void push_log_finish(struct push_log *log);

#endif
