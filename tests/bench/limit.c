/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the machine itself allows, measured in the same run as the profilers:
 *
 *   limit sleep HZ SECONDS                a loop that sleeps to absolute deadlines and does nothing else
 *   limit read SECONDS PID BASE[:SIZE]... a loop that does nothing but read those pieces of a process, all in one call
 *
 * Each copy lies within a cache line as its source does, which no copy is faster than. Both print one line of KEY=VALUE pairs; cpu_ns is this process's own, from the first tick or read to the last. Sleeping is done
 * as sampled does it: with a timer slack of 1 ns, a deadline that has passed by a whole interval being left out, not made up.
 */
#include <errno.h>
#include <inttypes.h>
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

/* Ticks are those that were slept to; a deadline that was missed by an interval or more is skipped, as a sampler must. */
static int measure_sleep(uint64_t hz, double seconds)
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

		sleep_until_ns(due_ns);
		woken_ns = now_ns(CLOCK_MONOTONIC);
		due_ns += interval_ns;
		if (woken_ns >= due_ns)
			due_ns += (woken_ns - due_ns) / interval_ns * interval_ns + interval_ns;
	}
	printf("ticks=%" PRIu64 " wall_ns=%" PRIu64 " cpu_ns=%" PRIu64 "\n", ticks, now_ns(CLOCK_MONOTONIC) - start_ns,
	       now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns);
	return 0;
}

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

/* A read that fails at once (the target has ended) is an error; one that comes back short is counted. */
static int measure_read(double seconds, pid_t pid, char *const *pieces, int count)
{
	struct iovec remote[PIECES_MAX], local[PIECES_MAX];
	uint8_t *memory, *at;
	uint64_t start_ns, end_ns, wall_ns, cpu_ns, reads = 0, fell_short = 0;
	size_t bytes = 0, room = LINE_BYTES;
	int r = 0;

	if (count < 1 || count > PIECES_MAX || pid <= 0 || !(seconds > 0))
		return -EINVAL;
	for (int i = 0; i < count; i++) {
		r = parse_piece(&remote[i], pieces[i]);
		if (r)
			return r;
		bytes += remote[i].iov_len;
		room += (remote[i].iov_len / LINE_BYTES + 2) * LINE_BYTES;
	}
	memory = at = aligned_alloc(LINE_BYTES, room);
	if (!memory)
		return -ENOMEM;
	memset(memory, 0, room);
	for (int i = 0; i < count; i++) {
		local[i] = (struct iovec){.iov_base = at + (uintptr_t)remote[i].iov_base % LINE_BYTES, .iov_len = remote[i].iov_len};
		at += (remote[i].iov_len / LINE_BYTES + 2) * LINE_BYTES;
	}
	cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	start_ns = now_ns(CLOCK_MONOTONIC);
	end_ns = start_ns + (uint64_t)(seconds * (double)NS_A_SECOND);
	do {
		for (int i = 0; i < READS_A_LOOK; i++, reads++) {
			ssize_t got = process_vm_readv(pid, local, (unsigned long)count, remote, (unsigned long)count, 0);

			if (got < 0) {
				r = -errno;
				goto out;
			}
			fell_short += (size_t)got != bytes;
		}
	} while (now_ns(CLOCK_MONOTONIC) < end_ns);
	wall_ns = now_ns(CLOCK_MONOTONIC) - start_ns;
	printf("reads=%" PRIu64 " short=%" PRIu64 " bytes=%zu wall_ns=%" PRIu64 " cpu_ns=%" PRIu64 "\n", reads, fell_short, bytes, wall_ns,
	       now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns);
out:
	free(memory);
	return r;
}

int main(int argc, char **argv)
{
	int r;

	if (argc == 4 && strcmp(argv[1], "sleep") == 0) {
		r = measure_sleep(strtoull(argv[2], NULL, 10), strtod(argv[3], NULL));
	} else if (argc >= 5 && strcmp(argv[1], "read") == 0) {
		r = measure_read(strtod(argv[2], NULL), (pid_t)strtol(argv[3], NULL, 10), argv + 4, argc - 4);
	} else {
		fprintf(stderr, "usage: limit sleep HZ SECONDS | limit read SECONDS PID BASE[:SIZE]...\n");
		return 2;
	}
	if (r) {
		fprintf(stderr, "limit: %s: %s\n", argv[1], strerror(-r));
		return 1;
	}
	return 0;
}
