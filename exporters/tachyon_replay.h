/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a replay of a Tachyon file, for tachyon_read.c (samples and records) and tachyon_stack.c (their stacks). */
#ifndef SAMPLED_EXPORTERS_TACHYON_REPLAY_H
#define SAMPLED_EXPORTERS_TACHYON_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/builder.h"
#include "aggregator/lookup.h"
#include "base/fault.h"
#include "exporters/tachyon_file.h"

enum { RECORD_REPEAT, RECORD_FULL, RECORD_SUFFIX, RECORD_POP_PUSH };

struct level {
	uint32_t frame, node;
	bool in_gc; /* it, or one outside of it, is "<GC>" */
};

struct replayed {
	uint64_t tid;
	uint32_t interpreter, thread; /* thread: the builder's */
	uint64_t now_us;
	bool is_main, has_samples;
	struct level *levels; /* of its stack, outermost first */
	uint32_t depth, room;
	/* Samples alike that were not handed to the builder yet; count 0: none. */
	uint64_t first_us, last_us, count, weight_ns;
	uint32_t node;
	unsigned status;
};

struct replay {
	struct tachyon_file file;
	struct tachyon_stream stream;
	struct builder *to;
	struct fault *fault;
	uint32_t process;
	uint32_t *symbols; /* of each frame; BUILDER_NONE: not made yet */
	bool *is_internal; /* of each frame */
	struct replayed *threads;
	uint32_t thread_count, thread_room;
	uint64_t level_room; /* of all threads */
	struct lookup by_tid;
	uint64_t records, samples, weight_ns, cut;
};

/* Says where, for what is wrong with the records. */
int tachyon_malformed(struct replay *r, const char *what);
/* Takes the stack of a record, not RECORD_REPEAT, off the stream. 0 or -errno with the fault filled. */
int tachyon_change_stack(struct replay *r, struct replayed *t, unsigned kind);

#endif
