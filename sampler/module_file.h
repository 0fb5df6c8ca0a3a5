/* SPDX-License-Identifier: Apache-2.0 */
/* One file, or piece of memory, that code of a process lies in. Its bytes are read, never mapped: a file that is cut while it is mapped kills who
 * reads it. For modules.c alone. */
#ifndef SAMPLED_SAMPLER_MODULE_FILE_H
#define SAMPLED_SAMPLER_MODULE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/elfhead.h"
#include "sampler/evalloop.h"
#include "sampler/modules.h"
#include "sampler/procfs.h"

struct module_file {
	struct proc_map map; /* where it was met first; its path is ours */
	char *path;          /* owned */
	uint32_t refs;       /* modules that lie in it */
	uint32_t id;         /* symtab's; 0: not used yet */
	uint32_t flags;      /* MAPPING_* */
	bool vdso;
	bool examined;
	struct elfhead *head;  /* owned; NULL: no ELF file, or not to be had */
	struct evalloop *eval; /* owned; of the interpreter's; NULL: not found */
	uint8_t *memory;       /* owned; the vdso's bytes */
	size_t memory_bytes;
	uint8_t *pieces[UNWIND_PIECES]; /* owned; what tables point into */
	size_t pieces_bytes;
	bool tables_good;   /* loaded */
	bool tables_failed; /* there are none that can be used */
	struct unwind_tables tables;
	uint64_t used; /* the owner's count when tables were asked for last */
	struct module_file *next;
};

/* NULL without memory. */
struct module_file *module_file_new(const struct proc_map *map);
void module_file_free(struct module_file *file);

/* Opens it once, as mapped at *map in the process, and finds out what it is. `interpreter`: look for the eval loop, too. */
void module_file_examine(struct module_file *file, const struct remote *remote, const struct proc_map *map,
                         bool interpreter);
/* Loads the tables, of at most max_bytes. 0 or -errno. */
int module_file_load(struct module_file *file, const struct remote *remote, const struct proc_map *map,
                     size_t max_bytes);
void module_file_unload(struct module_file *file);

#endif
