/* SPDX-License-Identifier: Apache-2.0 */
/* Any records into a history with a small bound: no read or write out of bounds, an end, profiles that hang together, and no sample that is
 * not accounted for.
 * Input: a byte for the bound, then for each record its type, how many words follow, and these words, a byte each (small ids meet each other). */
#include "aggregator/history.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/common.h"

enum { WORDS_MAX = UINT8_MAX, CLOSE = 0 };

static union {
	struct rec_head head;
	struct rec_stack stack;
	struct rec_target target;
	struct rec_thread thread;
	struct rec_symbol symbol;
	struct rec_facts facts;
	uint32_t words[2 + WORDS_MAX];
} record;

/* Words that are of no use as they are: lengths that fit, times that go on. A record whose type has the high bit set is left as it is. */
static void mend(uint8_t type, uint64_t now_ns)
{
	if (type & 0x80)
		return;
	switch (type) {
	case REC_STACK:
		record.stack.count = record.stack.count % 100 + 1;
		record.stack.t_first_ns = now_ns;
		record.stack.t_last_ns = now_ns + record.stack.t_last_ns % 1000;
		record.stack.weight_ns %= UINT64_C(1) << 40;
		record.stack.depth = record.stack.depth % 8;
		record.stack.shared = record.stack.depth ? record.stack.shared % record.stack.depth : 0;
		record.head.bytes = (uint32_t)(sizeof(record.stack) +
		                               (record.stack.depth - record.stack.shared) * sizeof(struct frame));
		break;
	case REC_TARGET:
		record.target.name_bytes = 0;
		record.target.event = record.target.event % 4 + 1;
		record.head.bytes = sizeof(record.target);
		break;
	case REC_THREAD:
		record.thread.name_bytes = 0;
		record.head.bytes = sizeof(record.thread);
		break;
	case REC_SYMBOL:
		record.symbol.name_bytes = record.symbol.file_bytes = record.symbol.flags = 0;
		record.symbol.kind = FRAME_PYTHON;
		record.head.bytes = sizeof(record.symbol);
		break;
	case REC_FORGET:
		record.head.bytes = sizeof(struct rec_forget);
		break;
	case REC_FACTS:
		record.head.bytes = sizeof(struct rec_facts);
		break;
	case REC_MARK:
		record.head.bytes = sizeof(struct rec_mark);
		break;
	}
}

static void check(const struct history *history, struct history_query query, uint64_t samples)
{
	struct history_stats stats;
	struct profile *profile;
	double share;

	expect(history_profile(history, &query, &profile) == 0);
	fuzz_check(profile);
	history_stats(history, &stats);
	if (query.from_ns == 0 && query.to_ns == 0)
		expect(profile_sum(profile, VALUE_SAMPLES) + stats.out_of_memory + stats.dropped == samples);
	expect(history_function_share(history, &query, "<unknown>", &share) == 0 && share >= 0 && share <= 1);
	profile_free(profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const uint8_t *at = data + 1, *end = data + bytes;
	struct history *history;
	uint64_t now_ns = 1000, samples = 0;

	if (bytes < 4 || bytes > 1 << 16)
		return 0;
	expect(history_new(&history, &(struct history_options){.memory_max_bytes = (data[0] % 16) * UINT64_C(8192)}) ==
	       0);
	while (end - at >= 2) {
		uint8_t type = at[0];
		uint32_t words = at[1];
		int err;

		at += 2;
		memset(&record, 0, sizeof(record));
		for (uint32_t i = 0; i < words && at < end; i++)
			record.words[2 + i] = *at++;
		now_ns += 3000000000;
		if ((type & 0x7f) == CLOSE) {
			expect(history_close_slice(history, now_ns) == 0);
			continue;
		}
		record.head.type = type & 0x7f;
		record.head.bytes = (uint32_t)(sizeof(record.head) + words * sizeof(uint32_t));
		mend(type, now_ns);
		err = history_feed(history, &record.head);
		if (record.head.type == REC_STACK && err == 0)
			samples += record.stack.count;
	}
	check(history, (struct history_query){0}, samples);
	check(history, (struct history_query){.merge = true}, samples);
	check(history, (struct history_query){.from_ns = now_ns / 2, .to_ns = now_ns / 4 * 3, .pid = 1}, samples);
	history_free(history);
	return 0;
}
