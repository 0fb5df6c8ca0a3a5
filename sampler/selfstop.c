/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/selfstop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/helper.h"

#define LOOK_NS (20 * NS_PER_MS)

/* Nobody will hold any more: whoever asks stops the process itself. */
enum { ASK_NOBODY = -1 };

struct selfstop_page {
	atomic_bool holds; /* written by the thread that holds */
	atomic_bool woken; /* written by the watcher, taken back by that thread */
};

/* --- the watcher: between fork() and its end it calls nothing that might take a lock --- */

static bool is_stopped(const char *stat_path)
{
	char text[512];
	int fd = open(stat_path, O_RDONLY | O_CLOEXEC);
	ssize_t bytes = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	const char *name_end;

	if (fd >= 0)
		close(fd);
	text[bytes > 0 ? bytes : 0] = '\0';
	name_end = strrchr(text, ')');
	return name_end && name_end[1] == ' ' && name_end[2] == 'T';
}

_Noreturn static void watch(struct selfstop_page *page, pid_t parent, const char *stat_path)
{
	const struct timespec nap = clock_to_timespec(LOOK_NS);
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, "sampled-watch");
	setsid(); /* what stops our process group, or hangs up its terminal, is not for it */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Pipes of ours are to end with us. */
	if (syscall(SYS_close_range, 0, ~0U, 0) != 0)
		for (int fd = 0; fd < 1024; fd++)
			close(fd);
	while (getppid() == parent) {
		/* acquire: with the release in selfstop_forbid(); it only looks more seldom for it */
		if (atomic_load_explicit(&page->holds, memory_order_acquire) && is_stopped(stat_path)) {
			atomic_store_explicit(&page->woken, true, memory_order_release); /* pairs with selfstop_allow */
			kill(parent, SIGCONT);
		}
		nanosleep(&nap, NULL);
	}
	_exit(0);
}

/* --- who is watched --- */

int selfstop_init(struct selfstop *selfstop)
{
	void *page = mmap(NULL, sizeof(*selfstop->page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t parent = getpid();
	char path[32];

	if (page == MAP_FAILED)
		return -errno;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)parent);
	selfstop->page = page;
	atomic_init(&selfstop->asked, ASK_NOBODY);
	selfstop->watcher = helper_fork();
	if (selfstop->watcher == 0)
		watch(page, parent, path);
	if (selfstop->watcher < 0) {
		int err = -errno;

		munmap(page, sizeof(*selfstop->page));
		selfstop->page = NULL;
		return err;
	}
	return 0;
}

void selfstop_release(struct selfstop *selfstop)
{
	if (!selfstop->page)
		return;
	kill(selfstop->watcher, SIGKILL);
	while (waitpid(selfstop->watcher, NULL, 0) < 0 && errno == EINTR)
		;
	helper_forget(selfstop->watcher);
	munmap(selfstop->page, sizeof(*selfstop->page));
	selfstop->page = NULL;
}

/* By default action, so that it is as with any program: nothing where it is ignored, or nobody could continue us (an orphaned process group). */
static void stop_by(int signal)
{
	sigset_t set, before;

	sigemptyset(&set);
	sigaddset(&set, signal);
	raise(signal); /* to this thread: the main thread does not see it again */
	pthread_sigmask(SIG_UNBLOCK, &set, &before);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void selfstop_begin(struct selfstop *selfstop)
{
	atomic_store_explicit(&selfstop->asked, 0, memory_order_relaxed); /* the thread is made after it */
}

void selfstop_forbid(struct selfstop *selfstop)
{
	if (selfstop->page)
		atomic_store_explicit(&selfstop->page->holds, true, memory_order_release); /* pairs with watch */
}

void selfstop_allow(struct selfstop *selfstop)
{
	int signal;

	if (!selfstop->page)
		return;
	atomic_store_explicit(&selfstop->page->holds, false, memory_order_release);        /* pairs with watch */
	if (atomic_exchange_explicit(&selfstop->page->woken, false, memory_order_acquire)) /* pairs with watch */
		kill(getpid(), SIGSTOP);
	/* acq_rel: with selfstop_ask(); nothing else hangs on it */
	signal = atomic_exchange_explicit(&selfstop->asked, 0, memory_order_acq_rel);
	if (signal > 0)
		stop_by(signal);
}

void selfstop_end(struct selfstop *selfstop)
{
	int signal;

	selfstop_allow(selfstop);
	signal = atomic_exchange_explicit(&selfstop->asked, ASK_NOBODY, memory_order_acq_rel); /* as above */
	if (signal > 0)
		stop_by(signal);
}

void selfstop_ask(struct selfstop *selfstop, int signal)
{
	/* relaxed: compared again below */
	int asked = atomic_load_explicit(&selfstop->asked, memory_order_relaxed);

	/* acq_rel: with selfstop_allow(), who takes it once */
	while (asked != ASK_NOBODY &&
	       !atomic_compare_exchange_weak_explicit(&selfstop->asked, &asked, signal, memory_order_acq_rel,
	                                              memory_order_relaxed))
		;
	if (asked == ASK_NOBODY && signal)
		stop_by(signal);
}

bool selfstop_is_asked(const struct selfstop *selfstop)
{
	/* relaxed: a number, nothing hangs on it */
	return atomic_load_explicit(&selfstop->asked, memory_order_relaxed) > 0;
}
