/* SPDX-License-Identifier: Apache-2.0 */
/* Which rule of the configuration a process falls under. */
#ifndef SAMPLED_DAEMON_RULES_H
#define SAMPLED_DAEMON_RULES_H

#include "daemon/candidate.h"
#include "daemon/config.h"

enum {
	RULES_NONE = -1,          /* no rule matches: it is not profiled */
	RULES_EXCLUDED = -2,      /* the first that matches says so */
	RULES_NEEDS_VERSION = -3, /* that depends on candidate->version, which is not known yet */
};

/* The index of the first rule whose conditions all hold, which includes the process; or one of the above. */
int rules_match(const struct config *config, const struct candidate *candidate);

#endif
