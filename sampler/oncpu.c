/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/oncpu.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampler/procfs.h"

static int open_of(pid_t pid, pid_t tid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

void oncpu_open(struct oncpu *o, pid_t pid, pid_t tid)
{
	*o = (struct oncpu){.pid = pid, .tid = tid, .syscall_fd = -1, .stat_fd = -1, .schedstat_fd = -1};
	if (tid <= 0)
		return;
	o->syscall_fd = open_of(pid, tid, "syscall");
	if (o->syscall_fd < 0)
		o->stat_fd = open_of(pid, tid, "stat");
}

void oncpu_fix(struct oncpu *o, pid_t tid, enum oncpu_state state, uint64_t futex)
{
	*o = (struct oncpu){.tid = tid, .syscall_fd = -1, .stat_fd = -1, .schedstat_fd = -1, .fixed = true, .state = state, .futex = futex};
}

void oncpu_release(struct oncpu *o)
{
	if (o->syscall_fd >= 0)
		close(o->syscall_fd);
	if (o->stat_fd >= 0)
		close(o->stat_fd);
	if (o->schedstat_fd >= 0)
		close(o->schedstat_fd);
	o->syscall_fd = o->stat_fd = o->schedstat_fd = -1;
}

/* The last two words are kept as they are: most who ask for the state do not ask for them. */
static void keep_place(struct oncpu *o, const char *text, uint64_t bytes)
{
	uint64_t kept = bytes < sizeof(o->place) ? bytes : sizeof(o->place);

	memcpy(o->place, text + bytes - kept, kept);
	o->place_bytes = (uint8_t)kept;
}

/* "running", "-1 SP PC" (blocked outside a system call, as in a page fault), or "NR ARG0 … ARG5 SP PC"
 * (fs/proc/base.c, proc_pid_syscall). */
void oncpu_parse_syscall(struct oncpu *o, const char *text, uint64_t bytes)
{
	char line[64];
	uint64_t head = bytes < sizeof(line) ? bytes : sizeof(line) - 1;
	char *end;
	long number;

	o->place_bytes = 0;
	memcpy(line, text, head);
	line[head] = '\0';
	if (strncmp(line, "running", 7) == 0) {
		o->state = ONCPU_RUNNABLE;
		return;
	}
	number = strtol(line, &end, 10);
	if (end == line || number < -1 || number > INT32_MAX) {
		o->state = ONCPU_UNKNOWN;
		return;
	}
	o->state = ONCPU_BLOCKED;
	o->number = (int32_t)number;
	keep_place(o, text, bytes);
	if (number == SYS_futex) {
		o->state = ONCPU_BLOCKED_FUTEX;
		o->futex = strtoull(end, NULL, 16);
	}
}

static bool is_told(const struct oncpu *o)
{
	return (o->state == ONCPU_BLOCKED || o->state == ONCPU_BLOCKED_FUTEX) && o->place_bytes > 0;
}

bool oncpu_number(const struct oncpu *o, int32_t *ret_number)
{
	if (!is_told(o))
		return false;
	*ret_number = o->number;
	return true;
}

/* All of `word` is one number, and not zero: of a thread that is ending both are. */
static bool parse_address(const char *word, uint64_t *ret)
{
	char *end;
	uint64_t value = strtoull(word, &end, 16);

	if (strncmp(word, "0x", 2) != 0 || end == word + 2 || (*end != '\0' && *end != '\n') || value == 0)
		return false;
	*ret = value;
	return true;
}

bool oncpu_place(const struct oncpu *o, uint64_t *ret_sp, uint64_t *ret_pc)
{
	char text[ONCPU_PLACE_MAX + 1];
	char *sp, *pc;
	uint64_t pc_value;

	if (!is_told(o))
		return false;
	memcpy(text, o->place, o->place_bytes);
	text[o->place_bytes] = '\0';
	pc = strrchr(text, ' ');
	if (!pc || !parse_address(pc + 1, &pc_value))
		return false;
	*pc = '\0';
	sp = strrchr(text, ' '); /* NULL: what was kept begins with it */
	if (!parse_address(sp ? sp + 1 : text, ret_sp))
		return false;
	*ret_pc = pc_value;
	return true;
}

static int read_stat(struct oncpu *o, struct proc_stat *ret_stat)
{
	char text[1024];
	ssize_t bytes;

	if (o->stat_fd < 0)
		o->stat_fd = open_of(o->pid, o->tid, "stat");
	if (o->stat_fd < 0)
		return -errno;
	bytes = pread(o->stat_fd, text, sizeof(text), 0);
	if (bytes <= 0)
		return bytes < 0 && errno != ESRCH ? -errno : -ESRCH;
	return proc_stat_parse(ret_stat, text, (size_t)bytes);
}

/* Its state, as proc_pid_stat(5) has it, or -errno. */
static int read_letter(struct oncpu *o)
{
	struct proc_stat stat = {0};
	int err = read_stat(o, &stat);

	return err ? err : (unsigned char)stat.state;
}

int oncpu_where(struct oncpu *o)
{
	struct proc_stat stat = {0};
	int err = o->fixed ? -ESRCH : read_stat(o, &stat);

	if (err)
		return err;
	if (stat.state != 'R')
		return -EAGAIN;
	if (stat.policy != SCHED_OTHER && stat.policy != SCHED_BATCH && stat.policy != SCHED_IDLE)
		return -EPERM;
	return (int)stat.cpu;
}

/* "CPU_NS WAIT_NS SLICES". */
bool oncpu_slices(struct oncpu *o, uint64_t *ret_slices)
{
	char text[96], *at = text;
	ssize_t bytes;

	if (o->schedstat_fd < 0 && o->tid > 0 && !o->fixed)
		o->schedstat_fd = open_of(o->pid, o->tid, "schedstat");
	bytes = o->schedstat_fd >= 0 ? pread(o->schedstat_fd, text, sizeof(text) - 1, 0) : -1;
	if (bytes <= 0)
		return false;
	text[bytes] = '\0';
	strtoull(at, &at, 10);
	strtoull(at, &at, 10);
	*ret_slices = strtoull(at, &at, 10);
	return *at == '\n';
}

void oncpu_spare(struct oncpu *o)
{
	if (o->syscall_fd >= 0 && o->stat_fd >= 0) {
		close(o->stat_fd);
		o->stat_fd = -1;
	}
	if (o->schedstat_fd >= 0)
		close(o->schedstat_fd);
	o->schedstat_fd = -1;
}

static int ask_stat(struct oncpu *o)
{
	int letter = read_letter(o);

	if (letter < 0)
		return letter;
	o->place_bytes = 0;
	o->state = letter == 'R' ? ONCPU_RUNNABLE : ONCPU_BLOCKED;
	return 0;
}

/* A thread that is being woken, as after a stop, is no longer blocked, but told so until the CPU that it is to run on has taken note: a millisecond
 * and more where a hypervisor has that CPU. Its state is 'R' by then (TASK_WAKING, include/linux/sched.h). */
static void doubt_blocked(struct oncpu *o)
{
	if (o->state != ONCPU_BLOCKED || o->number != -1 || read_letter(o) != 'R')
		return;
	o->state = ONCPU_RUNNABLE;
	o->place_bytes = 0;
}

int oncpu_ask(struct oncpu *o, uint64_t now_ns)
{
	char text[256];
	ssize_t bytes;

	if (o->fixed) /* and never asked, so that nobody takes what was known a moment ago for out of date */
		return 0;
	o->asked_ns = now_ns;
	if (o->syscall_fd < 0) {
		o->state = ONCPU_UNKNOWN;
		return o->stat_fd >= 0 ? ask_stat(o) : 0;
	}
	bytes = pread(o->syscall_fd, text, sizeof(text), 0);
	if (bytes > 0) {
		oncpu_parse_syscall(o, text, (uint64_t)bytes);
		doubt_blocked(o);
		return 0;
	}
	o->state = ONCPU_UNKNOWN;
	if (bytes == 0 || errno == ESRCH)
		return -ESRCH;
	close(o->syscall_fd); /* it could be opened, but not read: as much as stat tells, then */
	o->syscall_fd = -1;
	if (o->stat_fd < 0)
		o->stat_fd = open_of(o->pid, o->tid, "stat");
	return o->stat_fd >= 0 ? ask_stat(o) : 0;
}
