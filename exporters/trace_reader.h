/* SPDX-License-Identifier: Apache-2.0 */
/* Chrome trace events while they are read: the parser (trace_read.c) gathers them, since they come in any order; trace_build.c makes stacks of
 * them. */
#ifndef SAMPLED_EXPORTERS_TRACE_READER_H
#define SAMPLED_EXPORTERS_TRACE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/builder.h"
#include "base/buf.h"
#include "exporters/intern.h"

enum trace_kind { TRACE_SPAN, TRACE_BEGIN, TRACE_END };

struct trace_event {
	uint64_t start_ns, end_ns; /* end_ns of a span */
	uint32_t symbol, line;     /* the builder's; of an end none */
	uint32_t thread : 30, kind : 2;
	uint32_t order; /* in the file */
};

struct trace_thread {
	int32_t pid;
	uint64_t tid;           /* 0: it is none, but a name */
	uint32_t process, name; /* texts; INTERN_FAILED: none */
};

struct trace {
	struct builder *to;
	struct buf events;           /* struct trace_event */
	struct text_set ids;         /* of threads: pid and tid, as the file has them */
	struct buf threads;          /* struct trace_thread */
	struct text_set process_ids; /* pid, as the file has it */
	struct buf processes;        /* uint32_t: the name, of texts */
	struct text_set texts;
	uint64_t async, passed_over, bad; /* events left out */
	uint64_t clipped, left_open, without_begin, too_deep;
};

/* All events into the builder. 0 or -errno. */
int trace_build(struct trace *trace);

#endif
