/* SPDX-License-Identifier: Apache-2.0 */
/* Each test confines a child of its own, which says how many of its expectations did not hold. */
#include "exporters/sandbox.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"

static int missed;

static void expect(bool holds, const char *what)
{
	if (holds)
		return;
	missed++;
	fprintf(stderr, "sandbox: does not hold: %s (%s)\n", what, strerror(errno));
}

/* Runs body() in a child; true when all that it expected held. */
static bool in_child(void (*body)(void))
{
	pid_t pid = fork();
	int status;

	cr_assert_geq(pid, 0);
	if (pid == 0) {
		body();
		_exit(missed ? 1 : 0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return status == 0;
}

/* A line of /proc/self/status as a number, hexadecimal for the capabilities. */
static unsigned long long own(const char *key, int base)
{
	FILE *file = fopen("/proc/self/status", "re");
	unsigned long long value = ~0ULL;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':')
			value = strtoull(line + strlen(key) + 1, NULL, base);
	if (file)
		fclose(file);
	return value;
}

/* CAP_DAC_READ_SEARCH is 2, CAP_SYS_PTRACE 19. */
enum { READER_CAPABILITIES = 1 << 2 | 1 << 19 };

static void expect_refused(int result, const char *what)
{
	expect(result < 0 && errno == EPERM, what);
}

static void *say_yes(void *said)
{
	*(bool *)said = true;
	return NULL;
}

static void expect_ordinary_life(void)
{
	char *const argv[] = {"true", NULL}, *const envp[] = {NULL};
	bool said = false;
	pthread_t thread;
	FILE *file = tmpfile();

	expect(file && fputs("text", file) >= 0 && fclose(file) == 0, "files are written");
	expect(pthread_create(&thread, NULL, say_yes, &said) == 0 && pthread_join(thread, NULL) == 0 && said,
	       "threads are made");
	expect(socket(AF_UNIX, SOCK_STREAM, 0) >= 0, "unix sockets are made");
	expect_refused(execve("/bin/true", argv, envp), "programs are not started");
	expect_refused(chroot("/"), "the root is not changed");
	expect(own("NoNewPrivs", 10) == 1, "no new privileges");
	expect(own("Seccomp", 10) == 2, "calls are filtered");
	expect(own("CapInh", 16) == 0 && own("CapAmb", 16) == 0, "nothing is inherited");
}

static ssize_t read_own(void)
{
	int from = 7, to = 0;
	struct iovec local = {&to, sizeof(to)}, remote = {&from, sizeof(from)};

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
}

static bool asks_for_turns(pid_t of)
{
	uint32_t attr[12] = {sizeof(attr)};

	return syscall(SYS_sched_getattr, of, attr, sizeof(attr), 0) == 0 && syscall(SYS_sched_setattr, of, attr, 0) == 0;
}

static void be_a_reader(void)
{
	int from = 7, to = 0;
	struct iovec local = {&from, sizeof(from)}, remote = {&to, sizeof(to)};
	bool root = geteuid() == 0;

	expect(sandbox_reader(false, NULL) == 0, "a reader is confined");
	expect_ordinary_life();
	expect(read_own() == sizeof(int), "memory is read");
	expect(asks_for_turns(0), "of its own turns it may say how long");
	expect(!asks_for_turns(getppid()), "but of nobody else's");
	expect_refused((int)process_vm_writev(getpid(), &local, 1, &remote, 1, 0), "memory is not written");
	expect_refused(socket(AF_INET, SOCK_STREAM, 0), "no network");
	expect_refused(socket(AF_NETLINK, SOCK_RAW, 0), "no other sockets");
#ifndef __SANITIZE_ADDRESS__
	expect_refused((int)ptrace(PTRACE_TRACEME, 0, NULL, NULL), "nothing is traced");
	expect_refused(fork(), "no processes are made");
#endif
	expect(own("CapEff", 16) == (root ? READER_CAPABILITIES : 0), "two capabilities");
	expect(own("CapPrm", 16) == (root ? READER_CAPABILITIES : 0), "and no more to be had");
	expect(!root || own("CapBnd", 16) == READER_CAPABILITIES, "nor by a program");
}

static void be_a_tracer(void)
{
	expect(sandbox_reader(true, NULL) == 0, "a tracer is confined");
	expect(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0, "what is stopped is traced");
	expect_refused(socket(AF_INET, SOCK_STREAM, 0), "no network");
}

static void be_a_pusher(void)
{
	expect(sandbox_pusher(NULL) == 0, "a pusher is confined");
	expect_ordinary_life();
	expect(socket(AF_INET, SOCK_STREAM, 0) >= 0, "there is a network");
	expect(socket(AF_INET6, SOCK_STREAM, 0) >= 0 || errno == EAFNOSUPPORT, "and the other one");
	expect_refused((int)read_own(), "memory is not read");
	expect(own("CapEff", 16) == 0 && own("CapPrm", 16) == 0, "no capability");
	expect(geteuid() != 0 || own("CapBnd", 16) == 0, "nor by a program");
}

static void *wait_a_while(void *pipe_end)
{
	char byte;

	return read(*(int *)pipe_end, &byte, 1) ? pipe_end : NULL;
}

static void be_late(void)
{
	struct fault fault = {0};
	pthread_t thread;
	int ends[2];

	expect(pipe(ends) == 0 && pthread_create(&thread, NULL, wait_a_while, &ends[0]) == 0, "there is a thread");
	expect(sandbox_reader(false, &fault) == -EBUSY && fault.why[0], "threads would keep their capabilities");
	close(ends[1]);
	pthread_join(thread, NULL);
}

/* As where another has confined us: capabilities, bounding set and no_new_privs are as they should be, and a filter stands that admits no
 * other. */
static void be_twice(void)
{
	expect(sandbox_reader(false, NULL) == 0, "confined");
	expect(sandbox_reader(false, NULL) == 0, "and found to be so");
	expect(sandbox_pusher(NULL) < 0 || geteuid() != 0, "capset is refused by then");
}

Test(sandbox, a_reader_reads_and_no_more)
{
	cr_assert(in_child(be_a_reader));
}

Test(sandbox, a_tracer_may_stop_what_it_reads)
{
	cr_assert(in_child(be_a_tracer));
}

Test(sandbox, a_pusher_has_a_network_and_no_capability)
{
	cr_assert(in_child(be_a_pusher));
}

static void confine_namer(void)
{
	int pair[2], file = open("/dev/null", O_RDWR);
	char byte = 0;
	void *page;

	expect(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0, "a socket is there before");
	expect(sandbox_namer(NULL) == 0, "a namer is confined");
	expect(own("CapEff", 16) == 0 && own("NoNewPrivs", 10) == 1, "no capability, no new privileges");
	expect(open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0, "files are read");
	expect(open("/dev/null", O_WRONLY) < 0 && errno == EPERM, "none is written");
	expect(open("/tmp/sampled-namer", O_RDONLY | O_CREAT, 0600) < 0 && errno == EPERM, "none is made");
	expect(socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM, "no network");
	expect(socket(AF_UNIX, SOCK_STREAM, 0) < 0 && errno == EPERM, "no other sockets");
#ifndef __SANITIZE_ADDRESS__ /* LeakSanitizer makes one */
	expect(fork() < 0 && errno == EPERM, "no other process");
#endif
	expect(kill(getppid(), 0) < 0 && errno == EPERM, "no signals to others");
	expect(prctl(PR_SET_DUMPABLE, 1) < 0 && errno == EPERM, "nothing of itself is changed");
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	expect(page != MAP_FAILED && mprotect(page, 4096, PROT_READ | PROT_EXEC) < 0, "memory is not run");
	expect(send(pair[0], &byte, 1, 0) == 1 && recv(pair[1], &byte, 1, 0) == 1, "it answers");
	close(file);
}

Test(sandbox, a_namer_reads_files_and_answers)
{
	cr_assert(in_child(confine_namer));
}

Test(sandbox, comes_before_threads)
{
	cr_assert(in_child(be_late));
}

Test(sandbox, what_is_there_already_stays)
{
	cr_assert(in_child(be_twice));
}
