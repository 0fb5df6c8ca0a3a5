/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/tachyon_file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX_BYTES (UINT64_C(10) << 30)
/* Strings and frames are held in memory; those of the largest programs are a few MiB. */
#define TABLES_MAX_BYTES (UINT64_C(256) << 20)
#define INTERVAL_MAX_US  (UINT64_C(86400) * 1000000)

enum {
	HEAD_BYTES = 64,
	FOOTER_BYTES = 32,
	STATS_BYTES = 56,
	FRAME_LEAST_BYTES = 7,
	COMPRESSION_ZSTD = 1,
	STATS_FAILED = 1, /* bits of what is there */
	STATS_MISSED = 2
};

static int read_part(const struct tachyon_file *f, unsigned char *to, size_t bytes, uint64_t off, struct fault *fault)
{
	int64_t got = spool_read_at(&f->file, to, bytes, off);

	if (got < 0)
		return fault_set(fault, (int)got, "", "%s", strerror((int)-got));
	if (got != (int64_t)bytes)
		return fault_set(fault, -EPROTO, "", "it ends at byte %" PRIu64 ", in the middle", off + (uint64_t)got);
	return 0;
}

static int read_head(struct tachyon_file *f, struct fault *fault)
{
	unsigned char head[HEAD_BYTES];
	int err = read_part(f, head, sizeof(head), 0, fault);
	uint32_t layout, config;

	if (err)
		return err;
	f->big_endian = head[0] == 'T';
	layout = tachyon_u32(head + 4, f->big_endian);
	if (layout != 1)
		return fault_set(fault, -ENOTSUP, "python -m profiling.sampling replay reads it",
		                 "version %" PRIu32
		                 " of Tachyon's binary format is not known (Python %u.%u.%u wrote it)",
		                 layout, head[8], head[9], head[10]);
	f->python_version = (uint32_t)head[8] << 16 | (uint32_t)head[9] << 8 | head[10];
	f->start_us = tachyon_u64(head + 12, f->big_endian);
	f->interval_us = tachyon_u64(head + 20, f->big_endian);
	f->samples = tachyon_u64(head + 28, f->big_endian);
	f->threads = tachyon_u32(head + 36, f->big_endian);
	f->strings_off = tachyon_u64(head + 40, f->big_endian);
	f->frames_off = tachyon_u64(head + 48, f->big_endian);
	f->compression = tachyon_u32(head + 56, f->big_endian);
	config = tachyon_u32(head + 60, f->big_endian);
	f->mode = (config & 7) == 0 ? UINT32_MAX : (config & 7) - 1;
	if (f->compression > COMPRESSION_ZSTD)
		return fault_set(fault, -EPROTO, "", "compression %" PRIu32 " (byte 56) is not known", f->compression);
	if (f->interval_us == 0 || f->interval_us > INTERVAL_MAX_US)
		return fault_set(fault, -EPROTO, "", "an interval of %" PRIu64 " us (byte 20) makes no sense",
		                 f->interval_us);
	return 0;
}

static int read_footer(struct tachyon_file *f, struct fault *fault)
{
	uint64_t footer_off = f->file.bytes - FOOTER_BYTES, bytes;
	unsigned char footer[FOOTER_BYTES];
	int err = read_part(f, footer, sizeof(footer), footer_off, fault);

	if (err)
		return err;
	f->string_count = tachyon_u32(footer, f->big_endian);
	f->frame_count = tachyon_u32(footer + 4, f->big_endian);
	bytes = tachyon_u64(footer + 8, f->big_endian);
	if (bytes != f->file.bytes)
		return fault_set(fault, -EPROTO, "",
		                 "it is cut off: its last bytes are not the footer of a file of %" PRIu64 " bytes",
		                 f->file.bytes);
	f->tables_end = footer_off;
	if (f->strings_off < HEAD_BYTES || f->strings_off > f->frames_off || f->frames_off > f->tables_end)
		return fault_set(fault, -EPROTO, "",
		                 "its tables (at bytes %" PRIu64 " and %" PRIu64
		                 ") lie outside of the file or of their order",
		                 f->strings_off, f->frames_off);
	if (f->tables_end - f->strings_off > TABLES_MAX_BYTES)
		return fault_set(fault, -EPROTO, "", "its tables are larger than %" PRIu64 " MiB",
		                 TABLES_MAX_BYTES >> 20);
	if (f->string_count > f->frames_off - f->strings_off ||
	    f->frame_count > (f->tables_end - f->frames_off) / FRAME_LEAST_BYTES)
		return fault_set(fault, -EPROTO, "",
		                 "%" PRIu32 " strings and %" PRIu32 " frames do not fit into its tables",
		                 f->string_count, f->frame_count);
	return 0;
}

static double get_double(const unsigned char *at, bool big_endian)
{
	uint64_t bits = tachyon_u64(at, big_endian);
	double value;

	memcpy(&value, &bits, sizeof(value));
	return isfinite(value) ? value : 0;
}

/* Files have none when the profiler was not asked to keep them. */
static int read_stats(struct tachyon_file *f, struct fault *fault)
{
	unsigned char stats[STATS_BYTES];
	uint32_t present;
	int err;

	if (f->tables_end - f->frames_off < STATS_BYTES)
		return 0;
	err = read_part(f, stats, sizeof(stats), f->tables_end - STATS_BYTES, fault);
	if (err)
		return err;
	if (memcmp(stats + 40, "TACHSTAT", 8) != 0 || tachyon_u32(stats + 52, f->big_endian) != STATS_BYTES)
		return 0;
	present = tachyon_u32(stats + 32, f->big_endian);
	f->has_stats = true;
	f->rate_hz = get_double(stats + 8, f->big_endian);
	f->has_failed = present & STATS_FAILED;
	f->failed_percent = get_double(stats + 16, f->big_endian);
	f->has_missed = present & STATS_MISSED;
	f->missed_percent = get_double(stats + 24, f->big_endian);
	return 0;
}

static int malformed(const struct tachyon_stream *s, uint64_t off, const char *what, uint32_t number,
                     struct fault *fault)
{
	if (s->err && s->err != -EPROTO)
		return fault_set(fault, s->err, "", "%s", strerror(-s->err));
	return fault_set(fault, -EPROTO, "", "%s %" PRIu32 " is malformed (byte %" PRIu64 ")", what, number,
	                 off + tachyon_stream_offset(s));
}

static int read_strings(struct tachyon_file *f, struct tachyon_stream *s, struct fault *fault)
{
	uint64_t bytes = f->frames_off - f->strings_off, used = 0;

	f->texts = malloc(bytes + 1);
	f->strings = calloc(f->string_count + (size_t)1, sizeof(*f->strings));
	if (!f->texts || !f->strings)
		return fault_set(fault, -ENOMEM, "", "out of memory");
	for (uint32_t i = 0; i < f->string_count; i++) {
		uint64_t length;

		if (!tachyon_stream_varint(s, bytes - used, &length) ||
		    !tachyon_stream_read(s, f->texts + used, length))
			return malformed(s, f->strings_off, "string", i, fault);
		f->strings[i] = (struct tachyon_string){.off = (uint32_t)used, .bytes = (uint32_t)length};
		used += length;
	}
	return 0;
}

static bool read_frame(const struct tachyon_file *f, struct tachyon_stream *s, struct tachyon_frame *frame)
{
	uint64_t file, name, line, rest;
	unsigned char opcode;

	if (!tachyon_stream_varint(s, UINT32_MAX, &file) || !tachyon_stream_varint(s, UINT32_MAX, &name) ||
	    !tachyon_stream_varint(s, UINT32_MAX, &line))
		return false;
	for (int i = 0; i < 3; i++) /* end of line, columns */
		if (!tachyon_stream_varint(s, UINT32_MAX, &rest))
			return false;
	if (!tachyon_stream_read(s, &opcode, 1) || file >= f->string_count || name >= f->string_count)
		return false;
	/* Zigzag: odd ones are negative, of which -1 is none. */
	*frame = (struct tachyon_frame){
		.file = (uint32_t)file, .name = (uint32_t)name, .line = line & 1 ? 0 : (uint32_t)(line >> 1)};
	return true;
}

static int read_frames(struct tachyon_file *f, struct tachyon_stream *s, struct fault *fault)
{
	f->frames = calloc(f->frame_count + (size_t)1, sizeof(*f->frames));
	if (!f->frames)
		return fault_set(fault, -ENOMEM, "", "out of memory");
	for (uint32_t i = 0; i < f->frame_count; i++)
		if (!read_frame(f, s, &f->frames[i]))
			return malformed(s, f->frames_off, "frame", i, fault);
	return 0;
}

static int read_tables(struct tachyon_file *f, struct fault *fault)
{
	struct tachyon_stream *s = malloc(sizeof(*s));
	int err;

	if (!s)
		return fault_set(fault, -ENOMEM, "", "out of memory");
	tachyon_stream_init(s, &f->file, f->strings_off, f->frames_off, false);
	err = read_strings(f, s, fault);
	if (!err) {
		tachyon_stream_init(s, &f->file, f->frames_off, f->tables_end, false);
		err = read_frames(f, s, fault);
	}
	free(s);
	return err;
}

int tachyon_open(struct tachyon_file *f, struct input *in, struct fault *fault)
{
	int err;

	*f = (struct tachyon_file){0};
	err = spool_open(&f->file, in, FILE_MAX_BYTES, fault);
	if (err)
		return err;
	spool_forget_name(&f->file);
	if (f->file.bytes < HEAD_BYTES + FOOTER_BYTES)
		err = fault_set(fault, -EPROTO, "",
		                "it is cut off: %" PRIu64 " bytes are less than its head and footer", f->file.bytes);
	if (!err)
		err = read_head(f, fault);
	if (!err)
		err = read_footer(f, fault);
	if (!err)
		err = read_stats(f, fault);
	if (!err)
		err = read_tables(f, fault);
	if (err)
		tachyon_close(f);
	return err;
}

void tachyon_close(struct tachyon_file *f)
{
	free(f->texts);
	free(f->strings);
	free(f->frames);
	f->texts = NULL;
	f->strings = NULL;
	f->frames = NULL;
	spool_close(&f->file);
}
