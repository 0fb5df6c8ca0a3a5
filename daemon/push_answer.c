/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/push_answer.h"

#include <stddef.h>

static bool is_among(long status, const short *these)
{
	for (; *these; these++)
		if (*these == status)
			return true;
	return false;
}

static struct push_verdict judge_failure(CURLcode code)
{
	return (struct push_verdict){
		.outcome = PUSH_RETRY,
		.kind = PUSH_SAY_CONNECTION,
		.needs_somebody = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
	                          code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT,
	};
}

struct push_verdict push_judge(CURLcode code, long status)
{
	static const short bodies[] = {400, 413, 415, 422, 0}, denials[] = {401, 403, 407, 0},
			   moments[] = {408, 425, 429, 502, 503, 504, 0};

	if (code != CURLE_OK)
		return judge_failure(code);
	if (status >= 200 && status < 300)
		return (struct push_verdict){.outcome = PUSH_SENT};
	if (is_among(status, bodies))
		return (struct push_verdict){.outcome = PUSH_REFUSED, .kind = PUSH_SAY_REFUSED};
	if (is_among(status, moments))
		return (struct push_verdict){.outcome = PUSH_RETRY, .kind = PUSH_SAY_BUSY};
	if (status >= 500)
		return (struct push_verdict){.outcome = PUSH_RETRY, .kind = PUSH_SAY_SERVER, .may_be_profiles = true};
	return (struct push_verdict){.outcome = PUSH_RETRY,
	                             .kind = is_among(status, denials)       ? PUSH_SAY_DENIED
	                                     : status >= 300 && status < 400 ? PUSH_SAY_REDIRECT
	                                                                     : PUSH_SAY_ADDRESS,
	                             .needs_somebody = true};
}
