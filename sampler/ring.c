/* SPDX-License-Identifier: Apache-2.0 */
/* The ring: one producer, one consumer, two counters that only rise.
 *
 * `tail` counts bytes ever committed and is the producer's; `head` counts bytes ever released and is the consumer's.
 * Their difference is what is in use. Each side keeps the other's counter as it last saw it, on its own cache line, and
 * looks at the real one only when the remembered one would mean "full" or "empty": so at speed the two cores exchange a
 * line once for many records.
 *
 * The same pages are mapped twice, back to back: a record that begins in the first mapping may end in the second.
 *
 * Guarantee: the producer never waits and makes no system call, but for one to wake a consumer that sleeps. */
#include "sampler/ring.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "sampler/record.h"

/* Two lines of 64 bytes: x86 fetches them in pairs, and some aarch64 have lines of 128. */
enum { LINE_BYTES = 128 };

struct ring {
	/* Set by ring_new(), then only read. */
	unsigned char *data; /* 2 × room_bytes */
	uint64_t room_bytes; /* a power of two */

	/* Written by the producer. */
	alignas(LINE_BYTES) _Atomic uint64_t tail;
	uint64_t head_seen;      /* head as the producer last read it: at most the real one */
	uint64_t reserved_bytes; /* of the record being written; 0: none */
	_Atomic uint64_t peak;

	/* Written by the consumer. */
	alignas(LINE_BYTES) _Atomic uint64_t head;
	uint64_t tail_seen;    /* tail as the consumer last read it: at most the real one */
	uint64_t peeked_bytes; /* of the record that is peeked at; 0: none */

	/* Written by both, seldom. */
	alignas(LINE_BYTES) _Atomic uint32_t sleeping; /* futex: 1 while the consumer sleeps or is about to */
	_Atomic uint32_t closed;
};

/* Maps the file's pages twice in a row. The reservation comes first, so that no other mapping can get in between. */
static int map_twice(unsigned char **ret_data, int fd, uint64_t bytes)
{
	unsigned char *data = mmap(NULL, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err;

	if (data == MAP_FAILED)
		return -errno;
	for (int half = 0; half < 2; half++) {
		void *want = half ? data + bytes : data;

		if (mmap(want, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
			err = -errno;
			munmap(data, 2 * bytes);
			return err;
		}
	}
	*ret_data = data;
	return 0;
}

int ring_new(struct ring **ret_ring, uint64_t bytes)
{
	uint64_t room = (uint64_t)sysconf(_SC_PAGESIZE);
	struct ring *ring;
	int err = 0;
	int fd;

	if (bytes > UINT64_C(1) << 40)
		return -EINVAL;
	while (room < bytes)
		room *= 2;
	ring = aligned_alloc(LINE_BYTES, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	*ring = (struct ring){.room_bytes = room};
	fd = memfd_create("sampled-ring", MFD_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		goto out;
	}
	if (ftruncate(fd, (off_t)room) != 0)
		err = -errno;
	else
		err = map_twice(&ring->data, fd, room);
	close(fd);
out:
	if (err)
		free(ring);
	else
		*ret_ring = ring;
	return err;
}

void ring_free(struct ring *ring)
{
	if (!ring)
		return;
	munmap(ring->data, 2 * ring->room_bytes);
	free(ring);
}

void *ring_reserve(struct ring *ring, uint32_t bytes, uint32_t type)
{
	uint64_t need = ((uint64_t)bytes + 7) & ~UINT64_C(7);
	/* Relaxed: our own counter. */
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	struct rec_head *record;

	if (bytes < sizeof(*record) || need > ring->room_bytes || need > UINT32_MAX)
		return NULL;
	if (ring->room_bytes - (tail - ring->head_seen) < need) {
		/* Pairs with the release in ring_release(): the consumer has read the old record before we write over it. */
		ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire);
		if (ring->room_bytes - (tail - ring->head_seen) < need)
			return NULL;
	}
	record = (struct rec_head *)(ring->data + (tail & (ring->room_bytes - 1)));
	*record = (struct rec_head){.bytes = (uint32_t)need, .type = type};
	ring->reserved_bytes = need;
	return record;
}

/* The remembered head makes the use look larger than it is, so the real one is asked before a new peak is believed. */
static void note_peak(struct ring *ring, uint64_t tail)
{
	/* Relaxed: our own counter; readers only show it. */
	uint64_t peak = atomic_load_explicit(&ring->peak, memory_order_relaxed);

	if (tail - ring->head_seen <= peak)
		return;
	/* Pairs with the release in ring_release(), as in ring_reserve(). */
	ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire);
	if (tail - ring->head_seen > peak)
		atomic_store_explicit(&ring->peak, tail - ring->head_seen, memory_order_relaxed);
}

void ring_commit(struct ring *ring)
{
	/* Relaxed: our own counter. */
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed) + ring->reserved_bytes;

	ring->reserved_bytes = 0;
	note_peak(ring, tail);
	/* Pairs with the acquires in ring_peek(), has_record() and ring_at_end(): whoever sees the new tail sees the record. */
	atomic_store_explicit(&ring->tail, tail, memory_order_release);
}

/* Why no wake-up is lost: `sleeping` is written by read-modify-writes alone, so they stand in one order, and each acquires what
 * came before it. Either our exchange comes after the consumer's: then it reads 1 and wakes. Or it comes before: then the
 * consumer's exchange acquires our tail (or closed), and its second look in ring_wait() finds the record. A plain load
 * here could be done before the store of tail became visible, and both sides would miss each other. */
void ring_wake(struct ring *ring)
{
	/* Pairs with the exchanges in ring_wait(). */
	if (atomic_exchange_explicit(&ring->sleeping, 0, memory_order_acq_rel) == 1)
		syscall(SYS_futex, &ring->sleeping, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void ring_close(struct ring *ring)
{
	/* Pairs with the acquires in is_closed(): a consumer that sees it closed sees the last tail. */
	atomic_store_explicit(&ring->closed, 1, memory_order_release);
	ring_wake(ring);
}

static bool is_closed(const struct ring *ring)
{
	/* Pairs with the release in ring_close(). */
	return atomic_load_explicit(&ring->closed, memory_order_acquire);
}

static bool has_record(const struct ring *ring)
{
	/* head is relaxed: the consumer's own counter. tail pairs with the release in ring_commit(). */
	return atomic_load_explicit(&ring->head, memory_order_relaxed) !=
	       atomic_load_explicit(&ring->tail, memory_order_acquire);
}

const struct rec_head *ring_peek(struct ring *ring)
{
	/* Relaxed: our own counter. */
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	const struct rec_head *record;

	if (head == ring->tail_seen) {
		/* Pairs with the release in ring_commit(). */
		ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
		if (head == ring->tail_seen)
			return NULL;
	}
	record = (const struct rec_head *)(ring->data + (head & (ring->room_bytes - 1)));
	ring->peeked_bytes = record->bytes;
	return record;
}

void ring_release(struct ring *ring)
{
	/* Relaxed: our own counter. */
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed) + ring->peeked_bytes;

	ring->peeked_bytes = 0;
	/* Pairs with the acquires of head in ring_reserve() and note_peak(): our reads of the record end before it is
	 * written over. */
	atomic_store_explicit(&ring->head, head, memory_order_release);
}

void ring_wait(struct ring *ring, uint64_t timeout_ns)
{
	struct timespec timeout = clock_to_timespec(timeout_ns);

	if (has_record(ring) || is_closed(ring))
		return;
	/* Pairs with the exchange in ring_wake(), see there. */
	atomic_exchange_explicit(&ring->sleeping, 1, memory_order_acq_rel);
	if (!has_record(ring) && !is_closed(ring))
		syscall(SYS_futex, &ring->sleeping, FUTEX_WAIT_PRIVATE, 1, &timeout, NULL, 0);
	/* An exchange, not a store: a store would break the chain through which the next exchange of 1 acquires. */
	atomic_exchange_explicit(&ring->sleeping, 0, memory_order_acq_rel);
}

int ring_at_end(struct ring *ring)
{
	return is_closed(ring) && !has_record(ring);
}

uint64_t ring_used_bytes(const struct ring *ring)
{
	/* head first, acquired so that tail is not read before it: then tail is not below head. The side that moves on in
	 * between can make the difference too large, never negative. */
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
	uint64_t used = atomic_load_explicit(&ring->tail, memory_order_relaxed) - head;

	return used < ring->room_bytes ? used : ring->room_bytes;
}

uint64_t ring_peak_bytes(const struct ring *ring)
{
	/* Relaxed: a figure to show. */
	return atomic_load_explicit(&ring->peak, memory_order_relaxed);
}

uint64_t ring_room_bytes(const struct ring *ring)
{
	return ring->room_bytes;
}
