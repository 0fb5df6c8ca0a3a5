/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config_values.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/dump_name.h"
#include "daemon/parse.h"

static int refuse(const struct config_key *key, const char *value, const char *what, struct fault *fault)
{
	const char *hint = key->hint ? key->hint : "";

	if (strchr(value, '#') || strchr(value, ';'))
		hint = "comments have lines of their own";
	return fault_set(fault, -EINVAL, hint, "%s = %.80s: %s", key->name, value, what);
}

static int keep_number(uint64_t *into, const struct config_key *key, const char *value, uint64_t number,
                       struct fault *fault)
{
	if ((double)number < key->min || (key->max > 0 && (double)number > key->max))
		return refuse(key, value, "out of range", fault);
	*into = number;
	return 0;
}

int config_read_rate(void *interval_ns, const struct config_key *key, const char *value, struct fault *fault)
{
	uint64_t ns;

	if (parse_rate(value, &ns))
		return refuse(key, value, "not a rate", fault);
	return keep_number(interval_ns, key, value, ns, fault);
}

int config_read_duration(void *ns, const struct config_key *key, const char *value, struct fault *fault)
{
	uint64_t number;

	if (parse_time(value, &number))
		return refuse(key, value, "not a duration", fault);
	return keep_number(ns, key, value, number, fault);
}

int config_read_bytes(void *bytes, const struct config_key *key, const char *value, struct fault *fault)
{
	uint64_t number;

	if (parse_bytes(value, &number))
		return refuse(key, value, "not a size", fault);
	return keep_number(bytes, key, value, number, fault);
}

int config_read_count(void *count, const struct config_key *key, const char *value, struct fault *fault)
{
	uint64_t number;

	if (parse_u64(value, &number))
		return refuse(key, value, "not a number", fault);
	return keep_number(count, key, value, number, fault);
}

int config_read_share(void *share, const struct config_key *key, const char *value, struct fault *fault)
{
	double number;

	if (parse_share(value, &number))
		return refuse(key, value, "not a percentage", fault);
	if (number < key->min || number > key->max)
		return refuse(key, value, "out of range", fault);
	*(double *)share = number;
	return 0;
}

int config_read_bool(void *yes, const struct config_key *key, const char *value, struct fault *fault)
{
	static const char *const words[][2] = {{"no", "yes"}, {"false", "true"}, {"off", "on"}, {"0", "1"}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		for (int is = 0; is < 2; is++)
			if (strcasecmp(value, words[i][is]) == 0) {
				*(bool *)yes = is;
				return 0;
			}
	return refuse(&(struct config_key){.name = key->name, .hint = "yes or no"}, value, "neither", fault);
}

int config_read_word(void *index, const struct config_key *key, const char *value, struct fault *fault)
{
	for (unsigned i = 0; key->words[i]; i++)
		if (strcmp(value, key->words[i]) == 0) {
			unsigned number = i + (unsigned)key->min;

			memcpy(index, &number, sizeof(number)); /* enums without negative values are unsigned */
			return 0;
		}
	return refuse(key, value, "there is no such", fault);
}

int config_read_text(void *text, const struct config_key *key, const char *value, struct fault *fault)
{
	char **into = text, *copy = strdup(value);

	if (!copy)
		return fault_set(fault, -ENOMEM, "", "%s: %s", key->name, strerror(ENOMEM));
	free(*into);
	*into = copy;
	return 0;
}

int config_read_directory(void *text, const struct config_key *key, const char *value, struct fault *fault)
{
	if (value[0] != '/' || strlen(value) >= PATH_MAX)
		return refuse(key, value, "not an absolute path", fault);
	return config_read_text(text, key, value, fault);
}

int config_read_pattern(void *text, const struct config_key *key, const char *value, struct fault *fault)
{
	int err = dump_name_check(value, fault);

	return err ? err : config_read_text(text, key, value, fault);
}

/* The next word of *text, which is moved on, into word. 1: there is one; 0: there is none; -EINVAL with *fault filled. */
static int next_word(const char **text, const struct config_key *key, char *word, size_t room, struct fault *fault)
{
	const char *at = *text + strspn(*text, " \t");
	bool quoted = *at == '"';
	size_t bytes;

	if (!*at)
		return 0;
	at += quoted;
	bytes = strcspn(at, quoted ? "\"" : " \t");
	if (quoted && (at[bytes] != '"' || (at[bytes + 1] && !strchr(" \t", at[bytes + 1]))))
		return refuse(key, *text, "a quote that does not end a word", fault);
	if (bytes == 0 || bytes >= room)
		return refuse(key, *text, bytes ? "a word that is too long" : "an empty word", fault);
	memcpy(word, at, bytes);
	word[bytes] = '\0';
	*text = at + bytes + quoted;
	return 1;
}

static int is_full(size_t count, size_t max, const struct config_key *key, struct fault *fault)
{
	return count < max ? 0 : fault_set(fault, -E2BIG, "", "%s: more than %zu", key->name, max);
}

int config_read_list(void *list, const struct config_key *key, const char *value, struct fault *fault)
{
	struct config_list *l = list;
	char word[1024];
	int got;

	while ((got = next_word(&value, key, word, sizeof(word), fault)) > 0) {
		char **more = reallocarray(l->items, l->count + 1, sizeof(*more)), *copy = strdup(word);

		if (more)
			l->items = more;
		got = is_full(l->count, CONFIG_LIST_MAX, key, fault);
		if (!got && (!more || !copy))
			got = fault_set(fault, -ENOMEM, "", "%s: %s", key->name, strerror(ENOMEM));
		if (got) {
			free(copy);
			break;
		}
		l->items[l->count++] = copy;
	}
	return got;
}

void config_list_release(struct config_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct config_list){0};
}

int config_read_formats(void *formats, const struct config_key *key, const char *value, struct fault *fault)
{
	struct config_formats *list = formats;
	char word[64];
	int got;

	while ((got = next_word(&value, key, word, sizeof(word), fault)) > 0) {
		const struct format *format = format_by_name(word);

		if (!format || !format_is_written(format))
			return fault_set(fault, -EINVAL, format_names(), "%s = %s: no such format", key->name, word);
		if (format->needs == NEEDS_RUNS)
			return fault_set(fault, -EINVAL, "such as flamegraph, pprof or collapsed",
			                 "%s = %s: it shows the order of time, which the history does not keep",
			                 key->name, word);
		got = is_full(list->count, CONFIG_FORMATS_MAX, key, fault);
		if (got)
			break;
		list->items[list->count++] = format;
	}
	return got;
}

/* A user of this host by name; NULL: there is none. The portable program knows those of /etc/passwd alone: other sources of names are libraries of the
 * host's own C library, which it cannot load. */
static const struct passwd *user_named(const char *name)
{
#ifdef SAMPLED_STATIC
	FILE *file = fopen("/etc/passwd", "re");
	const struct passwd *entry;

	if (!file)
		return NULL;
	while ((entry = fgetpwent(file)) && strcmp(entry->pw_name, name) != 0)
		;
	fclose(file);
	return entry;
#else
	return getpwnam(name);
#endif
}

int config_read_users(void *users, const struct config_key *key, const char *value, struct fault *fault)
{
	struct config_users *list = users;
	char word[256];
	int got;

	while ((got = next_word(&value, key, word, sizeof(word), fault)) > 0) {
		const struct passwd *entry;
		uint64_t number = 0;
		bool is_number = parse_u64(word, &number) == 0 && number < UINT32_MAX;

		entry = is_number ? NULL : user_named(word);
		if (!is_number && !entry)
			return fault_set(fault, -EINVAL, "a number may be one that this host does not know",
			                 "%s = %s: no such user", key->name, word);
		got = is_full(list->count, CONFIG_LIST_MAX, key, fault);
		if (got)
			break;
		list->items[list->count++] = is_number ? (uid_t)number : entry->pw_uid;
	}
	return got;
}

/* "3.11", at the start of text; what is behind it. NULL: it is none. */
static const char *read_version(const char *text, uint32_t *ret_version)
{
	unsigned long numbers[2] = {0};

	for (int i = 0; i < 2; i++) {
		char *end = NULL;

		if (!isdigit((unsigned char)*text))
			return NULL;
		numbers[i] = strtoul(text, &end, 10);
		if (numbers[i] > 255 || (i == 0 && *end != '.'))
			return NULL;
		text = end + (i == 0);
	}
	*ret_version = (uint32_t)(numbers[0] << 8 | numbers[1]);
	return text;
}

int config_read_versions(void *versions, const struct config_key *key, const char *value, struct fault *fault)
{
	struct config_versions *list = versions;
	char word[32] = "";
	int got;

	while ((got = next_word(&value, key, word, sizeof(word), fault)) > 0) {
		uint32_t from = 0, to;
		const char *rest = read_version(word, &from);

		to = from;
		if (rest && *rest == '-')
			rest = read_version(rest + 1, &to);
		if (!rest || *rest || to < from)
			return refuse(key, word, "not a version", fault);
		got = is_full(list->count, CONFIG_LIST_MAX, key, fault);
		if (got)
			break;
		list->items[list->count].from = from;
		list->items[list->count++].to = to;
	}
	return got;
}

int config_check_name(const char *what, const char *name, const char *more, struct fault *fault)
{
	size_t bytes = strlen(name);

	for (size_t i = 0; i < bytes; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr(more, name[i]))
			return fault_set(fault, -EINVAL, "letters and digits of ASCII; also some of -_.",
			                 "%s %.64s: not a name", what, name);
	if (bytes == 0 || bytes > CONFIG_NAME_MAX_BYTES)
		return fault_set(fault, -EINVAL, "", "%s: %s", what,
		                 bytes ? "a name that is too long" : "without a name");
	return 0;
}
