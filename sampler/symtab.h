/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols: function names by content. Name, file and first line together have one id, however many code objects carry
 * them; ids are never used twice. Owned and used by the sampler thread alone. */
#ifndef SAMPLED_SAMPLER_SYMTAB_H
#define SAMPLED_SAMPLER_SYMTAB_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/ring.h"

struct symtab;

struct symbol_mapping { /* what is said of a mapping besides; build_id is the name */
	uint32_t target;
	uint32_t dev_major, dev_minor;
	uint64_t start, end, file_off;
	uint64_t inode;
};

struct symbol_text {
	const char *name, *file; /* valid UTF-8 */
	uint32_t name_bytes, file_bytes;
	uint32_t first_line;
	uint8_t kind;  /* enum frame_kind */
	uint8_t flags; /* SYMBOL_*; MAPPING_* */
	/* FRAME_NATIVE: a mapping (struct rec_mapping). Then `file` is its path, `name` the bytes of its build id; the caller sees to it that
	 * what is alike in these and first_line is one (symtab_mapping_key()). Else NULL. */
	const struct symbol_mapping *mapping;
};

int symtab_new(struct symtab **ret_symbols);
void symtab_free(struct symtab *symbols);

/* The id of a text, with one reference more; 0 without memory. */
uint32_t symtab_intern(struct symtab *symbols, const struct symbol_text *text);
/* The same for a special frame's name. */
uint32_t symtab_special(struct symtab *symbols, const char *name);
/* What tells mappings with the same path and build id apart: for first_line. */
uint32_t symtab_mapping_key(const struct symbol_mapping *mapping, bool has_file);
/* Gives a reference back. At the last one the symbol is retired; the consumer learns it by symtab_flush_forgotten(). */
void symtab_unref(struct symtab *symbols, uint32_t id);
/* Makes sure that the consumer knows this symbol. False: the ring is full, no stack may name it yet. */
bool symtab_publish(struct symtab *symbols, uint32_t id, struct ring *ring);
/* Tells the consumer of retired symbols. The caller has made sure that no later stack names one, by its shared part either. */
void symtab_flush_forgotten(struct symtab *symbols, struct ring *ring);
/* Symbols defined so far. */
uint64_t symtab_defined(const struct symtab *symbols);

#endif
