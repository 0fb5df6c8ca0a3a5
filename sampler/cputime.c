/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cputime.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "sampler/record.h"
#include "sampler/target.h"

static bool parse_number(const char **at, const char *end, uint64_t *ret)
{
	uint64_t value = 0;
	const char *from = *at;

	for (; *at < end && **at >= '0' && **at <= '9'; (*at)++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(**at - '0'), &value))
			return false;
	*ret = value;
	return *at > from;
}

bool cputime_parse(const char *text, size_t bytes, uint64_t *ret_cpu_ns, uint64_t *ret_wait_ns)
{
	const char *at = text, *end = text + bytes;
	uint64_t cpu_ns, wait_ns, slices;

	if (!parse_number(&at, end, &cpu_ns) || at == end || *at++ != ' ' || !parse_number(&at, end, &wait_ns) ||
	    at == end || *at++ != ' ' || !parse_number(&at, end, &slices))
		return false;
	*ret_cpu_ns = cpu_ns;
	*ret_wait_ns = wait_ns;
	return true;
}

static int open_of(pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static bool ask(int fd, uint64_t *ret_cpu_ns, uint64_t *ret_wait_ns)
{
	char text[72]; /* three numbers of 64 bits */
	ssize_t bytes = pread(fd, text, sizeof(text), 0);

	return bytes > 0 && cputime_parse(text, (size_t)bytes, ret_cpu_ns, ret_wait_ns);
}

void cputime_begin(struct cputime *time, pid_t pid, pid_t tid, uint64_t now_ns)
{
	int fd = tid > 0 ? open_of(pid, tid) : -1;

	*time = (struct cputime){0};
	if (fd < 0)
		return;
	if (ask(fd, &time->cpu_ns, &time->wait_ns))
		time->t_ns = now_ns;
	close(fd);
}

/* The thread's kept file; -1: it cannot be opened. Whoever had the place opens its own again when it is asked next. */
static int file_of(struct cputime_files *files, uint32_t thread, pid_t pid, pid_t tid)
{
	uint32_t at = thread % CPUTIME_FILES;

	if (files->kept[at].thread != thread) {
		int fd = open_of(pid, tid);

		if (fd < 0)
			return -1;
		if (files->kept[at].thread != 0)
			close(files->kept[at].fd);
		files->kept[at].thread = thread;
		files->kept[at].fd = fd;
	}
	return files->kept[at].fd;
}

void cputime_write(struct cputime *time, struct cputime_files *files, pid_t pid, pid_t tid, uint32_t thread,
                   struct ring *ring)
{
	uint64_t cpu_ns, wait_ns, now_ns;
	struct rec_time *record;
	int fd;

	if (time->t_ns == 0)
		return;
	fd = file_of(files, thread, pid, tid);
	now_ns = clock_now_ns();
	/* The numbers only rise; a tid that was used again is another thread's, whose numbers are not this one's. */
	if (fd < 0 || !ask(fd, &cpu_ns, &wait_ns) || cpu_ns < time->cpu_ns || wait_ns < time->wait_ns)
		return;
	if (cpu_ns > time->cpu_ns || wait_ns > time->wait_ns) {
		record = ring_reserve(ring, sizeof(*record), REC_TIME);
		if (!record)
			return;
		record->thread = thread;
		record->pad = 0;
		record->t_from_ns = time->t_ns;
		record->t_to_ns = now_ns;
		record->cpu_ns = cpu_ns - time->cpu_ns;
		record->wait_ns = wait_ns - time->wait_ns;
		ring_commit(ring);
	}
	*time = (struct cputime){.cpu_ns = cpu_ns, .wait_ns = wait_ns, .t_ns = now_ns};
}

void thread_write_time(struct target *target, struct thread *t)
{
	if (!t->announced || !t->cputime.ran || !target->options->cpu_time)
		return;
	cputime_write(&t->cputime, &target->cputime_files, target->proc.pid, t->tid, t->id, target->ring);
	for (uint32_t i = 0; target->interp_count > 1 && i < target->thread_count; i++)
		if (target->threads[i] != t && target->threads[i]->tid == t->tid)
			target->threads[i]->cputime = t->cputime;
}

void cputime_forget(struct cputime_files *files, uint32_t thread)
{
	for (uint32_t i = 0; i < CPUTIME_FILES; i++)
		if (files->kept[i].thread != 0 && (thread == 0 || files->kept[i].thread == thread)) {
			close(files->kept[i].fd);
			files->kept[i].thread = 0;
		}
}
