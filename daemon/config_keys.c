/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config_keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/dump_name.h"
#include "daemon/nearest.h"
#include "sampler/sampler.h"

#define AT(of, field)     .off = offsetof(struct of, field), .bytes = sizeof(((struct of *)NULL)->field)
#define MIB               1048576.0
#define S                 1e9
#define DAY               (86400 * S)
#define SLICE_DEFAULT_NS  (10 * NS_PER_S)
#define LABEL_PREFIX      "label."
#define LABEL_PREFIX_SIZE (sizeof(LABEL_PREFIX) - 1)

enum { LABEL_VALUE_MAX_BYTES = 256 };

static const char *const modes[] = {"wall", "cpu", "gil", "exception", NULL};
static const char *const command_lines[] = {
	[COMMAND_LINE_FULL] = "full", [COMMAND_LINE_PROGRAM] = "program", NULL};
static const char *const pers[] = {"target", "rule", NULL};
static const char *const actions[] = {"include", "exclude", NULL};

static const char mode_hint[] = "wall, cpu, gil or exception";
static const char rate_hint[] = "samples a second: 1 to 1000, such as 49";
static const char share_hint[] = "such as 50%; above 0% and at most 100%";

static const struct config_key service_keys[] = {
	{"rate", config_read_rate, AT(config_service, interval_ns), .min = S / CONFIG_RATE_MAX_HZ, .max = S,
         .hint = rate_hint},
	{"mode", config_read_word, AT(config_service, mode), .words = modes, .hint = mode_hint},
	{"jitter", config_read_bool, AT(config_service, jitter)},
	{"gc", config_read_bool, AT(config_service, gc)},
	{"command-line", config_read_word, AT(config_service, command_line), .words = command_lines,
         .hint = "program or full"},
	{.name = NULL},
};
static const struct config_service service_defaults = {
	.interval_ns = NS_PER_S / 49,
	.mode = MODE_WALL,
	.jitter = true,
	.gc = true,
	.command_line = COMMAND_LINE_PROGRAM,
};

static const struct config_key budget_keys[] = {
	{"cpu", config_read_share, AT(config_budget, cpu), .min = 0.0005, .max = 1,
         .hint = "of one core: 0.05% to 100%"},
	{"visits", config_read_share, AT(config_budget, visits), .max = 0.5,
         .hint = "of each CPU: 0% to 50%"},
	{"memory", config_read_bytes, AT(config_budget, memory_bytes), .min = 4 * MIB, .hint = "4M or more"},
	{"disk", config_read_bytes, AT(config_budget, disk_bytes), .min = MIB, .hint = "1M or more"},
	{.name = NULL},
};
static const struct config_budget budget_defaults = {
	.cpu = 0.01, .visits = VISIT_BUDGET_PPM / 1e6, .memory_bytes = UINT64_C(64) << 20, .disk_bytes = UINT64_C(1) << 30};

static const struct config_key history_keys[] = {
	{"slice", config_read_duration, AT(config_history, slice_ns), .min = S, .max = 3600 * S, .hint = "1s to 1h"},
	{.name = NULL},
};
static const struct config_history history_defaults = {.slice_ns = SLICE_DEFAULT_NS};

static const struct config_key dump_keys[] = {
	{"directory", config_read_directory, AT(config_dump, directory), CONFIG_TEXT},
	{"format", config_read_formats, AT(config_dump, formats)},
	{"name", config_read_pattern, AT(config_dump, name), CONFIG_TEXT},
	{"keep-count", config_read_count, AT(config_dump, keep_count), .max = 1e6,
         .hint = "up to 1000000; 0: no such bound"},
	{"keep-size", config_read_bytes, AT(config_dump, keep_bytes), .min = MIB, .hint = "1M or more"},
	{"keep-age", config_read_duration, AT(config_dump, keep_age_ns),
         .hint = "such as 12h or 30d; 0: no such bound"},
	{"last", config_read_duration, AT(config_dump, last_ns), .hint = "such as 5m; 0: all that there is"},
	{.name = NULL},
};
static const struct config_dump dump_defaults = {.directory = (char *)"/var/lib/sampled",
                                                 .name = (char *)DUMP_NAME_DEFAULT,
                                                 .keep_count = 100,
                                                 .keep_bytes = UINT64_C(500) << 20,
                                                 .keep_age_ns = 30 * 86400 * NS_PER_S};

static const struct config_key push_keys[] = {
	{"spool", config_read_directory, AT(config_push, spool), CONFIG_TEXT},
	{"interval", config_read_duration, AT(config_push, interval_ns), .min = S, .max = DAY, .hint = "1s to 1d"},
	{"spool-size", config_read_bytes, AT(config_push, spool_bytes), .min = MIB, .hint = "1M or more"},
	{"per", config_read_word, AT(config_push, per), .words = pers, .hint = "target or rule"},
	{.name = NULL},
};
static const struct config_push push_defaults = {.interval_ns = 60 * NS_PER_S, .spool_bytes = UINT64_C(256) << 20};

static const struct config_key rule_keys[] = {
	{"command", config_read_list, AT(config_rule, command), CONFIG_LIST},
	{"executable", config_read_list, AT(config_rule, executable), CONFIG_LIST},
	{"user", config_read_users, AT(config_rule, users)},
	{"unit", config_read_list, AT(config_rule, unit), CONFIG_LIST},
	{"cgroup", config_read_list, AT(config_rule, cgroup), CONFIG_LIST},
	{"container", config_read_list, AT(config_rule, container), CONFIG_LIST},
	{"version", config_read_versions, AT(config_rule, versions), .hint = "such as 3.11 or 3.8-3.12"},
	{"action", config_read_word, AT(config_rule, action), .words = actions, .hint = "include or exclude"},
	{"rate", config_read_rate, AT(config_rule, interval_ns), .min = S / CONFIG_RATE_MAX_HZ, .max = S,
         .hint = rate_hint},
	{"mode", config_read_word, AT(config_rule, given_mode), .min = 1, .words = modes, .hint = mode_hint},
	{.name = NULL},
};
static const struct config_rule rule_defaults = {.action = RULE_INCLUDE};

static const struct config_key trigger_keys[] = {
	{"rule", config_read_list, AT(config_trigger, rule_names), CONFIG_LIST},
	{"cpu", config_read_share, AT(config_trigger, cpu), .min = 0.001, .max = 10000,
         .hint = "of a core: 0.1% or more, such as 80%"},
	{"gil-wait", config_read_share, AT(config_trigger, gil_wait), .min = 0.001, .max = 1, .hint = share_hint},
	{"function", config_read_text, AT(config_trigger, function), CONFIG_TEXT},
	{"share", config_read_share, AT(config_trigger, share), .min = 0.001, .max = 1, .hint = share_hint},
	{"for", config_read_duration, AT(config_trigger, for_ns), .min = S, .max = DAY, .hint = "1s to 1d"},
	{"every", config_read_duration, AT(config_trigger, every_ns), .min = S, .hint = "1s or more"},
	{"last", config_read_duration, AT(config_trigger, last_ns), .hint = "such as 5m; 0: all that there is"},
	{.name = NULL},
};
static const struct config_trigger trigger_defaults = {
	.for_ns = 30 * NS_PER_S, .every_ns = 600 * NS_PER_S, .last_ns = 60 * NS_PER_S};

const struct config_section config_sections[SECTION_COUNT] = {
	[SECTION_SERVICE] = {"service", .off = offsetof(struct config, service), .defaults = &service_defaults,
                             .keys = service_keys},
	[SECTION_BUDGET] = {"budget", .off = offsetof(struct config, budget), .defaults = &budget_defaults,
                            .keys = budget_keys},
	[SECTION_HISTORY] = {"history", .off = offsetof(struct config, history), .defaults = &history_defaults,
                             .keys = history_keys},
	[SECTION_DUMP] = {"dump", .off = offsetof(struct config, dump), .defaults = &dump_defaults, .keys = dump_keys},
	[SECTION_PUSH] = {"push", .off = offsetof(struct config, push), .defaults = &push_defaults, .keys = push_keys},
	[SECTION_RULE] = {"rule", .named = true, .defaults = &rule_defaults, .keys = rule_keys, .labels = true},
	[SECTION_TRIGGER] = {"trigger", .named = true, .defaults = &trigger_defaults, .keys = trigger_keys},
};

const struct config_section *config_find_section(const char *name, struct fault *fault)
{
	struct nearest near = {.word = name};
	char hint[64];

	for (size_t i = 0; i < SECTION_COUNT; i++) {
		if (strcmp(name, config_sections[i].name) == 0)
			return &config_sections[i];
		nearest_offer(&near, config_sections[i].name);
	}
	nearest_hint(&near, "", "service, budget, history, dump, push, rule, trigger", hint, sizeof(hint));
	fault_set(fault, -EINVAL, hint, "[%.64s]: no such section", name);
	return NULL;
}

static int unknown_key(const struct config_section *section, const char *name, struct fault *fault)
{
	struct nearest near = {.word = name};
	char hint[256], all[256] = "";

	for (const struct config_key *key = section->keys; key->name; key++) {
		size_t used = strlen(all);

		snprintf(all + used, sizeof(all) - used, "%s%s", used ? ", " : "", key->name);
		nearest_offer(&near, key->name);
	}
	nearest_hint(&near, "", all, hint, sizeof(hint));
	return fault_set(fault, -EINVAL, hint, "[%s] %.64s: no such key", section->name, name);
}

/* label.KEY of a rule; without a value it goes. */
static int assign_label(struct config_rule *rule, const char *name, const char *value, struct fault *fault)
{
	struct config_label *label = rule->labels, *end = rule->labels + rule->label_count;
	int err = config_check_name("label", name, "_", fault);

	if (err)
		return err;
	if (strncmp(name, "__", 2) == 0 || (*name >= '0' && *name <= '9'))
		return fault_set(fault, -EINVAL, "a letter comes first", "label %s: servers take no such name", name);
	if (strlen(value) > LABEL_VALUE_MAX_BYTES)
		return fault_set(fault, -EINVAL, "", "label %s: more than %d bytes", name, LABEL_VALUE_MAX_BYTES);
	while (label < end && strcmp(label->key, name) != 0)
		label++;
	if (label == rule->labels + CONFIG_LIST_MAX)
		return fault_set(fault, -E2BIG, "", "label %s: more than %d labels", name, CONFIG_LIST_MAX);
	if (label < end) {
		free(label->key);
		free(label->value);
		*label = *--end;
		rule->label_count--;
	}
	if (!*value)
		return 0;
	*end = (struct config_label){.key = strdup(name), .value = strdup(value)};
	rule->label_count++; /* released whatever they are */
	return end->key && end->value ? 0 : fault_set(fault, -ENOMEM, "", "%s", strerror(ENOMEM));
}

static int reset(const struct config_section *section, const struct config_key *key, void *to)
{
	const char *defaults = (const char *)section->defaults + key->off;
	const char *text_default;
	char **text;

	to = (char *)to + key->off;
	switch (key->kind) {
	case CONFIG_LIST:
		config_list_release(to);
		return 0;
	case CONFIG_TEXT:
		text = to;
		free(*text);
		*text = NULL;
		memcpy(&text_default, defaults, sizeof(text_default));
		if (text_default)
			*text = strdup(text_default);
		return text_default && !*text ? -ENOMEM : 0;
	case CONFIG_PLAIN:
		break;
	}
	memcpy(to, defaults, key->bytes);
	return 0;
}

int config_set_defaults(const struct config_section *section, void *to)
{
	int err = 0;

	for (const struct config_key *key = section->keys; key->name && !err; key++)
		err = reset(section, key, to);
	return err;
}

int config_assign(const struct config_section *section, void *to, const char *name, const char *value,
                  struct fault *fault)
{
	const struct config_key *key = section->keys;
	int err;

	if (section->labels && strncmp(name, LABEL_PREFIX, LABEL_PREFIX_SIZE) == 0)
		return assign_label(to, name + LABEL_PREFIX_SIZE, value, fault);
	while (key->name && strcmp(key->name, name) != 0)
		key++;
	if (!key->name)
		return unknown_key(section, name, fault);
	if (*value)
		return key->read((char *)to + key->off, key, value, fault);
	err = reset(section, key, to);
	return err ? fault_set(fault, err, "", "%s: %s", name, strerror(-err)) : 0;
}

void config_section_release(const struct config_section *section, void *of)
{
	for (const struct config_key *key = section->keys; key->name; key++) {
		char *at = (char *)of + key->off;

		if (key->kind == CONFIG_LIST)
			config_list_release((struct config_list *)(void *)at);
		else if (key->kind == CONFIG_TEXT)
			free(*(char **)(void *)at);
	}
	if (section->labels) {
		struct config_rule *rule = of;

		for (size_t i = 0; i < rule->label_count; i++) {
			free(rule->labels[i].key);
			free(rule->labels[i].value);
		}
	}
}
