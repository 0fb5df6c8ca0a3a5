/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer means for the profile that was sent. Nothing is given up that could pass later: refused for good is only what says so of the
 * body itself. */
#ifndef SAMPLED_DAEMON_PUSH_ANSWER_H
#define SAMPLED_DAEMON_PUSH_ANSWER_H

#include <stdbool.h>

#include "daemon/push_log.h"
#include "exporters/curl_library.h"

enum push_outcome { PUSH_SENT, PUSH_RETRY, PUSH_REFUSED };

struct push_verdict {
	enum push_outcome outcome;
	enum push_kind kind;  /* of what is said */
	bool may_be_profiles; /* of PUSH_RETRY: it may be this profile alone that the server stumbles over */
	bool needs_somebody;  /* of PUSH_RETRY: it passes when somebody mends something, so that who waits need not */
};

/* Of a transfer that ended with `code`; status is the answer's, where there was one. */
struct push_verdict push_judge(CURLcode code, long status);

#endif
