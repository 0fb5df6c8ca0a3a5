/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time of threads by the kernel's own count: /proc/PID/task/TID/schedstat, "time on a CPU, time waiting for one, times it got one". The
 * kernel counts when a thread is switched out and at scheduler ticks of up to 10 ms, so a thread is asked each 20 ms at most, and only
 * when it was seen to run since. The sampler thread's alone. */
#ifndef SAMPLED_SAMPLER_CPUTIME_H
#define SAMPLED_SAMPLER_CPUTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/ring.h"

/* Of one thread: what the consumer has been told of. */
struct cputime {
	uint64_t cpu_ns, wait_ns;
	uint64_t t_ns; /* when; 0: it cannot be asked */
	bool ran;      /* it was seen to run, or had moved, since */
	bool others;   /* a run has ended since: what it has used is not all of the run in progress */
};

/* A target's files, kept open for those threads that were asked last: not more than these, however many threads there are. */
#define CPUTIME_FILES 16u

struct cputime_files {
	struct {
		uint32_t thread; /* id; 0: none */
		int fd;
	} kept[CPUTIME_FILES];
};

/* Notes what the thread has used before it is sampled: that is nobody's. A kernel that does not count says so by zeros. */
void cputime_begin(struct cputime *time, pid_t pid, pid_t tid, uint64_t now_ns);
/* Whether enough of the thread's time has passed for it to be asked again. */
static inline bool cputime_is_due(const struct cputime *time, uint64_t now_ns)
{
	return time->ran && time->t_ns != 0 && now_ns >= time->t_ns + UINT64_C(20000000);
}
/* Asks, and writes a REC_TIME unless nothing was used since the one before. A thread that is gone, and a full ring, leave all as it was: the
 * time goes into the next record. */
void cputime_write(struct cputime *time, struct cputime_files *files, pid_t pid, pid_t tid, uint32_t thread,
                   struct ring *ring);
/* Closes what is kept for one thread; for all (0). */
void cputime_forget(struct cputime_files *files, uint32_t thread);

/* Parses such a file's text; pure, for tests. False: it makes no sense. */
bool cputime_parse(const char *text, size_t bytes, uint64_t *ret_cpu_ns, uint64_t *ret_wait_ns);

#endif
