/* SPDX-License-Identifier: Apache-2.0 */
/* A lock-free ring of records for one producer thread and one consumer thread.
 *
 * The memory is mapped twice, back to back, so that a record never wraps: both sides see it as one piece. Records carry
 * their own length (struct rec_head). The producer never waits: a record that finds no room is refused, and the caller
 * counts it. The consumer may sleep until something comes. */
#ifndef SAMPLED_SAMPLER_RING_H
#define SAMPLED_SAMPLER_RING_H

#include <stdint.h>

struct ring;
struct rec_head;

/* Makes a ring of at least `bytes` (rounded up to a power of two of pages). 0 or -errno. Freed by ring_free(). */
int ring_new(struct ring **ret_ring, uint64_t bytes);
void ring_free(struct ring *ring);

/* Producer: room for a record of `bytes` (rounded up to 8), its head already filled with length and type; NULL: full. */
void *ring_reserve(struct ring *ring, uint32_t bytes, uint32_t type);
/* Producer: gives the reserved record to the consumer; does not wake it. */
void ring_commit(struct ring *ring);
/* Producer: no more records will come. Wakes the consumer. */
void ring_close(struct ring *ring);
/* Producer: wakes a consumer that sleeps in ring_wait(), if one does. A system call only in that case. */
void ring_wake(struct ring *ring);

/* Consumer: the oldest record, or NULL: empty. It stays valid until ring_release(). */
const struct rec_head *ring_peek(struct ring *ring);
/* Consumer: gives the peeked record's room back. */
void ring_release(struct ring *ring);
/* Consumer: sleeps until there is a record and ring_wake() was called, the ring is closed, or timeout_ns have passed; at times it
 * returns earlier. */
void ring_wait(struct ring *ring, uint64_t timeout_ns);
/* Consumer: the ring is closed and empty. */
int ring_at_end(struct ring *ring);

/* Either side: bytes in use now, the most that were ever in use, and the capacity. */
uint64_t ring_used_bytes(const struct ring *ring);
uint64_t ring_peak_bytes(const struct ring *ring);
uint64_t ring_room_bytes(const struct ring *ring);

#endif
