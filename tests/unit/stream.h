/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a stream of records as the sampler would, for tests of all that comes behind the ring. Arguments are not
 * checked: a test may write nonsense on purpose. A failure to get memory ends the test program. */
#ifndef SAMPLED_TESTS_UNIT_STREAM_H
#define SAMPLED_TESTS_UNIT_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "aggregator/aggregator.h"
#include "base/buf.h"
#include "sampler/record.h"

struct stream_thread;

/* All zeros is an empty stream. Set interval_ns and now_ns before the first record if the defaults (1 ms; 1 s) do not suit. */
struct stream {
	struct buf bytes;     /* the records, back to back */
	uint64_t interval_ns; /* of one sample */
	uint64_t now_ns;      /* time of the next run's last sample; the caller moves it on */
	struct stream_thread *threads; /* what was written of each */
	size_t thread_count;
};

void stream_release(struct stream *s);

/* A target with that pid and command line is attached now: parent pid 1, Python 3.11.2, start time 100 × pid. */
void stream_target(struct stream *s, uint32_t id, int32_t pid, const char *name);
void stream_target_event(struct stream *s, uint32_t id, enum target_event event, int32_t pid);
void stream_symbol(struct stream *s, uint32_t id, const char *name, const char *file, uint32_t first_line);
/* A special frame's symbol: name in <>, no file. */
void stream_special(struct stream *s, uint32_t id, const char *name);
/* A mapping of 64 KiB of a file; build_id in hexadecimal. Its code is from 4 KiB on. */
void stream_mapping(struct stream *s, uint32_t id, uint32_t flags, const char *path, const char *build_id);
void stream_forget(struct stream *s, uint32_t id);
/* A thread, or its new name (NULL: none); flags are THREAD_*. */
void stream_thread(struct stream *s, uint32_t id, uint32_t target, uint64_t tid, uint32_t flags, const char *name);
void stream_thread_of(struct stream *s, uint32_t id, uint32_t target, int64_t interpreter, uint64_t tid, uint32_t flags,
                      const char *name);
/* A run of `count` samples that ends now, each of weight interval_ns. `shared` is found from the thread's previous stack. */
void stream_stack(struct stream *s, uint32_t thread, uint16_t status, uint32_t count, const struct frame *frames,
                  uint32_t depth);
/* The facts of a target that follow from its stacks so far, with these losses (NULL: none). */
void stream_facts(struct stream *s, uint32_t target, const uint64_t lost[LOSS_CAUSES]);
/* CPU time of a thread, of the last 20 ms. */
void stream_time(struct stream *s, uint32_t thread, uint64_t cpu_ns, uint64_t wait_ns);
void stream_mark(struct stream *s, uint64_t sequence);
/* Any record; its head.bytes is taken as it is. */
void stream_raw(struct stream *s, const struct rec_head *record);

/* The record at *at, which is moved on; NULL at the end. Start with *at = 0. */
const struct rec_head *stream_next(const struct stream *s, size_t *at);
/* Feeds all records; returns 0 or the first error, and goes on behind it. */
int stream_feed(const struct stream *s, struct aggregator *aggregator);
/* The profile of the whole stream, with wall_start_ns fixed to STREAM_WALL_START_NS so that output does not change from
 * run to run. options NULL: wall mode, idle, no filter. Freed by profile_free(). */
struct profile *stream_profile(const struct stream *s, const struct aggregator_options *options);

/* 2023-11-14T22:13:20Z. */
#define STREAM_WALL_START_NS UINT64_C(1700000000000000000)

/* A Python frame. */
static inline struct frame stream_frame(uint32_t symbol, uint32_t line)
{
	return (struct frame){.kind = FRAME_PYTHON, .id = symbol & 0x3fffffffu, .where = line};
}

/* A native frame: a place in a mapping. */
static inline struct frame stream_native(uint32_t mapping, uint32_t where)
{
	return (struct frame){.kind = FRAME_NATIVE, .id = mapping & 0x3fffffffu, .where = where};
}

static inline struct frame stream_special_frame(uint32_t symbol)
{
	return (struct frame){.kind = FRAME_SPECIAL, .id = symbol & 0x3fffffffu};
}

#endif
