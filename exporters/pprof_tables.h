/* SPDX-License-Identifier: Apache-2.0 */
/* Everything of a pprof file but its samples, which mostly stand before the tables that they refer to: so the file is gone over once for these,
 * and once more for the samples. Ids may have any order and gaps; references may lead nowhere. */
#ifndef SAMPLED_EXPORTERS_PPROF_TABLES_H
#define SAMPLED_EXPORTERS_PPROF_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/fault.h"
#include "exporters/input.h"
#include "exporters/intern.h"
#include "exporters/protobuf.h"

enum { PPROF_TYPES_MAX = 64 };

struct pprof_type {
	uint64_t name, unit; /* strings */
};

struct pprof_line {
	uint64_t function; /* id */
	uint32_t number;
};

struct pprof_location {
	uint64_t mapping; /* id; 0: none */
	uint64_t address;
	size_t first_line; /* in lines */
	uint32_t line_count;
	uint32_t symbol; /* the reader's own, where line_count is 0: of the address; BUILDER_NONE: none yet */
};

struct pprof_function {
	uint64_t name, system_name, file; /* strings */
	uint32_t first_line;
	uint32_t symbol; /* the reader's own; BUILDER_NONE: none yet */
};

/* By id: numbers by the order in the file. */
struct pprof_ids {
	struct pair_set set; /* the two halves of an id */
	uint64_t twice;      /* ids that were there already: the first stands */
};

struct pprof_tables {
	struct pprof_type types[PPROF_TYPES_MAX];
	uint64_t type_count; /* in the file: may be more */
	struct pprof_type period_type;
	uint64_t time_ns, duration_ns, period, default_type;
	uint64_t sample_count;
	struct buf comments;    /* uint64_t, strings */
	struct buf texts, ends; /* of the strings, cut at REC_TEXT_MAX; size_t, where each ends */
	struct pprof_ids mapping_ids, location_ids, function_ids;
	struct buf mapping_files; /* uint64_t, strings */
	struct buf locations, lines, functions;
	struct buf field; /* what is being decoded */
};

/* 0, or -errno with *fault filled: -EPROTO, -EFBIG, -ENOMEM, or of reading. Takes all of the input. */
int pprof_tables_read(struct pprof_tables *tables, struct input *in, struct fault *fault);
void pprof_tables_release(struct pprof_tables *tables);

/* Not terminated. NULL: there is no such string. */
const char *pprof_string(const struct pprof_tables *tables, uint64_t index, size_t *ret_bytes);
bool pprof_is_text(const struct pprof_tables *tables, uint64_t string, const char *text);
/* The string as a C string in *to, which is emptied first. "" where there is none. */
const char *pprof_text(const struct pprof_tables *tables, struct buf *to, uint64_t string);
/* NULL: there is none with this id. */
struct pprof_location *pprof_location(const struct pprof_tables *tables, uint64_t id);
struct pprof_function *pprof_function(const struct pprof_tables *tables, uint64_t id);
const struct pprof_line *pprof_lines(const struct pprof_tables *tables, const struct pprof_location *location);
/* The mapping's file, a string; 0: none. */
uint64_t pprof_mapping_file(const struct pprof_tables *tables, uint64_t id);

/* Fills *fault for a file that is damaged at this byte, unpacked, in `what` (err -EPROTO), or could not be read. Returns err. */
int pprof_fault(const struct pb_stream *stream, int err, const char *what, struct fault *fault);

#endif
