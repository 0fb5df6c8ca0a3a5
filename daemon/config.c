/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config_keys.h"
#include "daemon/ini.h"

struct reading {
	struct config *config;
	void (*mistake)(void *context, const struct fault *fault);
	void *context;
	int err;                              /* of the first mistake */
	const struct config_section *section; /* in which assignments are */
	void *to;                             /* its struct */
};

static void hear_mistake(void *context, const struct fault *fault)
{
	struct reading *r = context;

	r->err = r->err ? r->err : fault->err;
	r->mistake(r->context, fault);
}

/* A mistake found after reading. */
__attribute__((format(printf, 4, 5))) static void complain(struct reading *r, const struct config_place *place,
                                                           const char *hint, const char *why, ...)
{
	struct fault fault;
	char text[256];
	va_list args;

	va_start(args, why);
	vsnprintf(text, sizeof(text), why, args);
	va_end(args);
	fault_set(&fault, -EINVAL, hint, "%s:%u: %s", place->file, place->line, text);
	hear_mistake(r, &fault);
}

static int no_memory(struct fault *fault)
{
	return fault_set(fault, -ENOMEM, "", "%s", strerror(ENOMEM));
}

static const char *file_in_hand(const struct reading *r)
{
	return r->config->files[r->config->file_count - 1];
}

/* Opened again by a later file, which may change it; twice in one file it is a mistake. */
static int open_again(const struct reading *r, const struct ini_entry *head, struct config_place *place,
                      struct fault *fault)
{
	char hint[64];

	if (place->file == file_in_hand(r)) {
		snprintf(hint, sizeof(hint), "the first is in line %u", place->line);
		return fault_set(fault, -EEXIST, hint, "%s %s: twice in this file", head->section, head->name);
	}
	*place = (struct config_place){.file = file_in_hand(r), .line = head->line};
	return 0;
}

/* Adds one element of `bytes`, all zero, to an array. NULL: *fault is filled. */
static void *grow(void *array, size_t *count, size_t max, size_t bytes, const char *what, struct fault *fault)
{
	char *more;

	if (*count == max) {
		fault_set(fault, -E2BIG, "", "more than %zu %s", max, what);
		return NULL;
	}
	more = reallocarray(array, *count + 1, bytes);
	if (!more) {
		no_memory(fault);
		return NULL;
	}
	memset(more + *count * bytes, 0, bytes);
	++*count;
	return more;
}

static int open_rule(struct reading *r, const struct ini_entry *head, struct fault *fault)
{
	struct config *c = r->config;
	struct config_rule *rules;

	for (size_t i = 0; i < c->rule_count; i++)
		if (strcmp(c->rules[i].name, head->name) == 0) {
			r->to = &c->rules[i];
			return open_again(r, head, &c->rules[i].place, fault);
		}
	rules = grow(c->rules, &c->rule_count, CONFIG_RULES_MAX, sizeof(*rules), "rules", fault);
	if (!rules)
		return fault->err;
	c->rules = rules;
	r->to = rules = &rules[c->rule_count - 1];
	rules->name = strdup(head->name);
	rules->place = (struct config_place){.file = file_in_hand(r), .line = head->line};
	return rules->name && config_set_defaults(r->section, rules) == 0 ? 0 : no_memory(fault);
}

static int open_trigger(struct reading *r, const struct ini_entry *head, struct fault *fault)
{
	struct config *c = r->config;
	struct config_trigger *triggers;

	for (size_t i = 0; i < c->trigger_count; i++)
		if (strcmp(c->triggers[i].name, head->name) == 0) {
			r->to = &c->triggers[i];
			return open_again(r, head, &c->triggers[i].place, fault);
		}
	triggers = grow(c->triggers, &c->trigger_count, CONFIG_TRIGGERS_MAX, sizeof(*triggers), "triggers", fault);
	if (!triggers)
		return fault->err;
	c->triggers = triggers;
	r->to = triggers = &triggers[c->trigger_count - 1];
	triggers->name = strdup(head->name);
	triggers->place = (struct config_place){.file = file_in_hand(r), .line = head->line};
	return triggers->name && config_set_defaults(r->section, triggers) == 0 ? 0 : no_memory(fault);
}

static int hear_section(void *context, const struct ini_entry *head, struct fault *fault)
{
	struct reading *r = context;
	int err;

	r->section = config_find_section(head->section, fault);
	if (!r->section)
		return fault->err;
	if (!r->section->named) {
		r->to = (char *)r->config + r->section->off;
		return *head->name ? fault_set(fault, -EINVAL, "", "[%s] takes no name", head->section) : 0;
	}
	err = config_check_name(head->section, head->name, "-_.", fault);
	if (err)
		return err;
	return r->section == &config_sections[SECTION_RULE] ? open_rule(r, head, fault) : open_trigger(r, head, fault);
}

static int hear_entry(void *context, const struct ini_entry *entry, struct fault *fault)
{
	struct reading *r = context;
	int err = config_assign(r->section, r->to, entry->key, entry->value, fault);

	if (!err && r->section == &config_sections[SECTION_TRIGGER] && strcmp(entry->key, "rule") == 0)
		((struct config_trigger *)r->to)->rules_place =
			(struct config_place){.file = file_in_hand(r), .line = entry->line};
	return err;
}

/* A mistake that has no line. */
static void complain_file(struct reading *r, const char *path, int err)
{
	struct fault fault;

	fault_set(&fault, err, "", "%s: %s", path, strerror(-err));
	hear_mistake(r, &fault);
}

static void read_file(struct reading *r, const char *path)
{
	const struct ini_handler handler = {
		.context = r, .entry = hear_entry, .section = hear_section, .mistake = hear_mistake};
	struct config *c = r->config;
	char **files =
		c->file_count < CONFIG_FILES_MAX ? reallocarray(c->files, c->file_count + 1, sizeof(*files)) : NULL;
	char *copy = strdup(path);

	if (files)
		c->files = files;
	if (!files || !copy) {
		complain_file(r, path, c->file_count == CONFIG_FILES_MAX ? -E2BIG : -ENOMEM);
		free(copy);
		return;
	}
	c->files[c->file_count++] = copy;
	ini_read_all(path, &handler, NULL);
}

static int is_drop_in(const struct dirent *entry)
{
	size_t bytes = strlen(entry->d_name);

	return bytes > 5 && entry->d_name[0] != '.' && strcmp(entry->d_name + bytes - 5, ".conf") == 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void read_drop_ins(struct reading *r, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct dirent **entries = NULL;
	char *folder = NULL;
	int count;

	if (asprintf(&folder, "%.*sconf.d", slash ? (int)(slash + 1 - path) : 0, path) < 0) {
		complain_file(r, path, -ENOMEM);
		return;
	}
	count = scandir(folder, &entries, is_drop_in, by_bytes);
	if (count < 0 && errno != ENOENT)
		complain_file(r, folder, -errno);
	for (int i = 0; i < count; i++) {
		char *file;

		if (asprintf(&file, "%s/%s", folder, entries[i]->d_name) < 0) {
			complain_file(r, folder, -ENOMEM);
		} else {
			read_file(r, file);
			free(file);
		}
		free(entries[i]);
	}
	free(entries);
	free(folder);
}

static bool takes_all(const struct config_rule *rule)
{
	return rule->command.count + rule->executable.count + rule->unit.count + rule->cgroup.count +
	               rule->container.count + rule->users.count + rule->versions.count ==
	       0;
}

/* The service's rate and mode where a rule says none; rules that cannot act. */
static void settle_rules(struct reading *r)
{
	struct config *c = r->config;
	const struct config_rule *all = NULL;
	size_t included = 0;

	for (size_t i = 0; i < c->rule_count; i++) {
		struct config_rule *rule = &c->rules[i];

		included += rule->action == RULE_INCLUDE;
		rule->interval_ns = rule->interval_ns ? rule->interval_ns : c->service.interval_ns;
		rule->mode = rule->given_mode ? (enum sample_mode)(rule->given_mode - 1) : c->service.mode;
		if (all)
			complain(r, &rule->place, "the first rule that matches decides",
			         "rule %s: never reached, rule %s takes all", rule->name, all->name);
		else if (takes_all(rule))
			all = rule;
		for (size_t j = 0; j < rule->command.count; j++)
			if (rule->command.items[j][0] == '-')
				complain(r, &rule->place, "a pattern that holds blanks is put in double quotes",
				         "rule %s: no command line begins as command %.64s does", rule->name,
				         rule->command.items[j]);
	}
	if (c->rule_count > 0 && included == 0)
		complain(r, &c->rules[c->rule_count - 1].place, "a last rule without conditions takes all others",
		         "no rule includes anything, so nothing would be profiled");
}

static int find_rule(const struct config *c, const char *name, size_t *ret_index)
{
	for (size_t i = 0; i < c->rule_count; i++)
		if (strcmp(c->rules[i].name, name) == 0) {
			*ret_index = i;
			return 0;
		}
	return -ENOENT;
}

static void settle_trigger(struct reading *r, struct config_trigger *t)
{
	for (size_t i = 0; i < t->rule_names.count; i++)
		if (find_rule(r->config, t->rule_names.items[i], &t->rules[i]))
			complain(r, &t->rules_place, "", "trigger %s: there is no rule %.64s", t->name,
			         t->rule_names.items[i]);
	if ((t->cpu > 0) + (t->gil_wait > 0) + (t->function != NULL) != 1)
		complain(r, &t->place, "cpu = 80%, gil-wait = 50%, or function = NAME with share = 20%",
		         "trigger %s: not one of cpu, gil-wait and function", t->name);
	else if ((t->function != NULL) != (t->share > 0))
		complain(r, &t->place, "function = NAME, share = 20%", "trigger %s: function and share belong together",
		         t->name);
	t->kind = t->function ? TRIGGER_FUNCTION : t->gil_wait > 0 ? TRIGGER_GIL_WAIT : TRIGGER_CPU;
	t->above = t->function ? t->share : t->gil_wait > 0 ? t->gil_wait : t->cpu;
}

/* Dumps and spool within the budget: where they are more than that, both shrink alike. */
static void settle_disk(struct config *c)
{
	uint64_t *spool_bytes = &c->push.spool_bytes;
	double asked = (double)c->dump.keep_bytes + (c->push.spool ? (double)*spool_bytes : 0);
	double part = (double)c->budget.disk_bytes / asked;

	if (part >= 1)
		return;
	c->dump.keep_bytes = (uint64_t)((double)c->dump.keep_bytes * part);
	*spool_bytes = (uint64_t)((double)*spool_bytes * part);
}

/* One rule that takes all, where there is none. */
static int add_rule(struct config *c)
{
	struct config_rule *rule = calloc(1, sizeof(*rule));

	if (!rule)
		return -ENOMEM;
	c->rules = rule;
	c->rule_count = 1;
	*rule = (struct config_rule){
		.name = strdup("all"), .interval_ns = c->service.interval_ns, .mode = c->service.mode};
	return rule->name ? 0 : -ENOMEM;
}

static void settle(struct reading *r)
{
	struct config *c = r->config;

	settle_rules(r);
	for (size_t i = 0; i < c->trigger_count; i++)
		settle_trigger(r, &c->triggers[i]);
	settle_disk(c);
	if (c->dump.formats.count == 0)
		c->dump.formats.items[c->dump.formats.count++] = format_by_name("flamegraph");
	if (c->rule_count == 0 && add_rule(c))
		complain_file(r, "rules", -ENOMEM);
}

static struct config *config_new(void)
{
	struct config *c = calloc(1, sizeof(*c));

	for (size_t i = 0; c && i < SECTION_COUNT; i++)
		if (!config_sections[i].named &&
		    config_set_defaults(&config_sections[i], (char *)c + config_sections[i].off)) {
			config_free(c);
			return NULL;
		}
	return c;
}

int config_read(struct config **ret_config, const char *path, void (*mistake)(void *context, const struct fault *fault),
                void *context)
{
	struct reading r = {.config = config_new(), .mistake = mistake, .context = context};
	const char *main_file = path ? path : CONFIG_PATH;

	if (!r.config) {
		complain_file(&r, main_file, -ENOMEM);
		return r.err;
	}
	if (path || access(main_file, F_OK) == 0 || errno != ENOENT)
		read_file(&r, main_file);
	read_drop_ins(&r, main_file);
	settle(&r);
	if (r.err) {
		config_free(r.config);
		return r.err;
	}
	*ret_config = r.config;
	return 0;
}

void config_free(struct config *config)
{
	if (!config)
		return;
	for (size_t i = 0; i < SECTION_COUNT; i++)
		if (!config_sections[i].named)
			config_section_release(&config_sections[i], (char *)config + config_sections[i].off);
	for (size_t i = 0; i < config->rule_count; i++) {
		config_section_release(&config_sections[SECTION_RULE], &config->rules[i]);
		free(config->rules[i].name);
	}
	for (size_t i = 0; i < config->trigger_count; i++) {
		config_section_release(&config_sections[SECTION_TRIGGER], &config->triggers[i]);
		free(config->triggers[i].name);
	}
	for (size_t i = 0; i < config->file_count; i++)
		free(config->files[i]);
	free(config->files);
	free(config->rules);
	free(config->triggers);
	free(config);
}
