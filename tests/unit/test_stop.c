/* SPDX-License-Identifier: Apache-2.0 */
/* Stops of real threads: what they leave behind, and what happens to signals, ends and stops that do not come. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sampler/oncpu.h"
#include "sampler/procfs.h"
#include "sampler/stop.h"

struct shared {
	volatile uint64_t turns;
	volatile unsigned signals;
} * shared;

static void count_signal(int number)
{
	(void)number;
	shared->signals++;
}

static pid_t spinner(void)
{
	pid_t pid;

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(shared, MAP_FAILED);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		signal(SIGUSR1, count_signal);
		for (;;)
			shared->turns++;
	}
	while (shared->turns == 0)
		sched_yield();
	return pid;
}

static char state_of(pid_t pid)
{
	struct proc_stat stat;

	return proc_stat_read(&stat, pid, 0) == 0 ? stat.state : '?';
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	cr_expect_eq(waitpid(pid, NULL, 0), pid);
}

static bool goes_on(void)
{
	uint64_t turns = shared->turns, until_ns = clock_now_ns() + 5 * NS_PER_S;

	while (shared->turns == turns && clock_now_ns() < until_ns)
		sched_yield();
	return shared->turns != turns;
}

Test(stop, a_thread_stands_and_goes_on)
{
	struct stopper stopper = {.pending_count = 0};
	struct rec_facts facts = {0};
	pid_t pid = spinner();
	struct unwind_regs regs;
	bool interrupted = true;
	struct stop stop;
	uint64_t turns;
	int err;

	do {
		stopper_collect(&stopper);
		err = stop_thread(&stopper, pid, pid, &stop);
	} while (err == -ETIMEDOUT || err == -EBUSY); /* a busy machine */
	cr_assert_eq(err, 0, "%s", strerror(-err));
	turns = shared->turns;
	cr_expect_eq(stop_registers(&stop, &regs, &interrupted), 0);
	cr_expect(unwind_knows(&regs, UNWIND_IP) && regs.values[UNWIND_IP] != 0);
	cr_expect(!interrupted);
	usleep(2000);
	cr_expect_eq(shared->turns, turns);
	stop_release(&stopper, &stop, &facts);
	cr_expect_eq(facts.stops, 1u);
	cr_expect_geq(facts.stop_ns, 2 * NS_PER_MS);
	cr_expect_eq(facts.stop_bins[stop_bin(facts.stop_max_ns)], 1u);
	cr_expect(goes_on());
	end(pid);
}

Test(stop, signals_that_come_meanwhile_are_delivered)
{
	struct stopper stopper = {.pending_count = 0};
	struct rec_facts facts = {0};
	pid_t pid = spinner();
	unsigned sent = 0;
	uint64_t until_ns;

	for (int i = 0; i < 300; i++) {
		struct stop stop;
		int err;

		kill(pid, SIGUSR1);
		err = stop_thread(&stopper, pid, pid, &stop);
		if (err == 0)
			stop_release(&stopper, &stop, &facts);
		else
			stopper_collect(&stopper);
		/* A standard signal that is pending is not sent twice. */
		until_ns = clock_now_ns() + 5 * NS_PER_S;
		while (shared->signals == sent && clock_now_ns() < until_ns)
			stopper_collect(&stopper);
		cr_assert_eq(shared->signals, ++sent, "a signal was lost");
	}
	cr_expect_gt(facts.stops, 0u);
	end(pid);
}

Test(stop, a_process_that_is_stopped_stays_so)
{
	struct stopper stopper = {.pending_count = 0};
	struct rec_facts facts = {0};
	pid_t pid = spinner();
	uint64_t turns, until_ns;
	struct stop stop;
	int err;

	kill(pid, SIGSTOP);
	while (state_of(pid) != 'T')
		sched_yield();
	err = stop_thread(&stopper, pid, pid, &stop);
	cr_assert_eq(err, 0, "%s", strerror(-err));
	turns = shared->turns;
	stop_release(&stopper, &stop, &facts);
	until_ns = clock_now_ns() + 5 * NS_PER_S;
	while (state_of(pid) != 'T' && clock_now_ns() < until_ns) /* it is woken to stop again */
		sched_yield();
	cr_expect_eq(state_of(pid), 'T');
	cr_expect_eq(shared->turns, turns, "it ran in between");
	kill(pid, SIGCONT);
	cr_expect(goes_on());
	end(pid);
}

Test(stop, an_end_is_told)
{
	struct stopper stopper = {.pending_count = 0};
	struct rec_facts facts = {0};
	pid_t pid = spinner();
	struct stop stop;
	int err = stop_thread(&stopper, pid, pid, &stop);

	cr_assert(err == 0 || err == -ETIMEDOUT);
	kill(pid, SIGKILL);
	if (err == 0)
		stop_release(&stopper, &stop, &facts);
	/* Our own child: its end is left for us to wait for. */
	cr_expect_eq(waitpid(pid, NULL, 0), pid);
	stopper_collect(&stopper);
	cr_expect_not(stopper_is_waiting(&stopper));
	cr_expect_eq(stop_thread(&stopper, pid, pid, &stop), -ESRCH);
}

Test(stop, who_is_traced_is_refused)
{
	struct stopper stopper = {.pending_count = 0};
	pid_t pid = spinner(), tracer = fork();
	struct stop stop;

	cr_assert_geq(tracer, 0);
	if (tracer == 0) {
		if (ptrace(PTRACE_SEIZE, pid, 0, 0) != 0)
			_exit(1);
		shared->signals = 1;
		pause();
		_exit(0);
	}
	while (shared->signals == 0)
		sched_yield();
	cr_expect_eq(stop_thread(&stopper, pid, pid, &stop), -EPERM);
	cr_expect_not(stopper_is_waiting(&stopper));
	end(tracer);
	end(pid);
}

static void pin(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(pid, sizeof(set), &set); /* where there is no such CPU it stays where it is */
}

/* Until the CPU that it is to run on has taken note of it, the kernel's syscall file calls it blocked. */
Test(stop, one_that_is_being_woken_is_not_blocked)
{
	struct stopper stopper = {.pending_count = 0};
	struct rec_facts facts = {0};
	pid_t pid = spinner();
	unsigned blocked = 0;
	struct oncpu o;

	pin(pid, 1);
	pin(0, 0);
	oncpu_open(&o, pid, pid);
	for (int i = 0; i < 2000; i++) {
		struct stop stop;

		stopper_collect(&stopper);
		if (stop_thread(&stopper, pid, pid, &stop) != 0)
			continue;
		stop_release(&stopper, &stop, &facts);
		for (int k = 0; k < 10; k++) {
			cr_expect_eq(oncpu_ask(&o, 1), 0);
			blocked += o.state != ONCPU_RUNNABLE;
		}
	}
	cr_expect_eq(blocked, 0u, "%u of 20000 looks", blocked);
	cr_expect_gt(facts.stops, 0u);
	oncpu_release(&o);
	end(pid);
}

static void *tell_number(void *unused)
{
	(void)unused;
	shared->turns = (uint64_t)gettid();
	for (;;)
		pause();
	return NULL;
}

Test(stop, one_that_does_not_come_is_given_up_and_let_go)
{
	struct stopper stopper = {.pending_count = 0};
	struct rec_facts facts = {0};
	uint64_t until_ns;
	struct stop stop;
	int fds[2], err;
	pid_t pid, other;
	char byte;

	/* Who waits for its vfork()ed child cannot be stopped. */
	cr_assert_eq(pipe(fds), 0);
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(shared, MAP_FAILED);
	pid = fork();
	if (pid == 0) {
		pthread_t thread;
		pid_t child;

		if (pthread_create(&thread, NULL, tell_number, NULL) != 0)
			_exit(2);
		child = vfork();
		if (child == 0) {
			if (read(fds[0], &byte, 1) < 0)
				_exit(2);
			_exit(0);
		}
		pause();
		_exit(0);
	}
	while (state_of(pid) != 'D' || shared->turns == 0)
		sched_yield();
	other = (pid_t)shared->turns;
	err = stop_thread(&stopper, pid, pid, &stop);
	cr_expect_eq(err, -ETIMEDOUT, "%d", err);
	cr_expect(stopper_is_waiting(&stopper));
	cr_expect_eq(stop_thread(&stopper, pid, pid, &stop), -EBUSY);
	/* Seizing it would wait for an exec of the process, and that for the one that we hold. */
	cr_expect_eq(stop_thread(&stopper, pid, other, &stop), -EBUSY);
	cr_assert_eq(write(fds[1], "x", 1), 1);
	until_ns = clock_now_ns() + 5 * NS_PER_S;
	while (stopper_is_waiting(&stopper) && clock_now_ns() < until_ns)
		stopper_collect(&stopper);
	cr_expect_not(stopper_is_waiting(&stopper));
	while (state_of(pid) == 'R' || state_of(pid) == 't')
		sched_yield();
	cr_expect_eq(state_of(pid), 'S');
	cr_expect_eq(facts.stops, 0u);
	cr_assert_eq(stop_thread(&stopper, pid, other, &stop), 0);
	stop_release(&stopper, &stop, &facts);
	end(pid);
}

Test(stop, lengths_fall_into_quarters_of_doublings)
{
	uint32_t before = 0;

	cr_expect_eq(stop_bin(0), 0u);
	cr_expect_eq(stop_bin(999), 0u);
	cr_expect_eq(stop_bin(1000), 0u);
	cr_expect_eq(stop_bin(1189), 0u);
	cr_expect_eq(stop_bin(1190), 1u);
	cr_expect_eq(stop_bin(1415), 2u);
	cr_expect_eq(stop_bin(1682), 3u);
	cr_expect_eq(stop_bin(2000), 4u);
	cr_expect_eq(stop_bin(32000), 20u);
	cr_expect_eq(stop_bin(UINT64_C(3600) * NS_PER_S), STOP_BINS - 1u);
	for (uint64_t ns = 1; ns < UINT64_C(40) * NS_PER_S; ns += ns / 16 + 1) {
		uint32_t bin = stop_bin(ns);

		cr_expect(bin == before || bin == before + 1, "%lu", ns);
		before = bin;
	}
}

enum { SPINNERS = 4 };

static void *spin(void *unused)
{
	(void)unused;
	for (;;) {
		shared->signals++;
		usleep(20);
	}
	return NULL;
}

static void *exec_other(void *unused)
{
	char *const argv[] = {(char *)"true", NULL};

	(void)unused;
	shared->turns++;
	usleep(300);
	execv("/bin/true", argv);
	_exit(1);
}

/* exec waits for all other threads to be gone, and one that is traced is not until its tracer has heard of it. */
Test(stop, exec_from_another_thread_is_not_held_up)
{
	struct stopper stopper = {.pending_count = 0};
	struct rec_facts facts = {0};

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(shared, MAP_FAILED);
	for (int i = 0; i < 40; i++) {
		uint64_t until_ns = clock_now_ns() + 20 * NS_PER_S;
		pid_t pid, ended = 0;
		siginfo_t info;

		shared->turns = 0;
		pid = fork();
		cr_assert_geq(pid, 0);
		if (pid == 0) {
			pthread_t other;

			for (int k = 0; k < SPINNERS; k++)
				if (pthread_create(&other, NULL, spin, NULL) != 0)
					_exit(1);
			if (pthread_create(&other, NULL, exec_other, NULL) != 0)
				_exit(1);
			spin(NULL);
		}
		while (!ended && clock_now_ns() < until_ns) {
			/* The numbers of its threads are most often the next ones. */
			for (pid_t tid = pid; tid < pid + SPINNERS + 4; tid++) {
				struct proc_stat stat;
				struct stop stop;

				if (proc_stat_read(&stat, pid, tid) == 0 && stop_thread(&stopper, pid, tid, &stop) == 0)
					stop_release(&stopper, &stop, &facts);
			}
			stopper_collect(&stopper);
			memset(&info, 0, sizeof(info));
			if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
			    info.si_code == CLD_EXITED)
				ended = waitpid(pid, NULL, 0);
		}
		cr_assert_eq(ended, pid, "exec number %d was held up", i);
	}
	stopper_collect(&stopper);
	cr_expect_gt(facts.stops, 0u);
}
