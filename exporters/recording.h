/* SPDX-License-Identifier: Apache-2.0 */
/* The recording (suffix .sampled): the records of the ring, written again in few bytes, while sampling goes on. docs/RECORDING.md specifies the
 * format; here are its numbers, and the writer's and the reader's entrances.
 *
 * It is append-only: blocks that are closed after 64 KiB or a second, each with a checksum. What was closed stays readable, whatever happens to
 * the writer. */
#ifndef SAMPLED_EXPORTERS_RECORDING_H
#define SAMPLED_EXPORTERS_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/aggregator.h"
#include "aggregator/builder.h"
#include "base/clock.h"
#include "base/fault.h"
#include "exporters/input.h"

#define RECORDING_MAGIC "\x89SMPL\r\n\x1a"

enum {
	RECORDING_VERSION = 2, /* what is written; those from 1 on are read */
	RECORDING_HEAD_BYTES = 16,
	BLOCK_HEAD_BYTES = 12,
	/* A block is closed when it has so much, or earlier; the item that comes last may lie beyond. */
	BLOCK_CLOSE_BYTES = 64 * 1024,
	BLOCK_MAX_BYTES = 128 * 1024,
	BLOCK_TYPE_RECORDS = 1,
	BLOCK_ZSTD = 1, /* flag: packed */
	/* The memory that unpacking takes: zstd's window is no larger. */
	BLOCK_WINDOW_LOG = 18,
	/* Most stacks, symbols and files between two RESETs. A writer may stay below. */
	RECORDING_TABLE_MAX = 1 << 20,
	/* Deepest stack: the deepest in the ring, with its special frames. */
	RECORDING_DEPTH_MAX = REC_BYTES_MAX / 8,
	/* An interval in units has fewer bits; so have times, and the writer's one less, so that what is reckoned from them fits, too. */
	RECORDING_INTERVAL_BITS = 24,
	RECORDING_TIME_BITS = 56,
};

#define BLOCK_CLOSE_NS NS_PER_S

/* What a block's bytes are sorted into, so that alike stands beside alike (which is packed better). */
enum column { COLUMN_ITEMS, COLUMN_STACKS, COLUMN_TIMES, COLUMN_COUNT };

/* Items by their first byte; what is ITEM_RUN and above is a run, and its bits are RUN_*. */
enum item {
	ITEM_SESSION = 1,
	ITEM_SYMBOL,
	ITEM_STACK,
	ITEM_TARGET,
	ITEM_THREAD,
	ITEM_FACTS,
	ITEM_TALLY,
	ITEM_CLOCK,
	ITEM_MARK,
	ITEM_REST,
	ITEM_RESET,
	ITEM_END,
	ITEM_MAPPING,
	ITEM_FRAME,
	ITEM_NAMED,
	ITEM_TIME,
	ITEM_STACK_TIME,
	ITEM_RUN = 0x80,
};

enum run_bits {
	RUN_THREAD =
		0x40, /* the thread's number follows; else it is the one that followed the last run's thread the last time */
	RUN_STACK = 0x20,  /* the stack's number, in its column; else it is the thread's last */
	RUN_STATUS = 0x10, /* the status follows; else it is the thread's last */
	RUN_COUNT = 0x08,  /* the count less 2, and the span, in its column; else one sample */
	RUN_WEIGHT = 0x04, /* the weight, in the column of times; else it is as expected */
	RUN_SAME = 0x02,   /* it begins when the last run did; else the time, in its column */
};

/* Of a THREAD item, besides THREAD_MAIN and THREAD_ENDED. */
enum { THREAD_EXCLUDED = 4, THREAD_NEW = 8 };

enum { TALLY_FIELDS = 11, FACTS_FIELDS = sizeof(struct rec_facts) / 8 - 2 };

static inline uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static inline int64_t unzigzag(uint64_t value)
{
	return (int64_t)(value >> 1 ^ (value & 1 ? UINT64_MAX : 0));
}

/* What a run weighs if nothing is said, in units of time: at a rate its samples' intervals, else the time since the thread's last run.
 * Version 1 took the latter at a rate as well. */
static inline int64_t weight_expected(uint32_t format, int64_t interval_units, uint64_t count, bool has_run,
                                      int64_t since_last)
{
	bool even = format > 1 && interval_units > 0;

	return even || !has_run ? (int64_t)count * interval_units : since_last;
}

/* When a thread's next sample is due, as writer and reader both reckon it from those before: the deadlines are at even distances, and each
 * sample comes a little, and a different little, behind its own. In 16ths of a unit of time. */
static inline int64_t due_next(int64_t due, int64_t t_units, int64_t interval_units)
{
	int64_t off = t_units * 16 - due;

	return off > interval_units * 8 || off < -interval_units * 8 ? t_units * 16 : due + (off >> 3);
}

/* Times at which some run began or ended, by the interval in which they lie: threads are sampled at the same ticks, so what one told is expected
 * of the others. */
struct ticks {
	int64_t at[256];
};

static inline void ticks_enter(struct ticks *ticks, int64_t t_units, int64_t interval_units)
{
	if (interval_units > 0 && t_units >= 0)
		ticks->at[(t_units / interval_units) & 255] = t_units;
}

/* The tick nearest to when a sample is due, if one is known within half an interval of that; else just that. */
static inline int64_t ticks_expect(const struct ticks *ticks, int64_t due, int64_t interval_units)
{
	int64_t due_units = due >> 4, expected = due_units, nearest = interval_units / 2 + 1;

	if (interval_units <= 0 || due_units < 0)
		return due_units;
	for (int64_t cell = due_units / interval_units - 1, last = cell + 2; cell <= last; cell++) {
		int64_t t = ticks->at[cell & 255], off = t < due_units ? due_units - t : t - due_units;

		if (off < nearest) {
			nearest = off;
			expected = t;
		}
	}
	return expected;
}

/* The writer. Not thread-safe: it belongs to the aggregator's thread until that has ended. */
struct recording_writer;

struct recording_options {
	uint64_t interval_ns;
	enum sample_mode mode;
	uint64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
	bool pack;                   /* with zstd, where we are built with it */
	uint32_t stacks_max;         /* bound of the table of stacks (then it begins anew); 0: the default */
};

/* Opens PATH for a recording: mode 0600; a regular file that is there is emptied, and keeps its mode. A symbolic link, a directory or a device
 * is refused. 0 or -errno with *fault filled. */
int recording_open(int *ret_fd, const char *path, struct fault *fault);

/* A recording in `fd`, an empty file that stays the caller's. Its head is written at once. 0 or -errno. */
int recording_writer_new(struct recording_writer **ret_writer, int fd, const struct recording_options *options);
void recording_writer_free(struct recording_writer *writer);
/* Takes in a record that aggregator_feed() took in, and what became of it. NULL: nothing to do, a moment to close a block that is due.
 * `tally` is what the aggregator has counted so far; it is looked at where the record is of facts or a mark. */
void recording_writer_take(struct recording_writer *writer, const struct rec_head *record,
                           const struct record_fate *fate, const struct tally *tally);
/* For who has stacks as trees: the number of a stack, a frame on another one (0: the empty one), which is defined when it is new. Its symbol was
 * taken in as a record. Numbers hold until recording_writer_make_room() says that they do not. */
uint32_t recording_writer_stack(struct recording_writer *writer, uint32_t parent, struct frame frame);
/* Before so many frames' stacks. False: the table has begun anew, and there are no numbers from before any more. */
bool recording_writer_make_room(struct recording_writer *writer, uint32_t count);
/* A run, as a record of a stack without frames that counted in full, on the stack of this number. */
void recording_writer_run(struct recording_writer *writer, const struct rec_stack *run, uint32_t stack);
/* Defines a symbol of this id, as a record would; it is copied. */
void recording_writer_symbol(struct recording_writer *writer, uint32_t id, const struct symbol *symbol);
/* Before the end: what the places in mappings that the profile has become, as `frames` says, which is asked once for each; it must not ask where a node
 * stands, since the place may have others. Readers give it to the profile (profile.named). The profile is that of what was recorded, before it got
 * names. */
void recording_writer_names(struct recording_writer *writer, const struct profile *profile, named_frames *frames,
                            void *context);
/* For who has no times: CPU time of the thread of this id on the stack of this number. */
void recording_writer_stack_time(struct recording_writer *writer, uint32_t thread, uint32_t stack, uint64_t cpu_ns,
                                 uint64_t wait_ns);
/* Writes the end, and all that is not written yet. 0 or recording_writer_error(). */
int recording_writer_finish(struct recording_writer *writer, const struct tally *tally);
/* 0, or what went wrong first (-errno): what is in the file up to there stays readable, and nothing is written any more. */
int recording_writer_error(const struct recording_writer *writer);
/* Bytes of the file. */
uint64_t recording_writer_bytes(const struct recording_writer *writer);

/* The reader: as the format's read (format.h). A recording that is cut off or damaged is read up to there; then it is 0, and *fault says where. */
bool recording_detect(const unsigned char *head, size_t bytes);
int recording_read(struct input *from, struct builder *to, struct fault *fault);
/* The same up to the mark with this sequence number, which becomes the profile's; 0: all. */
int recording_read_to_mark(struct input *from, struct builder *to, uint64_t sequence, struct fault *fault);

#endif
