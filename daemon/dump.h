/* SPDX-License-Identifier: Apache-2.0 */
/* What one sample of every thread of a process says, read back from the ring's records. */
#ifndef SAMPLED_DAEMON_DUMP_H
#define SAMPLED_DAEMON_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/error.h"
#include "daemon/naming.h"
#include "exporters/writer.h"
#include "sampler/core.h"
#include "sampler/record.h"
#include "sampler/sampler.h"
#include "sampler/values/values.h"

struct dump_symbol {
	char *name; /* owned; NULL: no such symbol */
	char *file; /* owned */
	uint32_t first_line;
	char *module,
		*build_id; /* of native frames: the file, and its build id in hexadecimal. Owned; NULL: of others */
	bool mapped;       /* a mapping; first_line is as struct symbol has it */
	uint8_t flags;     /* of a mapping: MAPPING_* */
};

struct dump_thread {
	uint32_t id;
	int64_t interpreter;
	uint64_t tid; /* 0: unknown */
	bool is_main;
	char *name;      /* owned; NULL: none known */
	bool sampled;    /* the rest is known */
	uint16_t status; /* enum thread_status bits */
	bool truncated;
	const char *syscall;  /* it was blocked in this one; NULL: in none, or not known. Static */
	struct frame *frames; /* owned; root first */
	uint32_t depth;
	const struct frame_locals **locals; /* owned; of each frame, NULL where they are not known. NULL: not asked for */
	bool locals_whole;                  /* all are of the stack's own instant */
};

struct dump {
	struct dump_symbol *symbols; /* by id; owned */
	uint32_t symbol_room;
	struct dump_thread *threads; /* owned; main interpreter first, in it the main thread first */
	uint32_t thread_count;
	struct rec_facts facts; /* head unused */
	uint32_t left_out;      /* records that made no sense */
	struct naming *naming;  /* the caller's, told of mappings; NULL: none */
	struct values values;   /* of variables; empty where they were not asked for */
};

/* Takes in one record of the stream. 0, or -ENOMEM. One that makes no sense is left out and counted; when it is a
 * stack, its thread has none until the next whole one. */
int dump_feed(struct dump *dump, const struct rec_head *record);
/* Samples every thread once, as the options say (target_sample_once()), with variables. 0 or -errno (-ESRCH: gone meanwhile). */
int dump_take(struct dump *ret_dump, struct target *target, const struct sampler_options *options,
              const struct values_options *values, struct naming *naming);
void dump_release(struct dump *dump);
/* The most threads of one interpreter that were seen with its GIL. One at a time has it: where there are more, the stacks are not of one moment. */
uint32_t dump_gil_holders(const struct dump *dump);
/* dump_native.c: native frames become functions, or MODULE+0xOFFSET. 0 or -ENOMEM. */
int dump_name(struct dump *dump, struct naming *naming);

/* What was dumped. */
struct dump_origin {
	const struct pyproc *proc;
	struct core *core; /* that it was read from; NULL: the process itself */
	const char *core_path;
	struct naming *naming; /* NULL: native frames have no names */
	const char *before;    /* goes before it on standard output, behind what was written already; NULL: nothing */
};

/* For people: leaf first, with source lines where sources are readable. For programs: the same as one JSON object. */
void dump_print_text(const struct dump *dump, const struct dump_origin *origin, bool color, struct writer *to);
void dump_print_json(const struct dump *dump, const struct dump_origin *origin, struct writer *to);

/* dump_locals.c: finds the variables of each frame, once dump_name() has made the frames what is shown. 0 or -ENOMEM. */
int dump_find_locals(struct dump *dump);
void dump_print_locals(const struct frame_locals *locals, struct writer *to);
/* ,"locals":[…] behind a frame's other members. */
void dump_json_locals(const struct frame_locals *locals, struct writer *to);
/* How many threads ran while their values were read. */
uint32_t dump_moving_values(const struct dump *dump);

/* dump.c: samples an opened target, and prints it on standard output. What goes wrong is reported, as of `subject` ("process 12").
 * `origin` but for its proc is filled. An exit status. */
struct dump_how {
	struct sampler_options sampling;
	struct values_options values;
	bool json;
};
enum exit_status dump_target(struct target *target, const struct dump_how *how, struct dump_origin *origin,
                             const char *subject);

/* dump_core.c: sampled dump --core. `files`: what --exe named. An exit status. */
enum { DUMP_FILES_MAX = 16 };
enum exit_status dump_core(const char *path, const char *const *files, size_t file_count, const struct dump_how *how);

#endif
