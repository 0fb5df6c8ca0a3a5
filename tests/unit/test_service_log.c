/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>
#include <string.h>

#include "daemon/service_log.h"

Test(service_log, one_kind_does_not_hide_another_and_what_was_withheld_is_said_at_the_end, .init = cr_redirect_stderr)
{
	static char said[65536];
	FILE *from;
	size_t bytes;

	for (int i = 0; i < 200; i++)
		service_log("cannot profile process %d", i);
	service_log("cannot write to the spool: %s", "full");
	cr_assert_gt(service_log_suppressed(), 0);
	service_log_finish();
	service_log_finish(); /* once */
	fflush(stderr);
	from = cr_get_redirected_stderr();
	bytes = fread(said, 1, sizeof(said) - 1, from);
	said[bytes] = '\0';
	cr_expect(strstr(said, "sampled: cannot profile process 19\n"), "%s", said);
	cr_expect(strstr(said, "sampled: cannot write to the spool: full\n"), "%s", said);
	cr_expect(strstr(said, "sampled: cannot profile process 199 (and "), "%s", said);
	cr_expect_null(strstr(said, "process 150\n"));
	cr_expect_null(strstr(strstr(said, "process 199") + 1, "process 199"));
}
