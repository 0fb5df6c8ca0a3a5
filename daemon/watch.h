/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of the host, as the service follows them: found by looking at /proc each second, matched with the rules, opened when they
 * are Pythons, handed to the sampler, and looked at again. A process is known by pid and start time; a Python is held by a pidfd.
 *
 * What is no Python is looked at again after 1, 2, 4 … 30 s: it may exec one, or load one late. So is what cannot be read; why, is said once. */
#ifndef SAMPLED_DAEMON_WATCH_H
#define SAMPLED_DAEMON_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/config.h"
#include "daemon/rules.h"
#include "sampler/sampler.h"

#define UID_UNKNOWN ((uid_t)-1) /* nobody's: it was not looked at so far */

enum watch_state {
	WATCH_LOOKED,   /* no Python so far, or not one of a rule that includes it */
	WATCH_STARTING, /* a Python that is not ready yet */
	WATCH_SAMPLED,
	WATCH_FAILED,   /* a Python, it seems, that cannot be read: `why` */
	WATCH_EXCLUDED, /* a Python that a rule, or somebody (ctl detach), keeps out */
	WATCH_KERNEL,   /* a kernel thread */
	WATCH_STATES
};

/* What is said of a process that is sampled; owned texts, "" where there is none. */
struct watched_about {
	char *name; /* comm */
	char *unit, *container;
};

struct watched {
	pid_t pid;
	uint64_t ino;        /* of /proc/PID: another one may be another process */
	uint64_t start_time; /* clock ticks since boot */
	enum watch_state state;
	bool seen;     /* by the scan under way */
	bool forced;   /* ctl attach: whatever the rules say */
	bool detached; /* ctl detach */
	bool rematch;  /* on its way back from the sampler, to be matched anew */
	int pidfd;     /* -1: none */
	uid_t uid; /* effective, when it was looked at last, or UID_UNKNOWN */
	size_t rule; /* index in the configuration, while it is a Python that one includes */
	uint64_t interval_ns;
	enum command_line command_line;
	uint32_t version;
	struct watched_about about;
	char *why; /* of WATCH_FAILED; owned, or NULL */
	bool starved; /* … it was not even looked at, for want of descriptors */
	uint64_t pause_ns, next_ns, patience_ns;
	uint64_t sampled_ns; /* since when */
};

struct watch;

struct watch_options {
	const struct config *config; /* must outlive it, or be exchanged by watch_reconfigure() */
	struct sampler *sampler;
	int epoll_fd;         /* gets the pidfds, with epoll_tag | pid as data */
	uint64_t epoll_tag;   /* above the low 32 bits */
	bool verbose;
	/* The number that a rule's targets have as their group. */
	uint32_t (*group)(void *context, const struct config_rule *rule);
	/* A process is sampled no more. NULL: nobody asks. */
	void (*ended)(void *context, const struct watched *item);
	void *context;
};

int watch_new(struct watch **ret_watch, const struct watch_options *options);
void watch_free(struct watch *watch);

/* Looks at /proc where that is due, and at processes that are; for some 20 ms at most. Returns when it wants to be called again. */
uint64_t watch_step(struct watch *watch);
/* Deals with targets that came back from the sampler. */
void watch_collect(struct watch *watch);
/* A pidfd has become readable. */
void watch_exited(struct watch *watch, pid_t pid);
/* All are matched anew; what is another rule's now is given to the sampler anew. The old configuration is not looked at any more. */
void watch_reconfigure(struct watch *watch, const struct config *config);

/* ctl attach and detach. 0; -ESRCH no such process; -ENOEXEC not a Python; another -errno, with *fault filled. */
int watch_attach(struct watch *watch, pid_t pid, struct fault *fault);
int watch_detach(struct watch *watch, pid_t pid, struct fault *fault);

/* NULL: not known. */
const struct watched *watch_find(const struct watch *watch, pid_t pid);
size_t watch_count(const struct watch *watch);
const struct watched *watch_at(const struct watch *watch, size_t index);

#endif
