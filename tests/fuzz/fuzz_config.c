/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a configuration file: what is told of it are texts that the file may hold, each assignment is taken or refused with a reason, and
 * each mistake has a place. */
#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"
#include "daemon/config_keys.h"
#include "daemon/ini.h"
#include "tests/fuzz/common.h"

static bool is_clean(const char *text)
{
	size_t bytes = strlen(text);

	if (bytes > 0 && (strchr(" \t\r", text[0]) || strchr(" \t\r", text[bytes - 1])))
		return false;
	for (size_t i = 0; i < bytes;) {
		uint32_t character;

		i += utf8_next(text + i, bytes - i, &character);
		if (utf8_is_unsafe(character) && character != '\t')
			return false;
	}
	return true;
}

/* Large enough for any section's struct; the one in hand. */
static union {
	struct config config;
	struct config_rule rule;
	struct config_trigger trigger;
} into;
static const struct config_section *section;

static void close_section(void)
{
	if (section)
		config_section_release(section, &into);
	section = NULL;
	memset(&into, 0, sizeof(into));
}

static int hear_section(void *context, const struct ini_entry *head, struct fault *fault)
{
	(void)context;
	close_section();
	expect(head->section[0] && is_clean(head->section) && is_clean(head->name) && !head->key && !head->value);
	section = config_find_section(head->section, fault);
	if (section)
		expect(config_set_defaults(section, &into) == 0);
	return section ? 0 : fault->err;
}

static int hear_entry(void *context, const struct ini_entry *entry, struct fault *fault)
{
	(void)context;
	expect(entry->line > 0 && entry->section[0] && entry->key[0] && is_clean(entry->key) && is_clean(entry->value));
	return config_assign(section, &into, entry->key, entry->value, fault);
}

static void hear_mistake(void *context, const struct fault *fault)
{
	++*(unsigned *)context;
	expect(fault->err < 0 && fault->why[0] && strncmp(fault->why, "file:", 5) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	unsigned mistakes = 0;
	const struct ini_handler handler = {
		.context = &mistakes, .entry = hear_entry, .section = hear_section, .mistake = hear_mistake};
	int err = ini_parse("file", (const char *)data, bytes, &handler, NULL);

	close_section();
	expect((err != 0) == (mistakes > 0));
	return 0;
}
