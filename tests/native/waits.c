/* SPDX-License-Identifier: Apache-2.0 */
/* A module for Python that tells what stops do to a thread: system calls that end with EINTR when a signal or a tracer comes by (Python's own calls
 * begin anew by themselves, which hides it), how late signals come and whether one is lost, and how long a loop stood still. All wait and work with the
 * GIL released. Times are nanoseconds. */
#define Py_LIMITED_API 0x03060000
#include <Python.h>

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS UINT64_C(1000000000)

enum { LATENCIES = 1 << 18 };

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS + (uint64_t)now.tv_nsec;
}

/* How often a wait ended, and how often with EINTR, in the shared memory that the test reads while this goes on; and the semaphore that it is to
 * remove in the end. */
struct waits {
	volatile uint64_t ended, interrupted, semaphore;
};

typedef int (*wait_once)(int fd, uint64_t wait_ns);

static int wait_epoll(int fd, uint64_t wait_ns)
{
	struct epoll_event event;

	return epoll_wait(fd, &event, 1, (int)(wait_ns / 1000000));
}

static int wait_semop(int id, uint64_t wait_ns)
{
	struct sembuf take = {.sem_num = 0, .sem_op = -1, .sem_flg = 0};
	struct timespec most = {.tv_sec = (time_t)(wait_ns / NS), .tv_nsec = (long)(wait_ns % NS)};

	return semtimedop(id, &take, 1, &most);
}

static int wait_signal(int unused, uint64_t wait_ns)
{
	struct timespec most = {.tv_sec = (time_t)(wait_ns / NS), .tv_nsec = (long)(wait_ns % NS)};
	sigset_t set;

	(void)unused;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigtimedwait(&set, NULL, &most);
}

/* wait(kind, milliseconds, address of struct waits): for ever. */
static PyObject *waits_wait(PyObject *self, PyObject *args)
{
	unsigned long long address;
	struct waits *waits;
	const char *kind;
	wait_once once;
	int wait_ms, id = -1;
	sigset_t set;

	(void)self;
	if (!PyArg_ParseTuple(args, "siK", &kind, &wait_ms, &address))
		return NULL;
	waits = (struct waits *)(uintptr_t)address; /* the caller's, and lives for ever */
	if (!strcmp(kind, "epoll")) {
		once = wait_epoll;
		id = epoll_create1(EPOLL_CLOEXEC);
	} else if (!strcmp(kind, "semop")) {
		once = wait_semop;
		id = semget(IPC_PRIVATE, 1, 0600);
		waits->semaphore = (uint64_t)id;
	} else {
		once = wait_signal;
		id = 0;
		sigemptyset(&set);
		sigaddset(&set, SIGUSR2);
		sigprocmask(SIG_BLOCK, &set, NULL);
	}
	if (id < 0)
		return PyErr_SetFromErrno(PyExc_OSError);
	PyEval_SaveThread();
	for (;;) {
		int result = once(id, (uint64_t)wait_ms * 1000000);

		if (result < 0 && errno == EINTR)
			waits->interrupted++;
		else if (result < 0 && errno != EAGAIN)
			_exit(70);
		waits->ended++;
	}
}

struct taken {
	volatile uint64_t count;
	uint64_t latency_ns[LATENCIES]; /* of those that carry the time at which they were sent */
};

static struct taken *taken[NSIG + 1];

static void take(int number, siginfo_t *info, void *context)
{
	struct taken *of = taken[number];
	uint64_t count = of->count;

	(void)context;
	if (info->si_code == SI_QUEUE && count < LATENCIES)
		of->latency_ns[count] = now_ns() - (uint64_t)(uintptr_t)info->si_value.sival_ptr;
	of->count = count + 1;
}

/* take(number): from now on such signals are counted. */
static PyObject *waits_take(PyObject *self, PyObject *args)
{
	struct sigaction action = {.sa_sigaction = take, .sa_flags = SA_SIGINFO | SA_RESTART};
	int number;

	(void)self;
	if (!PyArg_ParseTuple(args, "i", &number))
		return NULL;
	if (number < 1 || number > NSIG) {
		PyErr_SetString(PyExc_ValueError, "no such signal");
		return NULL;
	}
	if (!taken[number])
		taken[number] = calloc(1, sizeof(*taken[number]));
	if (!taken[number])
		return PyErr_NoMemory();
	sigfillset(&action.sa_mask);
	if (sigaction(number, &action, NULL) < 0)
		return PyErr_SetFromErrno(PyExc_OSError);
	Py_RETURN_NONE;
}

/* taken(number) → (how many, the latencies of those that have one, as bytes of 64-bit numbers); from now on counted from 0. */
static PyObject *waits_taken(PyObject *self, PyObject *args)
{
	unsigned long long count;
	PyObject *result;
	int number;

	(void)self;
	if (!PyArg_ParseTuple(args, "i", &number))
		return NULL;
	if (number < 1 || number > NSIG || !taken[number])
		return Py_BuildValue("(Ky#)", 0ULL, "", (Py_ssize_t)0);
	count = taken[number]->count;
	result = Py_BuildValue(
		"(KN)", count,
		PyBytes_FromStringAndSize((const char *)taken[number]->latency_ns,
	                                  (Py_ssize_t)((count < LATENCIES ? count : LATENCIES) * sizeof(uint64_t))));
	taken[number]->count = 0;
	return result;
}

/* gaps(seconds, least) → (bytes of 64-bit numbers: (when it began, how long) each time the loop stood still for `least` or longer; rounds of the loop;
 * its own CPU time). */
static PyObject *waits_gaps(PyObject *self, PyObject *args)
{
	unsigned long long least, rounds = 0, cpu_ns;
	uint64_t begin, last, count = 0, *gaps;
	struct timespec cpu;
	PyThreadState *state;
	PyObject *result;
	double seconds;

	(void)self;
	if (!PyArg_ParseTuple(args, "dK", &seconds, &least))
		return NULL;
	gaps = calloc(LATENCIES, 2 * sizeof(*gaps));
	if (!gaps)
		return PyErr_NoMemory();
	state = PyEval_SaveThread();
	begin = last = now_ns();
	while (last - begin < (uint64_t)(seconds * 1e9)) {
		uint64_t now = now_ns();

		if (now - last >= least && count < LATENCIES) {
			gaps[2 * count] = last;
			gaps[2 * count + 1] = now - last;
			count++;
		}
		last = now;
		rounds++;
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	cpu_ns = (uint64_t)cpu.tv_sec * NS + (uint64_t)cpu.tv_nsec;
	PyEval_RestoreThread(state);
	result = Py_BuildValue("(NKK)",
	                       PyBytes_FromStringAndSize((const char *)gaps, (Py_ssize_t)(count * 2 * sizeof(*gaps))),
	                       rounds, cpu_ns);
	free(gaps);
	return result;
}

/* vfork(milliseconds): a child that sleeps so long, its parent waiting uninterruptibly. */
static PyObject *waits_vfork(PyObject *self, PyObject *args)
{
	PyThreadState *state;
	int wait_ms, status;
	pid_t child;

	(void)self;
	if (!PyArg_ParseTuple(args, "i", &wait_ms))
		return NULL;
	state = PyEval_SaveThread();
	child = vfork();
	if (child == 0) {
		usleep((useconds_t)wait_ms * 1000);
		_exit(0);
	}
	if (child > 0)
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
	PyEval_RestoreThread(state);
	return PyLong_FromLong(child);
}

static PyMethodDef waits_methods[] = {
	{"wait", waits_wait, METH_VARARGS, NULL},   {"take", waits_take, METH_VARARGS, NULL},
	{"taken", waits_taken, METH_VARARGS, NULL}, {"gaps", waits_gaps, METH_VARARGS, NULL},
	{"vfork", waits_vfork, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL},
};

static struct PyModuleDef waits_module = {
	PyModuleDef_HEAD_INIT, "waits", NULL, -1, waits_methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_waits(void);

PyMODINIT_FUNC PyInit_waits(void)
{
	return PyModule_Create(&waits_module);
}
