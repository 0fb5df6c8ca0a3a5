/* SPDX-License-Identifier: Apache-2.0 */
/* What may stand behind a key of the configuration, and how it is read. */
#ifndef SAMPLED_DAEMON_CONFIG_VALUES_H
#define SAMPLED_DAEMON_CONFIG_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "daemon/config.h"

/* How a value comes to be empty again, and whose it is. */
enum config_kind {
	CONFIG_PLAIN, /* as it is in the defaults */
	CONFIG_TEXT,  /* char *, owned */
	CONFIG_LIST,  /* struct config_list */
};

struct config_key {
	const char *name;
	/* Reads a value that is not empty. 0, or -errno with *fault filled. */
	int (*read)(void *into, const struct config_key *key, const char *value, struct fault *fault);
	size_t off, bytes; /* of what it is read into, in the section's struct */
	enum config_kind kind;
	double min, max;          /* of numbers, in the unit in which they are kept; max 0: as much as can be said */
	const char *const *words; /* those that there are, up to NULL: the value is its index, with min added */
	const char *hint;         /* of numbers: what there may be */
};

/* Into a uint64_t, between the key's min and max. */
int config_read_rate(void *interval_ns, const struct config_key *key, const char *value, struct fault *fault);
int config_read_duration(void *ns, const struct config_key *key, const char *value, struct fault *fault);
int config_read_bytes(void *bytes, const struct config_key *key, const char *value, struct fault *fault);
int config_read_count(void *count, const struct config_key *key, const char *value, struct fault *fault);
/* Into a double, 1 for 100 %. */
int config_read_share(void *share, const struct config_key *key, const char *value, struct fault *fault);
/* Into a bool. */
int config_read_bool(void *yes, const struct config_key *key, const char *value, struct fault *fault);
/* Into an enum. */
int config_read_word(void *index, const struct config_key *key, const char *value, struct fault *fault);
/* Into a char *. */
int config_read_text(void *text, const struct config_key *key, const char *value, struct fault *fault);
int config_read_directory(void *text, const struct config_key *key, const char *value, struct fault *fault);
int config_read_pattern(void *text, const struct config_key *key, const char *value, struct fault *fault);
/* Words, which are added to what is there: separated by blanks; one that holds blanks is put in double quotes. */
int config_read_list(void *list, const struct config_key *key, const char *value, struct fault *fault);
int config_read_formats(void *formats, const struct config_key *key, const char *value, struct fault *fault);
int config_read_users(void *users, const struct config_key *key, const char *value, struct fault *fault);
int config_read_versions(void *versions, const struct config_key *key, const char *value, struct fault *fault);

void config_list_release(struct config_list *list);
/* A name of a rule, a trigger or a label: letters, digits and some of "-_." as `more` says. */
int config_check_name(const char *what, const char *name, const char *more, struct fault *fault);

#endif
