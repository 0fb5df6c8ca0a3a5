/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/rules.h"

#include <fnmatch.h>
#include <stdbool.h>

/* One of the globs matches, or there are none. In them * and ? stand for any character, / and a leading dot too. What is not known or not there, as
 * the container of a process that is in none, is matched by none, * included. */
static bool globs_match(const struct config_list *globs, const char *text)
{
	for (size_t i = 0; i < globs->count && *text; i++)
		if (fnmatch(globs->items[i], text, 0) == 0)
			return true;
	return globs->count == 0;
}

static bool user_matches(const struct config_users *users, uid_t uid)
{
	for (size_t i = 0; i < users->count; i++)
		if (users->items[i] == uid)
			return true;
	return users->count == 0;
}

static bool version_matches(const struct config_versions *ranges, uint32_t found)
{
	for (size_t i = 0; i < ranges->count; i++)
		if (ranges->items[i].from <= found && found <= ranges->items[i].to)
			return true;
	return ranges->count == 0;
}

/* All but the version; what is cheap to compare comes first. */
static bool matches(const struct config_rule *rule, const struct candidate *c)
{
	return user_matches(&rule->users, c->uid) && globs_match(&rule->unit, c->unit) &&
	       globs_match(&rule->container, c->container) && globs_match(&rule->cgroup, c->cgroup) &&
	       globs_match(&rule->executable, c->executable) && globs_match(&rule->command, c->command_line);
}

int rules_match(const struct config *config, const struct candidate *candidate)
{
	for (size_t i = 0; i < config->rule_count; i++) {
		const struct config_rule *rule = &config->rules[i];

		if (!matches(rule, candidate))
			continue;
		if (rule->versions.count > 0 && candidate->version == 0)
			return RULES_NEEDS_VERSION;
		if (version_matches(&rule->versions, candidate->version))
			return rule->action == RULE_EXCLUDE ? RULES_EXCLUDED : (int)i;
	}
	return RULES_NONE;
}
