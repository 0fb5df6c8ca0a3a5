/* SPDX-License-Identifier: Apache-2.0 */
/* The executable mappings of one process: which file a program counter lies in, where in it, and what is needed to unwind through it.
 * Used by the sampler thread alone. Everything the target can write (its maps, its files, its memory) is taken for hostile. */
#ifndef SAMPLED_SAMPLER_MODULES_H
#define SAMPLED_SAMPLER_MODULES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/discover.h"
#include "sampler/record.h"
#include "sampler/remote.h"
#include "sampler/symtab.h"
#include "sampler/unwind_tables.h"

struct modules;
struct module_file;

/* One executable mapping. Stays where it is until modules_forget(), also when it has gone from the process. */
struct module {
	uint32_t id;    /* the symtab's; 0 until modules_use() */
	uint32_t flags; /* MAPPING_*; known from modules_find() on */
	raddr_t start, end;
	uint64_t file_off;
	uint64_t bias; /* what to add to addresses that its file speaks of */
	struct module_file *file;
	bool examined; /* flags and bias are known */
};

/* What the modules of `proc` are found by; both pointers must stay good. Nothing is read yet. 0 or -ENOMEM. */
int modules_new(struct modules **ret_modules, const struct remote *remote, const struct pyproc *proc,
                struct symtab *symbols, uint32_t target_id);
/* Gives its ids back. */
void modules_free(struct modules *modules);

/* The module that pc lies in; NULL: nowhere executable. The maps are read again when pc lies in none and they are older than 10 ms. */
struct module *modules_find(struct modules *modules, raddr_t pc);
/* Reads the maps again when they are older than half a second: once a tick at most. */
void modules_check(struct modules *modules);
/* What was found in them made no sense: reads them again when they are older than 10 ms. Whoever asks, the maps are read for a hundredth of the
 * time at most. */
void modules_doubt(struct modules *modules);
/* Another number each time a module went away or others took its place: what was concluded from addresses is no longer good. */
uint64_t modules_generation(const struct modules *modules);
/* How often the maps were read: memory that holds code without a file may be another's after it. */
uint64_t modules_readings(const struct modules *modules);

/* The id that a frame names (struct pyframe.mapping, struct frame.id); 0 without memory. Kept until modules_forget() or modules_free(). */
uint32_t modules_use(struct modules *modules, struct module *module);
/* A frame's `where`: the offset in the file, or in memory that has no file; at most UINT32_MAX. */
uint32_t modules_where(const struct module *module, raddr_t pc);
/* Its file as the target sees it, "[vdso]", or "" without a file. Valid as long as the module. */
const char *modules_path(const struct module *module);
/* Gives back the ids of what has gone from the process: for when no stack that is kept names them (as before symtab_flush_forgotten()). No
 * struct module that was seen before may be used after it. */
void modules_forget(struct modules *modules);

/* Its file's unwind tables, read when they are first asked for and again when memory ran short; NULL: it has none, or they are too large. */
const struct unwind_tables *modules_tables(struct modules *modules, struct module *module);
/* In the program's first instructions: that function has no caller, whatever its stack looks like. */
bool modules_is_start(const struct module *module, raddr_t pc);
/* Reads the process' code, at most 64 bytes. Bytes read, or -errno. */
ssize_t modules_code(struct modules *modules, raddr_t pc, uint8_t *to, size_t bytes);

/* In the interpreter's eval loop: _PyEval_EvalFrameDefault with all pieces that the compiler cut it into. */
bool modules_is_eval(struct modules *modules, raddr_t pc);
/* In a handler of an interpreter whose instructions call each other as tails (3.14+): with the eval frame below it, it is one run. */
bool modules_is_eval_inner(struct modules *modules, raddr_t pc);
/* Whether where the eval loop lies is known at all. */
bool modules_know_eval(struct modules *modules);

#endif
