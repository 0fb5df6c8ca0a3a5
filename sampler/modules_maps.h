/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of struct modules, for modules.c and modules_maps.c alone. */
#ifndef SAMPLED_SAMPLER_MODULES_MAPS_H
#define SAMPLED_SAMPLER_MODULES_MAPS_H

#include <stddef.h>
#include <stdint.h>

#include "sampler/modules.h"
#include "sampler/procfs.h"

struct modules {
	const struct remote *remote;
	const struct pyproc *proc;
	struct symtab *symbols;
	uint32_t target;
	struct module **list; /* owned, and what it points to; rising and apart */
	size_t count;
	struct module **gone; /* likewise: went away since modules_forget() */
	size_t gone_count, gone_room;
	struct module_file *files; /* owned */
	struct module_file *interpreter;
	struct module *last; /* found */
	uint64_t generation, uses;
	uint64_t t_read_ns, read_ns; /* when the maps were read last, and the CPU time that it took */
	uint64_t readings;
};

/* Reads the maps: modules that are in them as before stay, others come, and those that are not go. 0 or -errno, and nothing has changed. */
int modules_read_maps(struct modules *modules);
/* Finds out what a module is, once. */
void modules_examine(struct modules *modules, struct module *module);
/* The module that addr lies in, of those that were there when the maps were read; or NULL. */
struct module *modules_look_up(const struct modules *modules, raddr_t addr);
void modules_release(struct modules *modules, struct module *module);

#endif
