/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of the service (sampled.conf(5)): FILE and, sorted by name, conf.d/ *.conf beside it. What is here has been checked: values
 * are in their ranges, users are numbers, triggers' rules exist, there is at least one rule. */
#ifndef SAMPLED_DAEMON_CONFIG_H
#define SAMPLED_DAEMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "aggregator/aggregator.h"
#include "base/fault.h"
#include "exporters/format.h"
#include "sampler/command_line.h"

#define CONFIG_PATH "/etc/sampled/sampled.conf"

enum {
	CONFIG_FILES_MAX = 256,
	CONFIG_RULES_MAX = 256,
	CONFIG_TRIGGERS_MAX = 64,
	CONFIG_LIST_MAX = 64, /* texts in a list */
	CONFIG_FORMATS_MAX = 16,
	CONFIG_NAME_MAX_BYTES = 64, /* of a rule, a trigger, a label */
	CONFIG_RATE_MAX_HZ = 1000,
};

/* Texts, owned. */
struct config_list {
	char **items;
	size_t count;
};

/* Where something stands. */
struct config_place {
	const char *file; /* in config.files */
	unsigned line;
};

struct config_service {
	uint64_t interval_ns; /* between samples of a thread; what rules have that say nothing else, as the mode */
	enum sample_mode mode;
	bool jitter;
	bool gc;
	enum command_line command_line; /* how those of processes are shown, and sent */
};

struct config_budget {
	double visits; /* share of each CPU's time that visits to running threads may take */
	double cpu; /* of one core, 0 to 1 */
	uint64_t memory_bytes;
	uint64_t
		disk_bytes; /* dump.keep_bytes and, where there is one, push.spool_bytes are not more than this together */
};

struct config_history {
	uint64_t slice_ns;
};

struct config_formats {
	const struct format *items[CONFIG_FORMATS_MAX];
	size_t count;
};

struct config_dump {
	char *directory;               /* owned, absolute */
	char *name;                    /* owned; a pattern of dump_name.h */
	struct config_formats formats; /* at least one */
	uint64_t keep_count;           /* 0: as many as there are */
	uint64_t keep_bytes;           /* never 0 */
	uint64_t keep_age_ns;          /* 0: for ever */
	uint64_t last_ns;              /* how much of the history SIGUSR1 dumps; 0: all there is */
};

enum config_per { PER_TARGET, PER_RULE };

struct config_push {
	char *spool; /* owned, absolute; NULL: there is no pushing */
	uint64_t interval_ns;
	uint64_t spool_bytes;
	enum config_per per;
};

struct config_users {
	uid_t items[CONFIG_LIST_MAX];
	size_t count;
};

/* From one minor version of Python to another, both included; each is major << 8 | minor. */
struct config_versions {
	struct {
		uint32_t from, to;
	} items[CONFIG_LIST_MAX];
	size_t count;
};

struct config_label {
	char *key, *value; /* owned */
};

enum config_action { RULE_INCLUDE, RULE_EXCLUDE };

/* Conditions that are empty hold for all; of those that are not, one text of each must hold. */
struct config_rule {
	char *name; /* owned; letters, digits and -_. */
	struct config_place place;
	struct config_list command, executable, unit, cgroup, container; /* globs of fnmatch() */
	struct config_users users;
	struct config_versions versions;
	enum config_action action;
	uint64_t interval_ns; /* the service's, where the rule says none */
	enum sample_mode mode;
	unsigned given_mode; /* 1 + the mode; 0: the rule says none */
	struct config_label labels[CONFIG_LIST_MAX];
	size_t label_count;
};

enum trigger_kind {
	TRIGGER_CPU,      /* share of a core that a target uses */
	TRIGGER_GIL_WAIT, /* of the time in which a target's threads held the GIL or waited for it, the share of waiting */
	TRIGGER_FUNCTION, /* share of a target's samples that hold the function */
};

struct config_trigger {
	char *name; /* owned */
	struct config_place place;
	struct config_list rule_names;
	struct config_place rules_place;
	size_t rules[CONFIG_LIST_MAX]; /* indices of rule_names in config.rules; none: all */
	enum trigger_kind kind;
	double above; /* the threshold, as a share: 0.8 is 80 % */
	uint64_t for_ns, every_ns, last_ns;
	/* As they were read; one of the first three is given. 0, NULL: not given. */
	double cpu, gil_wait, share;
	char *function; /* owned; of TRIGGER_FUNCTION */
};

struct config {
	char **files; /* those that were read, in order; owned */
	size_t file_count;
	struct config_service service;
	struct config_budget budget;
	struct config_history history;
	struct config_dump dump;
	struct config_push push;
	struct config_rule *rules; /* owned; at least one: where the files have none, one that takes all */
	size_t rule_count;
	struct config_trigger *triggers; /* owned */
	size_t trigger_count;
};

/* Reads FILE, or for NULL CONFIG_PATH, which may be missing then, and the files of conf.d. mistake() hears of each mistake, as "FILE:LINE: WHY" with
 * a hint. 0 with *ret_config, which is freed with config_free(); or -errno of the first mistake. */
int config_read(struct config **ret_config, const char *path, void (*mistake)(void *context, const struct fault *fault),
                void *context);
void config_free(struct config *config);

#endif
