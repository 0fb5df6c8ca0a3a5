/* SPDX-License-Identifier: Apache-2.0 */
/* Reading memory, our own for once, in both ways. */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampler/remote.h"

static void read_it(bool use_mem_file)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	raddr_t hole = (raddr_t)(uintptr_t)memory + page;
	struct remote remote;
	char to[64] = "";
	struct iovec local[3], from[3];
	uint64_t word = 0;

	cr_assert_neq(memory, MAP_FAILED);
	cr_assert_eq(munmap(memory + page, page), 0);
	memcpy(memory + page - 8, "12345678", 8);
	cr_assert_eq(remote_open(&remote, getpid()), 0);
	cr_assert_geq(remote.mem_fd, 0);
	remote.use_mem_file = use_mem_file;
	cr_expect_eq(remote_read(&remote, hole - 8, to, 8), 0);
	cr_expect_eq(memcmp(to, "12345678", 8), 0);
	cr_expect_eq(remote_read_u64(&remote, hole - 8, &word), 0);
	cr_expect_eq(memcmp(&word, "12345678", 8), 0);
	cr_expect_eq(remote_read(&remote, hole - 8, to, 16), -EFAULT);
	cr_expect_eq(remote_read_some(&remote, hole - 8, to, 16), 8);
	cr_expect_eq(remote_read_some(&remote, hole, to, 16), -EFAULT);
	cr_expect_eq(remote_read(&remote, 0, to, 1), -EFAULT);
	cr_expect_eq(remote_read(&remote, UINT64_MAX - 4, to, 16), -EFAULT);
	cr_expect_eq(remote_read(&remote, UINT64_C(1) << 63, to, 16), -EFAULT);
	for (int i = 0; i < 3; i++) {
		local[i] = (struct iovec){.iov_base = to + 16 * i, .iov_len = 4};
		from[i] = (struct iovec){.iov_base = memory + page - 8 + 4 * i, .iov_len = 4};
	}
	cr_expect_eq(remote_readv(&remote, local, from, 3), 2, "the third lies in the hole");
	cr_expect_eq(memcmp(to + 16, "5678", 4), 0);
	cr_expect_eq(remote_readv(&remote, local, from, 2), 2);
	cr_expect_eq(remote_readv(&remote, local, from + 2, 1), 0);
	cr_expect_eq(remote_readv(&remote, local, from, 0), 0);
	cr_expect_eq(remote_readv(&remote, local, from, 1025), -EINVAL);
	remote_release(&remote);
	munmap(memory, page);
}

Test(remote, by_system_call)
{
	read_it(false);
}

Test(remote, by_file)
{
	read_it(true);
}

Test(remote, of_a_process_that_executes_another)
{
	struct remote remote;
	raddr_t mapped = (raddr_t)(uintptr_t)&remote;
	pid_t child = fork();
	int status, err = 0;

	cr_assert_geq(child, 0);
	if (child == 0) {
		raise(SIGSTOP);
		execlp("sleep", "sleep", "100", (char *)NULL);
		_exit(1);
	}
	cr_assert_eq(waitpid(child, &status, WUNTRACED), child);
	cr_assert_eq(remote_open(&remote, child), 0);
	cr_expect_eq(remote_check(&remote, mapped), 0);
	cr_expect_eq(remote_check(&remote, 0), 0);
	kill(child, SIGCONT);
	for (int i = 0; i < 1000 && !err; i++) {
		usleep(10000);
		err = remote_check(&remote, mapped);
	}
	cr_expect_eq(err, -ESTALE);
	cr_expect_eq(remote_check(&remote, 0), -ESTALE);
	kill(child, SIGKILL);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(remote_check(&remote, mapped), -ESRCH);
	remote_release(&remote);
}

Test(remote, of_a_process_that_is_gone)
{
	struct remote remote;
	pid_t child = fork();
	char byte;
	int status;

	cr_assert_geq(child, 0);
	if (child == 0) {
		pause();
		_exit(0);
	}
	cr_assert_eq(remote_open(&remote, child), 0);
	kill(child, SIGKILL);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(remote_read(&remote, (raddr_t)(uintptr_t)&byte, &byte, 1), -ESRCH);
	remote.use_mem_file = true;
	cr_expect_eq(remote_read(&remote, (raddr_t)(uintptr_t)&byte, &byte, 1), -ESRCH);
	remote_release(&remote);
	cr_expect_eq(remote_open(&remote, child), -ESRCH);
	cr_expect_eq(remote_open(&remote, 0), -ESRCH);
	cr_expect_eq(remote_open(&remote, -1), -ESRCH);
}
