/* SPDX-License-Identifier: Apache-2.0 */
/* The sections and keys of the configuration, in tables; their defaults. */
#ifndef SAMPLED_DAEMON_CONFIG_KEYS_H
#define SAMPLED_DAEMON_CONFIG_KEYS_H

#include "base/fault.h"
#include "daemon/config.h"
#include "daemon/config_values.h"

struct config_section {
	const char *name;
	bool named; /* [rule NAME]; there may be many */
	size_t off; /* of the section's struct in struct config; named ones are in arrays */
	const void *defaults;
	const struct config_key *keys; /* up to one without a name */
	bool labels;                   /* label.KEY besides */
};

enum {
	SECTION_SERVICE,
	SECTION_BUDGET,
	SECTION_HISTORY,
	SECTION_DUMP,
	SECTION_PUSH,
	SECTION_RULE,
	SECTION_TRIGGER,
	SECTION_COUNT
};
extern const struct config_section config_sections[SECTION_COUNT];

/* NULL, with *fault filled: there is no such section; the hint is what may have been meant. */
const struct config_section *config_find_section(const char *name, struct fault *fault);
/* Fills a section's struct, all zero before. 0 or -ENOMEM. */
int config_set_defaults(const struct config_section *section, void *to);
/* One assignment to a section's struct. 0, or -errno with *fault filled. */
int config_assign(const struct config_section *section, void *to, const char *key, const char *value,
                  struct fault *fault);
/* Releases what a section's struct owns. */
void config_section_release(const struct config_section *section, void *of);

#endif
