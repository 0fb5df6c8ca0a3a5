/* SPDX-License-Identifier: Apache-2.0 */
/* A program in C with a Python in it: embedding fork|idle [SECONDS]. Compiled by a test against each interpreter whose headers are there.
 *   fork  forks in C with the GIL held, without PyOS_AfterFork_Child(), as uWSGI does; READY says {"child": pid}. The parent has a thread
 *         "left_behind", the child has one thread only, which works in work() and returns to C in between
 *   idle  waits in wait_in_c(), for good or until an alarm ends it, without a Python frame and without the GIL */
#include <Python.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char program[] = "import threading, time\n"
			      "def left_behind():\n"
			      "    while True: time.sleep(0.05)\n"
			      "def work():\n"
			      "    end = time.time() + 0.2\n"
			      "    while time.time() < end: sum(range(1000))\n";

static int work_after_fork(void)
{
	pid_t child;

	PyRun_SimpleString(program);
	PyRun_SimpleString("threading.Thread(target=left_behind, name='left_behind', daemon=True).start()");
	child = fork();
	while (child == 0) {
		PyRun_SimpleString("work()");
		usleep(1000);
	}
	printf("READY {\"child\": %d}\n", (int)child);
	fflush(stdout);
	PyEval_SaveThread();
	for (;;)
		pause();
}

__attribute__((noinline)) static int wait_in_c(void)
{
	PyRun_SimpleString("nothing = 1");
	PyEval_SaveThread();
	printf("READY {}\n");
	fflush(stdout);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	Py_Initialize();
	if (argc > 2)
		alarm((unsigned)atoi(argv[2]));
	return argc > 1 && strcmp(argv[1], "fork") == 0 ? work_after_fork() : wait_in_c();
}
