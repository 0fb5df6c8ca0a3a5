/* SPDX-License-Identifier: Apache-2.0 */
/* The outer parts of a Tachyon file, the binary profile of CPython 3.15's profiling.sampling: head, tables, footer, and the stream of sample records
 * between them. The layout is that of CPython 3.15.0's Modules/_remote_debugging/binary_io.h and binary_io_writer.c:
 *
 *   64 bytes  head: magic u32, version u32 (1), Python's version 3 × u8, pad, start u64 µs (CLOCK_MONOTONIC), interval u64 µs, samples u64,
 *             threads u32, offset of the strings u64, of the frames u64, compression u32 (0 none, 1 zstd), configuration u32 (bits 0-2: mode + 1)
 *             in the byte order of the machine that wrote it
 *   records   up to the strings; packed as one zstd frame if so
 *   strings   each a varint length and UTF-8
 *   frames    each: file, function (strings, varint), line, end line - line, column, end column - column (zigzag varint), opcode u8
 *   56 bytes  statistics, if any: duration s, rate Hz, failed %, missed % (double each), which of the last two are there u32, pad,
 *             "TACHSTAT", version u32, size u32
 *   32 bytes  footer: strings u32, frames u32, size of the file u64, pad
 *
 * The head is written last: a file whose writer was killed begins with zeros and holds no tables. */
#ifndef SAMPLED_EXPORTERS_TACHYON_FILE_H
#define SAMPLED_EXPORTERS_TACHYON_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "exporters/input.h"
#include "exporters/spool.h"

struct tachyon_string {
	uint32_t off, bytes; /* in texts */
};

struct tachyon_frame {
	uint32_t file, name; /* strings; in range */
	uint32_t line;       /* 0: none */
};

struct tachyon_file {
	struct spool file;
	bool big_endian;
	uint32_t python_version; /* 0x030f00 */
	uint64_t start_us, interval_us, samples;
	uint32_t threads;
	uint32_t mode; /* of the profiler, from 0; UINT32_MAX: not told */
	uint32_t compression;
	uint64_t strings_off, frames_off, tables_end;
	uint32_t string_count, frame_count;
	char *texts;
	struct tachyon_string *strings;
	struct tachyon_frame *frames;
	bool has_stats, has_failed, has_missed;
	double rate_hz, failed_percent, missed_percent;
};

/* 0 or -errno with *fault filled. */
int tachyon_open(struct tachyon_file *f, struct input *in, struct fault *fault);
void tachyon_close(struct tachyon_file *f);

/* A part of the file, read from its beginning to its end; what is packed is unpacked. */
struct tachyon_stream {
	const struct spool *file;
	void *zstd;          /* ZSTD_DStream; NULL: it is not packed */
	bool open;           /* the packed frame has not ended */
	int err;             /* 0 or the first -errno; -EPROTO: the packed data is damaged or cut off */
	uint64_t off, end;   /* of what was not read yet */
	uint64_t done_bytes; /* handed out, up to what is in `data` */
	size_t at, have;
	size_t packed_at, packed_end;
	unsigned char data[65536], packed[65536];
};

/* 0 or -errno: -ENOTSUP we are built without zstd. */
int tachyon_stream_init(struct tachyon_stream *s, const struct spool *file, uint64_t off, uint64_t end, bool packed);
void tachyon_stream_release(struct tachyon_stream *s);
/* Whether there is more; brings it into `data`. */
bool tachyon_stream_more(struct tachyon_stream *s);
/* False: it ends before, or an error. */
bool tachyon_stream_read(struct tachyon_stream *s, void *to, size_t bytes);
/* LEB128, at most `max`. */
bool tachyon_stream_varint(struct tachyon_stream *s, uint64_t max, uint64_t *ret_value);
/* Where it stands, in bytes from its beginning, unpacked. */
uint64_t tachyon_stream_offset(const struct tachyon_stream *s);

uint64_t tachyon_u64(const unsigned char *at, bool big_endian);
uint32_t tachyon_u32(const unsigned char *at, bool big_endian);

#endif
