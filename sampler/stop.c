/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/stop.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "sampler/procfs.h"

#define GIVE_UP_NS (5 * NS_PER_MS)
#define SPIN_NS    (60 * NS_PER_US) /* most stops are reached within it; then the CPU may be what the thread waits for */
#define NAP_NS     (50 * NS_PER_US)

/* Whether a system call of the thread was interrupted so that it fails with EINTR; others begin anew unseen (ERESTARTSYS and its like,
 * include/linux/errno.h). */
static bool is_interrupted(const struct user_regs_struct *user)
{
#if defined(__x86_64__)
	return (long long)user->orig_rax >= 0 && (long long)user->rax == -EINTR;
#elif defined(__aarch64__)
	return (long long)user->regs[0] == -EINTR; /* whether in a system call is not told: too many are counted */
#else
	(void)user;
	return false;
#endif
}

static const char tracer_key[] = "\nTracerPid:\t";

enum arrival { ARRIVED_NOT, ARRIVED, ARRIVED_GONE };

void stop_prepare(void)
{
	struct sigaction action;

	if (sigaction(SIGCHLD, NULL, &action) != 0 || (action.sa_flags & SA_NOCLDSTOP))
		return;
	action.sa_flags |= SA_NOCLDSTOP;
	sigaction(SIGCHLD, &action, NULL);
}

int stop_check(void)
{
	/* An address makes no sense with it, which is looked at before anything else (ptrace_attach(), kernel/ptrace.c). */
	if (ptrace(PTRACE_SEIZE, getpid(), 1, 0) == 0 || errno == EIO)
		return 0;
	return -errno;
}

/* Whether it was we who started this process: then who waits for it is our main thread. */
static bool is_our_child(pid_t pid)
{
	struct proc_stat stat;

	return proc_stat_read(&stat, pid, 0) == 0 && stat.parent_pid == getpid();
}

/* A thread that ended while it was traced stays until its tracer has heard of it, and who waits for its process waits as long (wait_task_zombie(),
 * kernel/exit.c). True: there is no more to do. */
static bool reap(pid_t pid, pid_t tid)
{
	siginfo_t info = {0};

	if (tid == pid && is_our_child(pid))
		return true;
	return waitid(P_PID, (id_t)tid, &info, WEXITED | WNOHANG | __WALL) != 0 || info.si_pid != 0;
}

/* Whether a thread is traced by this one. A thread that execs goes on under its process' number. */
static bool is_ours(pid_t tid)
{
	struct buf status = {0};
	const char *line = NULL;
	char path[64];
	bool ours;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	if (proc_read_file(path, &status, 64 * 1024) == 0)
		line = strstr(buf_text(&status), tracer_key);
	ours = line && atoi(line + strlen(tracer_key)) == gettid();
	buf_release(&status);
	return ours;
}

/* Whether it has come to a stop, and with which signal on its way. Ends are not waited for here: they may be for our main thread. */
static enum arrival look(pid_t tid, int *ret_signal)
{
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)tid, &info, WSTOPPED | WNOHANG | __WALL) != 0)
		return ARRIVED_GONE;
	if (info.si_pid == 0)
		return ARRIVED_NOT;
	/* The upper bits are those of an event of ptrace: then the lower ones are no signal to be delivered. */
	*ret_signal = info.si_status >> 8 ? 0 : info.si_status;
	return ARRIVED;
}

/* Ended threads cannot be told from running ones by waiting for stops alone. */
static bool has_ended(pid_t pid, pid_t tid)
{
	struct proc_stat stat;
	int err = proc_stat_read(&stat, pid, tid);

	return err == -ENOENT || err == -ESRCH || (!err && (stat.state == 'Z' || stat.state == 'X'));
}

/* Waits for the stop: at first on the CPU, since sleeping takes longer than most stops. */
static enum arrival wait_for(struct stop *stop)
{
	const struct timespec nap = clock_to_timespec(NAP_NS);
	uint64_t asked_ns = stop->t_ran_ns, now_ns = asked_ns;
	enum arrival arrival;

	while ((arrival = look(stop->tid, &stop->signal)) == ARRIVED_NOT) {
		stop->t_ran_ns = now_ns;
		if (now_ns - asked_ns > GIVE_UP_NS)
			break;
		if (now_ns - asked_ns > SPIN_NS)
			clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
		now_ns = clock_now_ns();
	}
	return arrival;
}

static void remember(struct stopper *stopper, pid_t pid, pid_t tid)
{
	stopper->pending[stopper->pending_count++] =
		(struct pending_stop){.pid = pid, .tid = tid, .t_looked_ns = clock_now_ns()};
}

bool stopper_is_pending(const struct stopper *stopper, pid_t tid)
{
	for (uint32_t i = 0; i < stopper->pending_count; i++)
		if (stopper->pending[i].tid == tid)
			return true;
	return false;
}

/* A thread that stops cannot be waited for: it has ended, and stays until it was waited for otherwise, which keeps its process' exec waiting; or it has
 * become its process' only one by exec, under another number. True: there is no more to do for it. */
static bool is_over(struct stopper *stopper, pid_t pid, pid_t tid)
{
	if (!reap(pid, tid))
		return false;
	if (tid != pid && !stopper_is_pending(stopper, pid) && is_ours(pid) &&
	    stopper->pending_count < STOPS_PENDING_MAX)
		remember(stopper, pid, pid);
	return true;
}

/* Why it cannot be seized: another one traces it, or a stop of ours is to come; or it has ended by now (ptrace_attach() in kernel/ptrace.c looks at
 * exit_state). */
static int why_not(pid_t pid, pid_t tid, int err)
{
	return has_ended(pid, tid) ? -ESRCH : -err;
}

/* Whether a thread of this process is ours still. Seizing another one would wait for an exec that is under way, and that for our thread's end to be
 * noticed: for ever (cred_guard_mutex and de_thread() in the kernel). */
static bool holds_any(const struct stopper *stopper, pid_t pid)
{
	for (uint32_t i = 0; i < stopper->pending_count; i++)
		if (stopper->pending[i].pid == pid)
			return true;
	return false;
}

int stop_thread(struct stopper *stopper, pid_t pid, pid_t tid, struct stop *ret_stop)
{
	struct stop stop = {.pid = pid, .tid = tid, .t_ran_ns = clock_now_ns()};

	if (stopper->pending_count == STOPS_PENDING_MAX || holds_any(stopper, pid))
		return why_not(pid, tid, EBUSY);
	if (ptrace(PTRACE_SEIZE, tid, 0, 0) != 0)
		return why_not(pid, tid, errno);
	/* From here on it is ours until it has stopped and was detached, or has ended and was waited for. */
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0) {
		switch (wait_for(&stop)) {
		case ARRIVED:
			*ret_stop = stop;
			return 0;
		case ARRIVED_GONE:
			break;
		case ARRIVED_NOT:
			remember(stopper, pid, tid);
			return -ETIMEDOUT;
		}
	}
	if (!is_over(stopper, pid, tid))
		remember(stopper, pid, tid);
	return -ESRCH;
}

/* True: it runs on, or has ended; nothing of it is ours any more. */
static bool let_go(pid_t pid, pid_t tid, int signal)
{
	if (ptrace(PTRACE_DETACH, tid, 0, (long)signal) == 0)
		return true;
	/* Killed while it stood. */
	return reap(pid, tid);
}

void stop_release(struct stopper *stopper, struct stop *stop, struct rec_facts *facts)
{
	uint64_t length_ns;

	if (!let_go(stop->pid, stop->tid, stop->signal))
		remember(stopper, stop->pid, stop->tid);
	length_ns = clock_now_ns() - stop->t_ran_ns;
	facts->stops++;
	facts->stop_ns += length_ns;
	if (facts->stop_max_ns < length_ns)
		facts->stop_max_ns = length_ns;
	facts->stop_bins[stop_bin(length_ns)]++;
}

bool stopper_take_late(struct stopper *stopper, struct stop *ret_stop)
{
	for (uint32_t i = 0; i < stopper->pending_count;) {
		struct pending_stop *pending = &stopper->pending[i];
		struct stop stop = {.pid = pending->pid, .tid = pending->tid, .t_ran_ns = pending->t_looked_ns};
		uint64_t now_ns = clock_now_ns();
		enum arrival arrival = look(stop.tid, &stop.signal);

		if (arrival != ARRIVED &&
		    !(arrival == ARRIVED_NOT ? has_ended(stop.pid, stop.tid) && reap(stop.pid, stop.tid)
		                             : is_over(stopper, stop.pid, stop.tid))) {
			pending->t_looked_ns = now_ns;
			i++;
			continue;
		}
		*pending = stopper->pending[--stopper->pending_count];
		if (arrival == ARRIVED) {
			*ret_stop = stop;
			return true;
		}
	}
	return false;
}

void stopper_collect(struct stopper *stopper)
{
	struct rec_facts ignored = {0};
	struct stop stop;

	while (stopper_take_late(stopper, &stop))
		stop_release(stopper, &stop, &ignored);
}

int stop_registers(const struct stop *stop, struct unwind_regs *ret_regs, bool *ret_interrupted)
{
	struct user_regs_struct user;
	struct iovec into = {.iov_base = &user, .iov_len = sizeof(user)};

	if (ptrace(PTRACE_GETREGSET, stop->tid, NT_PRSTATUS, &into) != 0)
		return -errno;
	if (into.iov_len != sizeof(user))
		return -ENOTSUP; /* a 32-bit one */
	regs_take(ret_regs, &user);
	*ret_interrupted = is_interrupted(&user);
	return 0;
}

uint32_t stop_bin(uint64_t length_ns)
{
	uint32_t octave = 0;

	if (length_ns < NS_PER_US)
		return 0;
	while (octave < STOP_BINS / 4 && length_ns >= 2 * NS_PER_US << octave)
		octave++;
	/* 2^(k/4) in 1/1024: the bin's lower edges within a doubling. */
	for (uint32_t k = 4; k-- > 0;) {
		static const uint64_t edges[] = {1024, 1218, 1448, 1722};
		uint32_t bin = 4 * octave + k;

		if (length_ns * 1024 >= (NS_PER_US << octave) * edges[k])
			return bin < STOP_BINS ? bin : STOP_BINS - 1;
	}
	return 0;
}
