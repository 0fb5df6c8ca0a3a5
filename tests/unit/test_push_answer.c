/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "daemon/push_answer.h"

Test(push_answer, only_four_refuse_for_good)
{
	for (long status = 0; status < 1000; status++) {
		struct push_verdict v = push_judge(CURLE_OK, status);
		bool is_body = status == 400 || status == 413 || status == 415 || status == 422;

		cr_expect_eq(v.outcome,
		             status >= 200 && status < 300 ? PUSH_SENT
		             : is_body                     ? PUSH_REFUSED
		                                           : PUSH_RETRY,
		             "%ld", status);
	}
	for (int code = 1; code < CURL_LAST; code++)
		cr_expect_eq(push_judge((CURLcode)code, 200).outcome, PUSH_RETRY, "%d", code);
}

Test(push_answer, who_waits_and_who_steps_aside)
{
	cr_expect(push_judge(CURLE_OK, 403).needs_somebody && push_judge(CURLE_OK, 308).needs_somebody);
	cr_expect(!push_judge(CURLE_OK, 503).needs_somebody && !push_judge(CURLE_OK, 429).needs_somebody);
	cr_expect(!push_judge(CURLE_OPERATION_TIMEDOUT, 0).needs_somebody);
	cr_expect(push_judge(CURLE_PEER_FAILED_VERIFICATION, 0).needs_somebody);
	cr_expect(push_judge(CURLE_OK, 500).may_be_profiles && push_judge(CURLE_OK, 507).may_be_profiles);
	cr_expect(!push_judge(CURLE_OK, 503).may_be_profiles && !push_judge(CURLE_OK, 401).may_be_profiles);
}
