/* SPDX-License-Identifier: Apache-2.0 */
/* What the asking side's files share (names.c, names_ask.c). */
#ifndef SAMPLED_EXPORTERS_NAMES_STATE_H
#define SAMPLED_EXPORTERS_NAMES_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "exporters/names.h"
#include "exporters/names_wire.h"

/* A module that the child knows; its number is its place. */
struct known_module {
	char *path, *build_id; /* owned; the latter in hexadecimal */
	uint32_t key, flags;
};

struct names {
	enum native_frames show;
	uint64_t timeout_ns;
	pid_t child, fetcher; /* 0: none */
	int socket_fd;        /* -1: nothing is named any more */
	pthread_mutex_t lock; /* guards what follows, and sending */
	struct known_module *modules;
	uint32_t module_count;
	/* The preparing thread's own. */
	struct named *found;   /* places by module number; owned */
	uint32_t *module_of;   /* of each symbol of the profile prepared last; MODULE_NONE */
	uint32_t symbol_count; /* of it */
	uint32_t sequence;
	union wire_message message;
};

#define MODULE_NONE UINT32_MAX

/* The number of the module that is a profile's symbol; it is made known where it is not. MODULE_NONE: at the bound. */
uint32_t names_module_of(struct names *names, const struct symbol *symbol);
/* Ends the child; from here on nothing is named. */
void names_break(struct names *names);

#endif
