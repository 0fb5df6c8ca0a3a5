/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampler/host.h"
#include "tests/unit/fake_objects.h"

static atomic_int other_tid;

static void *wait_for_good(void *unused)
{
	atomic_store(&other_tid, gettid());
	for (;;)
		pause();
	return unused;
}

static pid_t find(uint64_t pthread, pid_t ns_tid)
{
	struct remote self;
	pid_t tid;

	cr_assert_eq(remote_open(&self, getpid()), 0);
	tid = host_process.find_tid(&self, getpid(), pthread, ns_tid);
	remote_release(&self);
	return tid;
}

/* What a child that fork() made finds: bits of what is wrong. */
static int look_in_child(uint64_t parent, uint64_t left_behind, pid_t parent_tid)
{
	return (find(parent, parent_tid) != gettid()) | (find(parent, -1) != gettid()) << 1 | (find(left_behind, other_tid) != 0) << 2 |
	       (find(left_behind, -1) != 0) << 3;
}

Test(host, fork_in_c_renews_one_number_and_takes_the_others)
{
	pid_t child, parent_tid = gettid();
	pthread_t thread;
	int status;

	cr_assert_eq(pthread_create(&thread, NULL, wait_for_good, NULL), 0);
	while (!atomic_load(&other_tid))
		usleep(1000);
	cr_expect_eq(find((uint64_t)thread, -1), other_tid);
	cr_expect_eq(find((uint64_t)thread, parent_tid), other_tid, "the C library knows better than the interpreter");
	child = fork();
	if (child == 0)
		_exit(look_in_child((uint64_t)pthread_self(), (uint64_t)thread, parent_tid));
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect(WIFEXITED(status));
	cr_expect_eq(WEXITSTATUS(status), 0);
}

Test(host, without_what_the_c_library_keeps_the_interpreters_number_counts)
{
	cr_expect_eq(find(0, gettid()), gettid());
	cr_expect_eq(find(fake_unmapped(), gettid()), gettid());
	cr_expect_eq(find(0, 0), 0);
}
