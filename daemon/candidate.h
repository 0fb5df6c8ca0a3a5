/* SPDX-License-Identifier: Apache-2.0 */
/* A process that may be profiled: what rules ask of it and labels say of it. Read from /proc; all of it is the process' own word or that of who
 * started it, so it is bounded, made valid UTF-8, and no ground for trust: whoever may make cgroups may give them any name. */
#ifndef SAMPLED_DAEMON_CANDIDATE_H
#define SAMPLED_DAEMON_CANDIDATE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	CANDIDATE_LINE_BYTES = 4096,
	CANDIDATE_CGROUP_BYTES = 1024,
	CANDIDATE_UNIT_BYTES = 257, /* systemd's bound, and a NUL */
	CANDIDATE_CONTAINER_BYTES = 129,
};

/* Some 10 KB. What is not known is "". */
struct candidate {
	pid_t pid;
	uint64_t start_time; /* clock ticks since boot */
	uid_t uid;           /* effective */
	uint32_t version;    /* of its Python, major << 8 | minor; 0: not known yet */
	char comm[64]; /* for showing: what looks secret in it is masked */
	char command_line[CANDIDATE_LINE_BYTES]; /* arguments joined by blanks, for rules: it is never shown */
	char executable[PATH_MAX];               /* what /proc/PID/exe names, without " (deleted)" */
	char cgroup[CANDIDATE_CGROUP_BYTES]; /* path below the hierarchy's root, of systemd's where there are several */
	char unit[CANDIDATE_UNIT_BYTES];     /* innermost *.service or *.scope, of the system's or a user's manager */
	char container
		[CANDIDATE_CONTAINER_BYTES]; /* innermost: the 64 digits of Docker, Podman, containerd, CRI-O; the name of LXC, nspawn */
};

/* All but the version, which stays 0. 0, -ESRCH when the process is gone (or another by now has its number), or another -errno. */
int candidate_read(pid_t pid, struct candidate *ret_candidate);

/* Fills cgroup, unit and container from the text of /proc/PID/cgroup, of version 1, 2 or both. */
void candidate_parse_cgroup(struct candidate *candidate, const char *text, size_t bytes);

#endif
