/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/push_config.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/ini.h"
#include "daemon/parse.h"
#include "daemon/push_secret.h"

static const char control_path[] = "/run/sampled/control.sock";

static int no_memory(struct fault *fault)
{
	return fault_set(fault, -ENOMEM, "", "out of memory");
}

int push_config_init(struct push_config *ret_config, struct fault *fault)
{
	struct push_config c = {.spool_bytes = PUSH_SPOOL_BYTES, .refused_bytes = PUSH_REFUSED_BYTES};

	c.spool = strdup(PUSH_SPOOL_PATH);
	c.control = strdup(control_path);
	if (!c.spool || !c.control) {
		push_config_release(&c);
		return no_memory(fault);
	}
	*ret_config = c;
	return 0;
}

static void release_destination(struct push_destination *d)
{
	char *texts[] = {d->name, d->url, d->ca_file, d->bearer_file, d->user, d->password_file, d->tenant, d->proxy};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		free(texts[i]);
	for (size_t i = 0; i < d->label_count; i++) {
		free((char *)(uintptr_t)d->labels[i].name);
		free((char *)(uintptr_t)d->labels[i].value);
	}
}

void push_config_release(struct push_config *config)
{
	for (size_t i = 0; i < config->destination_count; i++)
		release_destination(&config->destinations[i]);
	free(config->listen);
	free(config->control);
	free(config->spool);
	*config = (struct push_config){0};
}

int push_check_url(const char *url, struct fault *fault)
{
	static const char hint[] = "http://HOST:PORT or https://HOST";
	size_t scheme = strncasecmp(url, "https://", 8) == 0 ? 8 : strncasecmp(url, "http://", 7) == 0 ? 7 : 0;
	size_t host = scheme ? strcspn(url + scheme, "/?#") : 0;

	if (host == 0)
		return fault_set(fault, -EINVAL, hint, "%s: not an http or https address", url);
	for (const char *at = url; *at; at++)
		if ((unsigned char)*at <= ' ' || *at == 0x7f)
			return fault_set(fault, -EINVAL, hint, "the address has a blank or control character in it");
	if (memchr(url + scheme, '@', host)) /* and it is not repeated: a password may be in it */
		return fault_set(fault, -EINVAL, "user, password-file and bearer-file in a file of the configuration",
		                 "an address takes no user and no password");
	if (strpbrk(url, "?#"))
		return fault_set(fault, -EINVAL, hint, "%s: an address takes no query", url);
	return 0;
}

/* --- values --- */

/* Into a char *: an empty one takes it back. */
static int take_text(char **to, const char *value, struct fault *fault)
{
	char *text = *value ? strdup(value) : NULL;

	if (*value && !text)
		return no_memory(fault);
	free(*to);
	*to = text;
	return 0;
}

static int take_path(char **to, const char *value, struct fault *fault)
{
	if (*value && *value != '/')
		return fault_set(fault, -EINVAL, "it begins with a slash", "%s: not an absolute path", value);
	return take_text(to, value, fault);
}

/* Whatever stands there is not repeated: it may be the credential itself. */
static int take_secret(char **to, const char *value, struct fault *fault)
{
	if (*value && *value != '/' && (strchr(value, '/') || *value == '.'))
		return fault_set(fault, -EINVAL, "the name of a file in " PUSH_SECRET_FOLDER ", or an absolute path",
		                 "a credential is named by its file");
	return take_text(to, value, fault);
}

/* "256M": bytes, with K, M, G or T for the powers of 1,024. */
static int take_bytes(uint64_t *to, const char *value, struct fault *fault)
{
	static const char units[] = "KMGT";
	char *end;
	unsigned long long number = strtoull(value, &end, 10);
	const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;

	if (!isdigit((unsigned char)*value) || number == 0 || (*end && (!unit || end[1])) ||
	    number > UINT64_MAX >> 1 >> shift)
		return fault_set(fault, -EINVAL, "such as 64M or 1G", "%s: not a size", value);
	*to = (uint64_t)number << shift;
	return 0;
}

/* None are kept where it is "0". */
static int take_refused(uint64_t *to, const char *value, struct fault *fault)
{
	if (strcmp(value, "0") != 0)
		return take_bytes(to, *value ? value : "16M", fault);
	*to = 0;
	return 0;
}

static int take_timeout(uint64_t *to, const char *value, struct fault *fault)
{
	if (*value == '\0') {
		*to = PUSH_TIMEOUT_NS;
		return 0;
	}
	if (parse_duration(value, to))
		return fault_set(fault, -EINVAL, "such as 30s or 2m", "%s: not a time", value);
	return 0;
}

static int take_type(enum push_type *to, const char *value, struct fault *fault)
{
	enum push_type type = push_type_by_name(value);

	if (type == PUSH_TYPES)
		return fault_set(fault, -EINVAL, "pyroscope, pyroscope-push, parca or otlp", "%s: no such type", value);
	*to = type;
	return 0;
}

static bool is_label_name(const char *name)
{
	size_t bytes = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");

	return bytes > 0 && bytes <= 100 && name[bytes] == '\0' && !isdigit((unsigned char)name[0]);
}

/* An empty value says that the profile's own label of this name is not sent. */
static int take_label(struct push_destination *d, const char *name, const char *value, struct fault *fault)
{
	struct label *label = NULL;
	char *text;

	if (!is_label_name(name))
		return fault_set(fault, -EINVAL, "letters, digits, _ and .", "label.%s: not a label's name", name);
	for (size_t i = 0; i < d->label_count; i++)
		if (strcmp(d->labels[i].name, name) == 0)
			label = &d->labels[i];
	if (!label && d->label_count == PUSH_LABELS_MAX)
		return fault_set(fault, -EINVAL, "", "more than %d labels", PUSH_LABELS_MAX);
	text = strdup(value);
	if (!label && text) {
		d->labels[d->label_count].name = strdup(name);
		if (d->labels[d->label_count].name)
			label = &d->labels[d->label_count++];
	}
	if (!text || !label) {
		free(text);
		return no_memory(fault);
	}
	free((char *)(uintptr_t)label->value);
	label->value = text;
	return 0;
}

/* --- sections --- */

static struct push_destination *find_destination(struct push_config *c, const char *name)
{
	struct push_destination *d;

	for (size_t i = 0; i < c->destination_count; i++)
		if (strcmp(c->destinations[i].name, name) == 0)
			return &c->destinations[i];
	if (c->destination_count == PUSH_DESTINATIONS_MAX)
		return NULL;
	d = &c->destinations[c->destination_count];
	*d = (struct push_destination){.type = PUSH_TYPES, .timeout_ns = PUSH_TIMEOUT_NS, .name = strdup(name)};
	if (d->name)
		c->destination_count++;
	return d->name ? d : NULL;
}

/* Names stand in files and metrics. */
static int check_name(const char *name, struct fault *fault)
{
	size_t bytes = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

	if (bytes == 0 || bytes > 64 || name[bytes] != '\0')
		return fault_set(fault, -EINVAL, "[destination NAME], of letters, digits, _, . and -",
		                 "[destination %s]: not a name", name);
	return 0;
}

static int no_key(const struct ini_entry *e, const char *keys, struct fault *fault)
{
	return fault_set(fault, -EINVAL, keys, "[%s] has no key %s", e->section, e->key);
}

static int destination_entry(struct push_config *c, const struct ini_entry *e, struct fault *fault)
{
	int err = check_name(e->name, fault);
	struct push_destination *d = err ? NULL : find_destination(c, e->name);
	const struct {
		const char *key;
		char **text;
		int (*take)(char **to, const char *value, struct fault *fault);
	} texts[] = {
		{"url", d ? &d->url : NULL, take_text},
		{"user", d ? &d->user : NULL, take_text},
		{"tenant", d ? &d->tenant : NULL, take_text},
		{"proxy", d ? &d->proxy : NULL, take_text},
		{"ca-file", d ? &d->ca_file : NULL, take_path},
		{"bearer-file", d ? &d->bearer_file : NULL, take_secret},
		{"password-file", d ? &d->password_file : NULL, take_secret},
	};

	if (!d)
		return err ? err : fault_set(fault, -EINVAL, "", "more than %d destinations", PUSH_DESTINATIONS_MAX);
	if (strcmp(e->key, "type") == 0)
		return take_type(&d->type, e->value, fault);
	if (strcmp(e->key, "timeout") == 0)
		return take_timeout(&d->timeout_ns, e->value, fault);
	if (strncmp(e->key, "label.", 6) == 0)
		return take_label(d, e->key + 6, e->value, fault);
	if (strcmp(e->key, "url") == 0 && *e->value)
		err = push_check_url(e->value, fault);
	for (size_t i = 0; !err && i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(e->key, texts[i].key) == 0)
			return texts[i].take(texts[i].text, e->value, fault);
	return err ? err
	           : no_key(e,
	                    "type, url, ca-file, bearer-file, user, password-file, tenant, proxy, timeout, label.NAME",
	                    fault);
}

static int take_entry(void *context, const struct ini_entry *e, struct fault *fault)
{
	struct push_config *c = context;

	if (strcmp(e->section, "destination") == 0)
		return destination_entry(c, e, fault);
	if (strcmp(e->section, "metrics") == 0) {
		if (strcmp(e->key, "listen") == 0)
			return take_text(&c->listen, e->value, fault);
		if (strcmp(e->key, "control") == 0)
			return take_path(&c->control, e->value, fault);
		return no_key(e, "listen, control", fault);
	}
	if (strcmp(e->section, "spool") == 0) {
		if (strcmp(e->key, "directory") == 0)
			return take_path(&c->spool, *e->value ? e->value : PUSH_SPOOL_PATH, fault);
		if (strcmp(e->key, "size") == 0)
			return take_bytes(&c->spool_bytes, *e->value ? e->value : "256M", fault);
		if (strcmp(e->key, "refused-size") == 0)
			return take_refused(&c->refused_bytes, e->value, fault);
		return no_key(e, "directory, size, refused-size", fault);
	}
	return fault_set(fault, -EINVAL, "[destination NAME], [metrics] and [spool]", "[%s]: no such section",
	                 e->section);
}

int push_config_read(struct push_config *config, const char *path, struct fault *fault)
{
	return ini_read(path, take_entry, config, fault);
}

int push_config_add(struct push_config *config, const char *name, enum push_type type, const char *url,
                    struct fault *fault)
{
	struct push_destination *d;
	int err = push_check_url(url, fault);

	if (err)
		return err;
	d = find_destination(config, name);
	if (!d)
		return no_memory(fault);
	d->type = type;
	return take_text(&d->url, url, fault);
}

int push_config_check(const struct push_config *config, struct fault *fault)
{
	static const char where[] = "in its section [destination NAME]";

	for (size_t i = 0; i < config->destination_count; i++) {
		const struct push_destination *d = &config->destinations[i];

		if (!d->url)
			return fault_set(fault, -EINVAL, where, "destination %s has no url", d->name);
		if (d->type == PUSH_TYPES)
			return fault_set(fault, -EINVAL, where,
			                 "destination %s has no type: pyroscope, pyroscope-push, parca or otlp",
			                 d->name);
		if (!d->user != !d->password_file)
			return fault_set(fault, -EINVAL, where, "destination %s: user and password-file go together",
			                 d->name);
		if (d->user && d->bearer_file)
			return fault_set(fault, -EINVAL, where, "destination %s: either a user or a bearer-file",
			                 d->name);
	}
	if (config->destination_count == 0)
		return fault_set(fault, -EINVAL, "a section [destination NAME] with type and url, or --url",
		                 "there is no destination");
	return 0;
}
