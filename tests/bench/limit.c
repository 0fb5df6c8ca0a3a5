/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the machine itself allows, measured in the same run as the profilers:
 *
 *   limit sleep HZ SECONDS [PID BASE[:SIZE]...] a loop that sleeps to absolute deadlines, and reads those pieces of a process at each, all in one call
 *   limit read SECONDS PID BASE[:SIZE]...       a loop that does nothing but read them
 *
 * Each copy lies within a cache line as its source does, which no copy is faster than. Both print one line of KEY=VALUE pairs; cpu_ns is this process's own, from the first tick or read to the last. Sleeping is done
 * as sampled does it: with a timer slack of 1 ns, a deadline that has passed by a whole interval being left out, not made up.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>

enum { PIECES_MAX = 64, PIECE_BYTES_DEFAULT = 1024, PIECE_BYTES_MAX = 1 << 20, READS_A_LOOK = 64, LINE_BYTES = 64 };

static const uint64_t NS_A_SECOND = 1000000000;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NS_A_SECOND + (uint64_t)now.tv_nsec;
}

static void sleep_until_ns(uint64_t deadline_ns)
{
	struct timespec deadline = {
		.tv_sec = (time_t)(deadline_ns / NS_A_SECOND),
		.tv_nsec = (long)(deadline_ns % NS_A_SECOND),
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) == EINTR)
		;
}

/* What is read at once: `count` pieces, or none. */
struct reading {
	pid_t pid;
	int count;
	struct iovec remote[PIECES_MAX], local[PIECES_MAX];
	uint8_t *memory; /* of the copies */
	size_t bytes;
	uint64_t reads, fell_short;
};

/* BASE[:SIZE], hexadecimal as in /proc/PID/maps, SIZE decimal. */
static int parse_piece(struct iovec *ret_piece, const char *text)
{
	char *end;
	unsigned long long base, size = PIECE_BYTES_DEFAULT;

	errno = 0;
	base = strtoull(text, &end, 16);
	if (*end == ':')
		size = strtoull(end + 1, &end, 10);
	if (errno || end == text || *end || size == 0 || size > PIECE_BYTES_MAX)
		return -EINVAL;
	*ret_piece = (struct iovec){.iov_base = (void *)(uintptr_t)base, .iov_len = (size_t)size};
	return 0;
}

/* texts: PID BASE[:SIZE]..., or nothing at all. */
static int prepare(struct reading *ret, char *const *texts, int count)
{
	struct reading r = {0};
	size_t room = LINE_BYTES;
	uint8_t *at;

	if (count == 0) {
		*ret = r;
		return 0;
	}
	r.pid = (pid_t)strtol(texts[0], NULL, 10);
	r.count = count - 1;
	if (r.count < 1 || r.count > PIECES_MAX || r.pid <= 0)
		return -EINVAL;
	for (int i = 0; i < r.count; i++) {
		int err = parse_piece(&r.remote[i], texts[i + 1]);

		if (err)
			return err;
		r.bytes += r.remote[i].iov_len;
		room += (r.remote[i].iov_len / LINE_BYTES + 2) * LINE_BYTES;
	}
	r.memory = at = aligned_alloc(LINE_BYTES, room);
	if (!r.memory)
		return -ENOMEM;
	memset(r.memory, 0, room);
	for (int i = 0; i < r.count; i++) {
		r.local[i] = (struct iovec){.iov_base = at + (uintptr_t)r.remote[i].iov_base % LINE_BYTES, .iov_len = r.remote[i].iov_len};
		at += (r.remote[i].iov_len / LINE_BYTES + 2) * LINE_BYTES;
	}
	*ret = r;
	return 0;
}

/* One that fails at once (the target has ended) is an error; one that comes back short is counted. */
static int read_once(struct reading *r)
{
	ssize_t got = process_vm_readv(r->pid, r->local, (unsigned long)r->count, r->remote, (unsigned long)r->count, 0);

	if (got < 0)
		return -errno;
	r->reads++;
	r->fell_short += (size_t)got != r->bytes;
	return 0;
}

/* Ticks are those that were slept to; a deadline that was missed by an interval or more is skipped, as a sampler must. */
static int measure_sleep(uint64_t hz, double seconds, struct reading *reading)
{
	uint64_t interval_ns, start_ns, end_ns, due_ns, cpu_ns, ticks = 0;

	if (hz == 0 || hz > NS_A_SECOND || !(seconds > 0))
		return -EINVAL;
	if (prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL))
		return -errno;
	interval_ns = NS_A_SECOND / hz;
	cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	start_ns = now_ns(CLOCK_MONOTONIC);
	end_ns = start_ns + (uint64_t)(seconds * (double)NS_A_SECOND);
	for (due_ns = start_ns + interval_ns; due_ns <= end_ns; ticks++) {
		uint64_t woken_ns;
		int err;

		sleep_until_ns(due_ns);
		err = reading->count > 0 ? read_once(reading) : 0;
		if (err)
			return err;
		woken_ns = now_ns(CLOCK_MONOTONIC);
		due_ns += interval_ns;
		if (woken_ns >= due_ns)
			due_ns += (woken_ns - due_ns) / interval_ns * interval_ns + interval_ns;
	}
	printf("ticks=%" PRIu64 " short=%" PRIu64 " wall_ns=%" PRIu64 " cpu_ns=%" PRIu64 "\n", ticks, reading->fell_short,
	       now_ns(CLOCK_MONOTONIC) - start_ns, now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns);
	return 0;
}

static int measure_read(double seconds, struct reading *reading)
{
	uint64_t start_ns, end_ns, wall_ns, cpu_ns;

	if (reading->count == 0 || !(seconds > 0))
		return -EINVAL;
	cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	start_ns = now_ns(CLOCK_MONOTONIC);
	end_ns = start_ns + (uint64_t)(seconds * (double)NS_A_SECOND);
	do {
		for (int i = 0; i < READS_A_LOOK; i++) {
			int err = read_once(reading);

			if (err)
				return err;
		}
	} while (now_ns(CLOCK_MONOTONIC) < end_ns);
	wall_ns = now_ns(CLOCK_MONOTONIC) - start_ns;
	printf("reads=%" PRIu64 " short=%" PRIu64 " bytes=%zu wall_ns=%" PRIu64 " cpu_ns=%" PRIu64 "\n", reading->reads, reading->fell_short,
	       reading->bytes, wall_ns, now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns);
	return 0;
}

int main(int argc, char **argv)
{
	struct reading reading;
	bool sleeps = argc >= 4 && strcmp(argv[1], "sleep") == 0;
	int r;

	if (!sleeps && (argc < 5 || strcmp(argv[1], "read") != 0)) {
		fprintf(stderr, "usage: limit sleep HZ SECONDS [PID BASE[:SIZE]...] | limit read SECONDS PID BASE[:SIZE]...\n");
		return 2;
	}
	r = prepare(&reading, argv + (sleeps ? 4 : 3), argc - (sleeps ? 4 : 3));
	if (r == 0) {
		r = sleeps ? measure_sleep(strtoull(argv[2], NULL, 10), strtod(argv[3], NULL), &reading) :
		             measure_read(strtod(argv[2], NULL), &reading);
		free(reading.memory);
	}
	if (r) {
		fprintf(stderr, "limit: %s: %s\n", argv[1], strerror(-r));
		return 1;
	}
	return 0;
}
