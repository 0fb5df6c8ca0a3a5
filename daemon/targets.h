/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a session: those named, the command that was run, and, where asked for, their children. Each is
 * opened when it has become a Python, handed to the sampler, and looked for again after an exec. Main thread only. */
#ifndef SAMPLED_DAEMON_TARGETS_H
#define SAMPLED_DAEMON_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/error.h"
#include "daemon/places.h"
#include "sampler/sampler.h"

enum member_origin {
	MEMBER_NAMED,   /* a failure to attach is an error */
	MEMBER_COMMAND, /* tried for as long as it lives */
	MEMBER_CHILD,   /* passed over silently while it is no Python */
};

struct member {
	pid_t pid;
	uint64_t start_time; /* clock ticks since boot: with pid, its identity */
	enum member_origin origin;
	bool sampled;  /* the sampler has it */
	bool was;      /* the sampler had it, as the program that it is still */
	bool reported; /* the user was told why it is not sampled */
	bool gone;
	uint64_t pause_ns;    /* between the last try and the next */
	uint64_t next_try_ns; /* CLOCK_MONOTONIC, as all */
	uint64_t patience_ns; /* a point in time: until then, "not yet" is no failure */
};

struct targets {
	struct sampler *sampler; /* not owned */
	struct places *places;   /* not owned; where the sources of what is sampled are */
	bool follow_children, verbose;
	pid_t command; /* of `run --subprocesses`: what its processes leave behind becomes ours, and is followed; 0: none */
	bool stops; /* their threads will be stopped */
	struct member *members; /* owned */
	size_t count, room;
	size_t sampled;            /* members that the sampler has */
	uint64_t attached;         /* how often one was handed to the sampler */
	uint64_t next_scan_ns;     /* for children */
	uint64_t next_thorough_ns; /* for those of all threads */
	uint64_t next_look_ns;     /* at the places of sources */
	size_t next_place;         /* index of the member to begin with */
	bool full_reported, left_behind_reported;
	pid_t missed_parent;    /* a process that is sampled, with children that are not */
	size_t missed_children; /* so many; 0: there is none */
	bool marks; /* <native> marks were asked for: say once where they cannot be had */
	enum exit_status worst; /* of the failures to attach that count */
};

void targets_init(struct targets *targets, struct sampler *sampler, struct places *places, bool follow_children,
                  bool verbose);
void targets_release(struct targets *targets);

/* Adds a process, once, however often it is named. 0, or -ESRCH or another -errno after it was reported. */
int targets_add(struct targets *targets, pid_t pid, enum member_origin origin);
/* Tries what is due and looks for children. Returns when it wants to be called again, UINT64_MAX: not by itself. */
uint64_t targets_step(struct targets *targets);
/* The next step looks for children of all threads. */
void targets_look_again(struct targets *targets);
/* Deals with those that came back from the sampler. */
void targets_collect(struct targets *targets);
/* Something is sampled, or about to be. */
bool targets_alive(const struct targets *targets);

#endif
