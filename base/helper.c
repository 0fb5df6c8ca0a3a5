/* SPDX-License-Identifier: Apache-2.0 */
#include "base/helper.h"

#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

enum { HELPERS_MAX = 16 }; /* six, at most, are there at one time */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t pids[HELPERS_MAX]; /* guarded by lock; 0: free */

void helper_begin(void)
{
	pthread_mutex_lock(&lock);
}

static void replace(pid_t pid, pid_t with)
{
	for (size_t i = 0; i < HELPERS_MAX; i++)
		if (pids[i] == pid) {
			pids[i] = with;
			return;
		}
}

void helper_note(pid_t pid)
{
	if (pid > 0)
		replace(0, pid);
	pthread_mutex_unlock(&lock);
}

pid_t helper_fork(void)
{
	pid_t pid;

	helper_begin();
	pid = fork();
	helper_note(pid); /* the child has a lock of its own to give back */
	return pid;
}

void helper_forget(pid_t pid)
{
	pthread_mutex_lock(&lock);
	if (pid > 0)
		replace(pid, 0);
	pthread_mutex_unlock(&lock);
}

bool helper_is(pid_t pid)
{
	bool is = false;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < HELPERS_MAX; i++)
		is |= pids[i] == pid;
	pthread_mutex_unlock(&lock);
	return is;
}
