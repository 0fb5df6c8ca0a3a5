/* SPDX-License-Identifier: Apache-2.0 */
/* The ring under load: `ring_stress [RECORDS]`, 10 million unless told. A plain main(), since it must run under
 * ThreadSanitizer, where Criterion aborts.
 *
 * Three times over: with a producer that tries again until its record fits (order, content and count are complete); with
 * one that never waits and counts its drops (what arrives is in order and whole, and arrived + dropped = sent); and with
 * one that sends each record into an empty ring, so that the consumer is asleep or about to be (no wake-up is lost). Each
 * record's size and contents follow from its number, so that the consumer can check every word. */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "sampler/record.h"
#include "sampler/ring.h"

enum { RING_BYTES = 1 << 16, LARGE_EVERY = 1024 };

/* Far beyond any delay of a loaded machine: a sleep of this length means that its wake-up was lost. */
#define WAIT_NS (10 * NS_PER_S)

enum manner { WAITING, DROPPING, WAKING };

static const char *const manner_names[] = {[WAITING] = "waiting", [DROPPING] = "dropping", [WAKING] = "waking"};

struct numbered {
	struct rec_head head;
	uint64_t number;
	uint64_t words[];
};

struct run {
	struct ring *ring;
	uint64_t count; /* records to send */
	enum manner manner;
	uint64_t dropped; /* by the producer; read after it has been joined */
};

/* Mostly 16 to 136 bytes; now and then up to half the ring. Not a multiple of 8, so that rounding is tested too. */
static uint32_t record_bytes(uint64_t number)
{
	uint64_t random = hash_u64(number + 1);
	uint64_t most = random % LARGE_EVERY == 0 ? RING_BYTES / 2 : 120;

	return (uint32_t)(sizeof(struct numbered) + (random >> 32) % most);
}

static uint64_t record_word(uint64_t number, uint64_t index)
{
	return (number + 1) * UINT64_C(0x9e3779b97f4a7c15) + index;
}

static void fill(struct numbered *record, uint64_t number)
{
	record->number = number;
	for (uint64_t i = 0; i < (record_bytes(number) - sizeof(*record)) / 8; i++)
		record->words[i] = record_word(number, i);
}

static void *produce(void *context)
{
	struct run *run = context;

	for (uint64_t number = 0; number < run->count; number++) {
		uint32_t bytes = record_bytes(number);
		struct numbered *record = ring_reserve(run->ring, bytes, REC_STACK);

		while (!record && run->manner == WAITING) {
			ring_wake(run->ring);
			sched_yield();
			record = ring_reserve(run->ring, bytes, REC_STACK);
		}
		if (!record) {
			run->dropped++;
			continue;
		}
		fill(record, number);
		ring_commit(run->ring);
		if (run->manner == WAKING || number % 64 == 0)
			ring_wake(run->ring);
		while (run->manner == WAKING && ring_used_bytes(run->ring) != 0)
			;
	}
	ring_close(run->ring);
	return NULL;
}

/* What is wrong with the record, or NULL. */
static const char *check(const struct rec_head *head, uint64_t expected, bool lossless)
{
	const struct numbered *record = (const struct numbered *)head;
	uint32_t bytes;

	if (record->number < expected || (lossless && record->number != expected))
		return "out of order";
	bytes = record_bytes(record->number);
	if (head->bytes != rec_round(bytes) || head->type != REC_STACK)
		return "its head is wrong";
	for (uint64_t i = 0; i < (bytes - sizeof(*record)) / 8; i++)
		if (record->words[i] != record_word(record->number, i))
			return "its content is wrong";
	return NULL;
}

static const char *consume(struct run *run, uint64_t *ret_received)
{
	uint64_t expected = 0;
	uint64_t received = 0;

	for (;;) {
		const struct rec_head *head = ring_peek(run->ring);
		uint64_t start_ns;
		const char *wrong;

		if (!head) {
			if (ring_at_end(run->ring))
				break;
			start_ns = clock_now_ns();
			ring_wait(run->ring, WAIT_NS);
			if (clock_now_ns() - start_ns >= WAIT_NS)
				return "its wake-up was lost";
			continue;
		}
		wrong = check(head, expected, run->manner != DROPPING);
		if (wrong)
			return wrong;
		expected = ((const struct numbered *)head)->number + 1;
		received++;
		ring_release(run->ring);
	}
	*ret_received = received;
	return NULL;
}

static bool stress(uint64_t count, enum manner manner)
{
	struct run run = {.count = count, .manner = manner};
	uint64_t start_ns = clock_now_ns();
	uint64_t received = 0;
	const char *wrong;
	pthread_t producer;

	if (ring_new(&run.ring, RING_BYTES) != 0 || pthread_create(&producer, NULL, produce, &run) != 0) {
		printf("ring_stress: cannot start\n");
		return false;
	}
	wrong = consume(&run, &received);
	if (wrong) { /* the producer may be waiting for room: do not join it */
		printf("ring_stress: FAILED: record %" PRIu64 ": %s\n", received, wrong);
		return false;
	}
	pthread_join(producer, NULL);
	if (received + run.dropped != count || (manner != DROPPING && run.dropped) || ring_used_bytes(run.ring) != 0)
		wrong = "the count is wrong";
	printf("ring_stress: %s: %s: %" PRIu64 " sent, %" PRIu64 " received, %" PRIu64 " dropped, peak %" PRIu64
	       " of %" PRIu64 " bytes, %.2f s\n",
	       wrong ? "FAILED" : "ok", manner_names[manner], count, received, run.dropped,
	       ring_peak_bytes(run.ring), ring_room_bytes(run.ring), (double)(clock_now_ns() - start_ns) / 1e9);
	ring_free(run.ring);
	return !wrong;
}

int main(int argc, char **argv)
{
	uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;

	if (count == 0) {
		printf("usage: ring_stress [RECORDS]\n");
		return 2;
	}
	return stress(count, WAITING) && stress(count, DROPPING) && stress(count / 50 + 1, WAKING) ? 0 : 1;
}
