/* SPDX-License-Identifier: Apache-2.0 */
/* The aggregator's own copies of symbols. The sampler's ids come and go (REC_FORGET, and a new id when the same function
 * is met again); the copies are known by content and counted, so that a function stays one, however often it is
 * defined, and goes when neither an id, a stack nor a node of a tree names it. */
#ifndef SAMPLED_AGGREGATOR_SYMBOLS_H
#define SAMPLED_AGGREGATOR_SYMBOLS_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "aggregator/budget.h"
#include "aggregator/lookup.h"
#include "aggregator/profile.h"
#include "sampler/record.h"

/* What a symbol is known by. */
struct symbol_content {
	const char *name, *file, *module, *build_id; /* not terminated; without NULs in them; of no bytes they may be NULL */
	uint32_t name_bytes, file_bytes, module_bytes, build_id_bytes;
	uint32_t first_line;
	uint8_t kind, flags;
	bool mapped;
	uint64_t mapped_from, mapped_to; /* it is not known by these: the first that were told hold */
};

struct kept_symbol {
	char *text; /* name NUL file NUL module NUL build id NUL; owned; NULL: a free slot */
	uint32_t name_bytes, file_bytes, module_bytes, build_id_bytes; /* without the NULs */
	uint32_t first_line;
	uint32_t hash;
	uint32_t refs;
	uint32_t next_free; /* of a free slot */
	uint8_t kind, flags;
	bool omit, stop; /* matches these options */
	bool mapped;     /* what native frames lie in; only these name it */
	uint64_t mapped_from, mapped_to;
};

struct symbols {
	struct kept_symbol *slots;
	uint32_t count, room;       /* count: slots ever used */
	uint32_t first_free;        /* SYMBOL_NONE: none */
	struct lookup ids;          /* sampler's id → slot */
	struct lookup contents;     /* content's hash → slot */
	const regex_t *omit, *stop; /* NULL: none; the caller's */
	struct budget *budget;
};

/* No symbol: an unknown id. */
#define SYMBOL_NONE LOOKUP_NONE
/* A symbol that found no memory: known, but nothing can be counted at it. */
#define SYMBOL_LOST (LOOKUP_NONE - 1)

/* What a mapping's record, which has been checked, says. Texts point into the record, and into build_id, which the caller has. */
struct symbol_content symbol_of_mapping(const struct rec_mapping *record, char build_id[2 * BUILD_ID_MAX]);

void symbols_init(struct symbols *symbols, struct budget *budget, const regex_t *omit, const regex_t *stop);
void symbols_release(struct symbols *symbols);

/* The record's head.bytes has been checked to be the room it has. 0, -EPROTO (makes no sense), -ENOMEM. */
int symbols_define(struct symbols *symbols, const struct rec_symbol *record);
/* The same of a record that has been checked (record_check()). */
int symbols_define_mapping(struct symbols *symbols, const struct rec_mapping *record);
/* -EPROTO: no such id. */
int symbols_forget(struct symbols *symbols, uint32_t id);

/* The slot of an id, SYMBOL_LOST or SYMBOL_NONE. */
static inline uint32_t symbols_find(const struct symbols *symbols, uint32_t id)
{
	return lookup_id(&symbols->ids, id);
}

/* The slot with this content, made when there is none yet, with one reference more; SYMBOL_LOST: no memory. */
uint32_t symbols_intern(struct symbols *symbols, const struct symbol_content *content);

void symbols_ref(struct symbols *symbols, uint32_t slot);
void symbols_unref(struct symbols *symbols, uint32_t slot);

/* A slot's texts and numbers, as profiles have them; they live as long as the slot. */
struct symbol symbols_get(const struct symbols *symbols, uint32_t slot);

/* Copies all texts into the profile: its symbols have the slots' numbers. 0 or -ENOMEM, for profile_free() to clear up. */
int symbols_copy(const struct symbols *symbols, struct profile *profile);

#endif
