/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile's values are called, and what is to be said of an import. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/builder_state.h"
#include "base/utf8.h"

/* Keeps a text for as long as the profile lives. */
static const char *keep_text(struct builder *b, const char *text)
{
	/* One block holds all names and units: VALUE_COUNT names of bounded length. */
	enum { TEXT_MAX = 64, BLOCK = 2 * VALUE_COUNT * (TEXT_MAX + 1) };
	struct profile *p = b->profile;
	size_t used = 0, bytes;

	if (!p->value_strings)
		p->value_strings = calloc(1, BLOCK);
	if (!p->value_strings) {
		builder_fail(b, -ENOMEM);
		return NULL;
	}
	while (p->value_strings[used])
		used += TEXT_MAX + 1;
	utf8_add_valid(&b->name, text, strnlen(text, TEXT_MAX));
	if (b->name.err || b->name.bytes == 0)
		buf_putc(&b->name, '?');
	bytes = b->name.bytes;
	if (bytes > TEXT_MAX) /* what was replaced takes more room; no character is cut */
		for (bytes = TEXT_MAX; ((unsigned char)b->name.data[bytes] & 0xc0) == 0x80;)
			bytes--;
	memcpy(p->value_strings + used, b->name.data, bytes);
	b->name.bytes = 0;
	return p->value_strings + used;
}

uint32_t builder_value(struct builder *b, const char *name, const char *unit, enum value_index index)
{
	struct value_type *values = b->profile->values;
	const char *kept_name, *kept_unit;
	uint32_t at = index;

	if (b->err)
		return BUILDER_NONE;
	if (index == VALUE_SAMPLES) { /* another name for it: of objects, calls */
		kept_name = strcmp(values[index].name, name) == 0 ? values[index].name : keep_text(b, name);
		values[index].name = kept_name ? kept_name : profile_value_types[index].name;
		return index;
	}
	if (strcmp(name, "on_cpu") == 0) /* as files of ours called it, which say "cpu" of the kernel's count */
		name = profile_value_types[VALUE_RUNNABLE].name;
	for (uint32_t i = 0; i < VALUE_COUNT; i++)
		if (values[i].name && strcmp(values[i].name, name) == 0 && strcmp(values[i].unit, unit) == 0)
			return i;
	for (uint32_t i = 0; i < VALUE_COUNT; i++)
		if (strcmp(profile_value_types[i].name, name) == 0 && strcmp(profile_value_types[i].unit, unit) == 0 &&
		    !values[i].name && !(i == VALUE_CPU && index == VALUE_WALL && !values[index].name)) {
			values[i] = profile_value_types[i];
			return i;
		}
	if (values[at].name)
		for (at = VALUE_RUNNABLE; at < VALUE_COUNT && values[at].name; at++)
			;
	if (at == VALUE_COUNT)
		return BUILDER_NONE;
	kept_name = keep_text(b, name);
	kept_unit = kept_name ? keep_text(b, unit) : NULL;
	if (!kept_unit)
		return BUILDER_NONE;
	values[at] = (struct value_type){.name = kept_name, .unit = kept_unit};
	return at;
}

static bool raise_note(struct profile *p, const char *key, double number, bool loss)
{
	for (uint32_t i = 0; i < p->note_count; i++)
		if (strcmp(p->notes[i].key, key) == 0) {
			p->notes[i].number += number;
			p->notes[i].loss |= loss;
			return true;
		}
	return false;
}

void builder_note(struct builder *b, const char *key, const char *label, double number, bool loss)
{
	enum { NOTES_MAX = 32 };
	static const char left_out[] = "notes_left_out";
	struct profile *p = b->profile;

	if (b->err || raise_note(p, key, number, loss))
		return;
	if (p->note_count >= NOTES_MAX - 1 && strcmp(key, left_out) != 0) { /* the last one says that there were more */
		builder_note(b, left_out, "remarks left out: too many", 1, true);
		return;
	}
	if (!p->notes)
		p->notes = calloc(NOTES_MAX, sizeof(*p->notes));
	if (!p->notes) {
		builder_fail(b, -ENOMEM);
		return;
	}
	utf8_add_safe(&b->name, label); /* it goes to terminals */
	p->notes[p->note_count] =
		(struct note){.key = key, .label = strdup(buf_text(&b->name)), .number = number, .loss = loss};
	b->name.bytes = 0;
	if (!p->notes[p->note_count].label)
		builder_fail(b, -ENOMEM);
	else
		p->note_count++;
}
