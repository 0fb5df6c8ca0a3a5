/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols: function names by content. Name, file and first line together have one id, however many code objects carry
 * them; ids are never used twice. Owned and used by the sampler thread alone. */
#ifndef SAMPLED_SAMPLER_SYMBOLS_H
#define SAMPLED_SAMPLER_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/ring.h"

struct symbols;

struct symbol_text {
	const char *name, *file; /* valid UTF-8 */
	uint32_t name_bytes, file_bytes;
	uint32_t first_line;
	uint8_t kind;  /* enum frame_kind */
	uint8_t flags; /* SYMBOL_* */
};

int symbols_new(struct symbols **ret_symbols);
void symbols_free(struct symbols *symbols);

/* The id of a text, with one reference more; 0 without memory. */
uint32_t symbols_intern(struct symbols *symbols, const struct symbol_text *text);
/* Gives a reference back. At the last one the symbol is retired; the consumer learns it by symbols_flush_forgotten(). */
void symbols_unref(struct symbols *symbols, uint32_t id);
/* Makes sure that the consumer knows this symbol. False: the ring is full, no stack may name it yet. */
bool symbols_publish(struct symbols *symbols, uint32_t id, struct ring *ring);
/* Tells the consumer of retired symbols. The caller has made sure that no later stack names one, by its shared part either. */
void symbols_flush_forgotten(struct symbols *symbols, struct ring *ring);
bool symbols_any_forgotten(const struct symbols *symbols);
/* Symbols defined so far. */
uint64_t symbols_defined(const struct symbols *symbols);

#endif
