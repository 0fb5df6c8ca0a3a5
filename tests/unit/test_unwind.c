/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of children that stop in functions whose callers they wrote down, each with the address that it was going to return to. One file, since all tests
 * share the children, and the stopping and comparing. */
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampler/unwind.h"

enum { BACKS_MAX = 64, FRAMES_MAX = 256, STACK_MAX = 512 * 1024 };

struct told { /* by the child, in memory that both have */
	volatile unsigned count;
	uintptr_t backs[BACKS_MAX]; /* return addresses of functions that have not returned, outermost first */
	volatile pid_t tid;
	volatile bool ready;
};

static struct told *told;
static volatile int never; /* keeps calls from being the last thing that a function does */

#define ENTER() (told->backs[told->count++] = (uintptr_t)__builtin_return_address(0))
#define APART   __attribute__((noinline, noclone))

struct seen {
	struct remote remote;
	struct pyproc proc;
	struct symtab *symbols;
	struct modules *modules;
	struct unwinder *unwinder;
	struct unwind_frame frames[FRAMES_MAX];
	struct unwound unwound;
	struct unwind_regs regs;
	uint8_t *stack;
	uint32_t stack_bytes;
};

static void open_seen(struct seen *seen, pid_t pid)
{
	memset(seen, 0, sizeof(*seen));
	seen->proc.pid = pid;
	seen->unwound = (struct unwound){.frames = seen->frames, .room = FRAMES_MAX};
	seen->stack = malloc(STACK_MAX);
	cr_assert_eq(remote_open(&seen->remote, pid), 0);
	cr_assert_eq(symtab_new(&seen->symbols), 0);
	cr_assert_eq(modules_new(&seen->modules, &seen->remote, &seen->proc, seen->symbols, 1), 0);
	cr_assert_eq(unwinder_new(&seen->unwinder, seen->modules), 0);
}

static void close_seen(struct seen *seen)
{
	unwinder_free(seen->unwinder);
	modules_free(seen->modules);
	symtab_free(seen->symbols);
	remote_release(&seen->remote);
	free(seen->stack);
}

static void take_registers(struct unwind_regs *to, pid_t tid)
{
	struct user_regs_struct registers;
	struct iovec room = {.iov_base = &registers, .iov_len = sizeof(registers)};

	cr_assert_eq(ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &room), 0);
	regs_take(to, &registers);
}

static void copy_stack(struct seen *seen)
{
	ssize_t got =
		remote_read_some(&seen->remote, seen->regs.values[UNWIND_SP] - UNWIND_BELOW, seen->stack, STACK_MAX);

	cr_assert_gt(got, 0);
	seen->stack_bytes = (uint32_t)got;
}

static void look(struct seen *seen)
{
	cr_assert_eq(unwind(seen->unwinder, &seen->regs, seen->stack, seen->regs.values[UNWIND_SP] - UNWIND_BELOW,
	                    seen->stack_bytes, &seen->unwound),
	             0);
}

/* Stops it, and unwinds what it had at that moment. */
static void stop_and_look(struct seen *seen, pid_t tid)
{
	int status;

	cr_assert_eq(ptrace(PTRACE_SEIZE, tid, 0, 0), 0);
	cr_assert_eq(ptrace(PTRACE_INTERRUPT, tid, 0, 0), 0);
	cr_assert_eq(waitpid(tid, &status, __WALL), tid);
	seen->regs = (struct unwind_regs){0};
	take_registers(&seen->regs, tid);
	copy_stack(seen);
	cr_assert_eq(ptrace(PTRACE_DETACH, tid, 0, 0), 0);
	look(seen);
}

/* How many of the return addresses that were told, innermost first, stand in this order among the frames. */
static unsigned found_backs(const struct seen *seen)
{
	unsigned found = 0;

	for (uint32_t i = 1; i < seen->unwound.depth && found < told->count; i++)
		if (seen->frames[i].pc + 1 == told->backs[told->count - 1 - found])
			found++;
	return found;
}

static void show(const struct seen *seen)
{
	for (uint32_t i = 0; i < seen->unwound.depth; i++)
		fprintf(stderr, "%3u %s+%#x\n", i, modules_path(seen->frames[i].module),
		        modules_where(seen->frames[i].module, seen->frames[i].pc));
}

static void expect_whole(const struct seen *seen, const char *what)
{
	unsigned found = found_backs(seen);

	if (seen->unwound.end != UNWIND_ROOT || found != told->count)
		show(seen);
	cr_expect_eq(seen->unwound.end, UNWIND_ROOT, "%s: the end is %d", what, seen->unwound.end);
	cr_expect_eq(found, told->count, "%s: %u of %u callers", what, found, told->count);
}

static pid_t start(void (*run)(void))
{
	pid_t pid;

	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(told, MAP_FAILED);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		alarm(20);
		run();
		_exit(0);
	}
	return pid;
}

static void finish(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	munmap(told, sizeof(*told));
}

static void await_ready(void)
{
	for (int i = 0; i < 5000 && !told->ready; i++)
		usleep(1000);
	cr_assert(told->ready);
}

/* What the chains end in: it runs on, in this very function, until it is killed. */
APART static void spin(void)
{
	ENTER();
	told->tid = gettid();
	told->ready = true;
	while (!never)
		;
}

APART static void two(void (*then)(void))
{
	ENTER();
	then();
	never--;
}

/* Of a size that is known at run time only, so that it takes a frame pointer. */
APART static void with_frame_pointer(void (*then)(void))
{
	volatile char *room = __builtin_alloca(told->count * 16 + 64);

	ENTER();
	room[0] = 1;
	two(then);
	never -= room[0];
}

/* Its stack pointer is realigned, which takes a DWARF expression with some compilers. */
APART static void realigned(void (*then)(void))
{
	volatile char room[256] __attribute__((aligned(128)));

	ENTER();
	room[told->count] = 1;
	with_frame_pointer(then);
	never -= room[1];
}

static void (*then_of)(void);

static int compare(const void *a, const void *b)
{
	(void)a;
	(void)b;
	ENTER();
	realigned(then_of);
	return never;
}

APART static void through_qsort(void (*then)(void))
{
	int numbers[] = {3, 2, 1};

	ENTER();
	then_of = then;
	qsort(numbers, 3, sizeof(numbers[0]), compare);
	never--;
}

static void on_signal(int number)
{
	(void)number;
	ENTER();
	two(then_of);
	never--;
}

APART static void through_signal(void (*then)(void))
{
	ENTER();
	then_of = then;
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	never--;
}

static void run_plain(void)
{
	two(spin);
}

static void run_qsort(void)
{
	through_qsort(spin);
}

static void run_signal(void)
{
	through_signal(spin);
}

static void signal_then_spin(void)
{
	ENTER();
	through_signal(spin);
	never--;
}

static void run_all(void)
{
	through_qsort(signal_then_spin);
}

static void check(void (*run)(void), const char *what)
{
	struct seen seen;
	pid_t pid = start(run);

	await_ready();
	open_seen(&seen, pid);
	stop_and_look(&seen, pid);
	expect_whole(&seen, what);
	/* The second time by what was learnt the first time. */
	look(&seen);
	expect_whole(&seen, what);
	finish(pid);
	close_seen(&seen);
}

Test(unwind, of_known_chains)
{
	check(run_plain, "plain");
	check(run_qsort, "through qsort(), with frame pointers and realigned");
	check(run_signal, "through a signal");
	check(run_all, "all of them");
}

static void *thread(void *nothing)
{
	ENTER();
	two(spin);
	return nothing;
}

static void run_thread(void)
{
	pthread_t id;

	pthread_create(&id, NULL, thread, NULL);
	pthread_join(id, NULL);
}

Test(unwind, of_a_thread_to_its_root)
{
	struct seen seen;
	pid_t pid = start(run_thread);

	await_ready();
	open_seen(&seen, pid);
	stop_and_look(&seen, told->tid);
	expect_whole(&seen, "thread");
	cr_expect_lt(seen.unwound.depth, 12u, "beyond its root");
	finish(pid);
	close_seen(&seen);
}

static void run_libm(void)
{
	volatile double sum = 0;

	told->ready = true;
	while (!never)
		sum += tgamma(1.5 + sum / 1e300) + pow(sum, 0.3) + sin(sum);
}

/* Stopped wherever it is: in the stub of the call, the first instructions of the function, its last ones. */
Test(unwind, of_moments_in_libm)
{
	unsigned inside = 0;
	struct seen seen;
	pid_t pid = start(run_libm);

	await_ready();
	open_seen(&seen, pid);
	for (unsigned i = 0; i < 200; i++) {
		stop_and_look(&seen, pid);
		expect_whole(&seen, "libm");
		inside += strstr(modules_path(seen.frames[0].module), "libm.so") != NULL;
		usleep(200);
	}
	cr_expect_gt(inside, 20u);
	cr_expect_lt(unwinder_counts(seen.unwinder).learnt, 2000u, "what was learnt is kept");
	finish(pid);
	close_seen(&seen);
}

/* Between any two instructions, those included in which a function takes its registers off the stack. */
Test(unwind, of_each_instruction)
{
	struct seen seen;
	pid_t pid = start(run_libm);
	int status;

	await_ready();
	open_seen(&seen, pid);
	cr_assert_eq(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
	cr_assert_eq(ptrace(PTRACE_INTERRUPT, pid, 0, 0), 0);
	cr_assert_eq(waitpid(pid, &status, __WALL), pid);
	for (unsigned i = 0; i < 3000; i++) {
		take_registers(&seen.regs, pid);
		copy_stack(&seen);
		look(&seen);
		if (seen.unwound.end != UNWIND_ROOT)
			show(&seen);
		cr_assert_eq(seen.unwound.end, UNWIND_ROOT, "instruction %u at %#llx: %d", i,
		             (unsigned long long)seen.regs.values[UNWIND_IP], seen.unwound.end);
		cr_assert_eq(ptrace(PTRACE_SINGLESTEP, pid, 0, 0), 0);
		cr_assert_eq(waitpid(pid, &status, __WALL), pid);
	}
	finish(pid);
	close_seen(&seen);
}

static void on_other_stack(int number)
{
	(void)number;
	ENTER();
	two(spin);
	never--;
}

static void run_other_stack(void)
{
	stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
	struct sigaction action = {.sa_handler = on_other_stack, .sa_flags = SA_ONSTACK};

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
}

Test(unwind, of_a_handler_on_another_stack_ends_there)
{
	struct seen seen;
	pid_t pid = start(run_other_stack);

	await_ready();
	open_seen(&seen, pid);
	stop_and_look(&seen, pid);
	cr_expect_eq(found_backs(&seen), told->count);
	cr_expect_eq(seen.unwound.end, UNWIND_CUT, "the end is %d", seen.unwound.end);
	finish(pid);
	close_seen(&seen);
}

APART static void block(void)
{
	ENTER();
	told->ready = true;
	pause();
	never--;
}

static void run_blocked(void)
{
	two(block);
}

/* A thread that waits in the kernel is not stopped: two registers of it are told all the same. */
Test(unwind, of_a_blocked_thread_by_two_registers)
{
	char path[64], text[256] = "";
	unsigned long long words[9];
	struct seen seen;
	pid_t pid = start(run_blocked);
	int fd;

	await_ready();
	usleep(20000);
	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
	fd = open(path, O_RDONLY);
	cr_assert_geq(fd, 0);
	cr_assert_gt(read(fd, text, sizeof(text) - 1), 0);
	close(fd);
	cr_assert_eq(sscanf(text, "%lld %llx %llx %llx %llx %llx %llx %llx %llx", (long long *)&words[0], &words[1],
	                    &words[2], &words[3], &words[4], &words[5], &words[6], &words[7], &words[8]),
	             9, "%s", text);
	open_seen(&seen, pid);
	unwind_set(&seen.regs, UNWIND_SP, words[7]);
	unwind_set(&seen.regs, UNWIND_IP, words[8]);
	copy_stack(&seen);
	look(&seen);
	/* Further out somebody may have a frame pointer, which is not known. */
	cr_expect(seen.unwound.end == UNWIND_ROOT || seen.unwound.end == UNWIND_CUT, "the end is %d", seen.unwound.end);
#ifdef __SANITIZE_ADDRESS__ /* built with frame pointers, of which the first is not known */
	cr_expect_leq(found_backs(&seen), told->count);
#else
	cr_expect_eq(found_backs(&seen), told->count);
#endif
	finish(pid);
	close_seen(&seen);
}

Test(unwind, of_a_copy_that_is_too_short)
{
	struct seen seen;
	uint32_t whole, last = 0;
	pid_t pid = start(run_all);

	await_ready();
	open_seen(&seen, pid);
	stop_and_look(&seen, pid);
	whole = seen.unwound.depth;
	for (uint32_t bytes = UNWIND_BELOW; bytes < 4096; bytes += 40) {
		seen.stack_bytes = bytes;
		look(&seen);
		cr_expect_eq(seen.unwound.end, UNWIND_CUT);
		cr_expect(seen.unwound.depth >= last && seen.unwound.depth < whole);
		last = seen.unwound.depth;
	}
	cr_expect_gt(last, 3u);
	finish(pid);
	close_seen(&seen);
}

Test(unwind, of_more_frames_than_there_is_room)
{
	struct seen seen;
	pid_t pid = start(run_all);

	await_ready();
	open_seen(&seen, pid);
	seen.unwound.room = 3;
	stop_and_look(&seen, pid);
	cr_expect_eq(seen.unwound.end, UNWIND_DEEP);
	cr_expect_eq(seen.unwound.depth, 3u);
	finish(pid);
	close_seen(&seen);
}

/* Rubbish for a stack leads nowhere, and to an end. */
Test(unwind, of_rubbish)
{
	struct seen seen;
	uint64_t seed = 1;
	pid_t pid = start(run_all);

	await_ready();
	open_seen(&seen, pid);
	stop_and_look(&seen, pid);
	for (unsigned i = 0; i < 2000; i++) {
		raddr_t sp = seen.regs.values[UNWIND_SP];
		struct unwind_regs kept = seen.regs;

		for (uint32_t at = 0; at + 8 <= 8192 && at + 8 <= seen.stack_bytes; at += 8) {
			uint64_t word;

			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
			word = seed >> 33 & 1 ? sp + (seed >> 40) % 9000 : seen.frames[seed % seen.unwound.depth].pc;
			memcpy(seen.stack + at, &word, sizeof(word));
		}
		for (unsigned r = 0; r < UNWIND_REGS; r++)
			if (r != UNWIND_SP && r != UNWIND_IP && seed >> r & 1)
				seen.regs.values[r] = sp + (seed >> (20 + r)) % 9000;
		look(&seen);
		cr_assert_leq(seen.unwound.depth, FRAMES_MAX);
		seen.regs = kept;
	}
	finish(pid);
	close_seen(&seen);
}

Test(unwind, needs_two_registers)
{
	struct seen seen;
	uint8_t stack[64] = {0};

	open_seen(&seen, getpid());
	cr_expect_eq(unwind(seen.unwinder, &seen.regs, stack, 4096, sizeof(stack), &seen.unwound), -EINVAL);
	unwind_set(&seen.regs, UNWIND_SP, 4096);
	unwind_set(&seen.regs, UNWIND_IP, 8);
	cr_expect_eq(unwind(seen.unwinder, &seen.regs, stack, 4096, sizeof(stack), &seen.unwound), 0);
	cr_expect_eq(seen.unwound.depth, 0u);
	cr_expect_eq(seen.unwound.end, UNWIND_BAD, "nothing is there");
	/* A return address that the one before it is 0 of. */
	unwind_set(&seen.regs, UNWIND_IP, (raddr_t)(uintptr_t)two);
	stack[0] = 1;
	if (UNWIND_LINK < UNWIND_REGS)
		unwind_set(&seen.regs, UNWIND_LINK, 1);
	cr_expect_eq(unwind(seen.unwinder, &seen.regs, stack, 4096, sizeof(stack), &seen.unwound), 0);
	cr_expect_eq(seen.unwound.depth, 1u);
	cr_expect_eq(seen.unwound.end, UNWIND_BAD);
	close_seen(&seen);
}
