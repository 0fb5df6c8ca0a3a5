/* SPDX-License-Identifier: Apache-2.0 */
/* Our own child processes, told from those that became ours because their parent ended. */
#include "base/helper.h"

#include <criterion/criterion.h>
#include <sys/wait.h>
#include <unistd.h>

Test(helper, ours_until_they_were_waited_for)
{
	pid_t ours[3], other;

	for (int i = 0; i < 3; i++) {
		ours[i] = helper_fork();
		if (ours[i] == 0)
			_exit(7);
		cr_assert_gt(ours[i], 0);
	}
	other = fork();
	if (other == 0)
		_exit(0);
	cr_assert(helper_is(ours[0]) && helper_is(ours[1]) && helper_is(ours[2]));
	cr_assert_not(helper_is(other));
	helper_forget(ours[1]);
	cr_assert(helper_is(ours[0]) && !helper_is(ours[1]) && helper_is(ours[2]));
	helper_begin();
	helper_note(other);
	cr_assert(helper_is(other), "made in another way");
	helper_begin();
	helper_note(-1); /* which failed */
	helper_forget(-1);
	cr_assert(helper_is(other) && !helper_is(-1));
	for (int i = 0; i < 3; i++) {
		int status;

		cr_assert_eq(waitpid(ours[i], &status, 0), ours[i]);
		cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7, "the child goes on with its own work");
		helper_forget(ours[i]);
		cr_assert_not(helper_is(ours[i]));
	}
	waitpid(other, NULL, 0);
}

Test(helper, more_than_are_noted_are_forked_all_the_same)
{
	pid_t pids[40];
	int noted = 0;

	for (int i = 0; i < 40; i++) {
		helper_begin();
		pids[i] = 100000000 + i; /* no process has such a number */
		helper_note(pids[i]);
	}
	for (int i = 0; i < 40; i++)
		noted += helper_is(pids[i]);
	cr_assert(noted >= 6 && noted < 40, "%d", noted);
	for (int i = 0; i < 40; i++)
		helper_forget(pids[i]);
	for (int i = 0; i < 40; i++)
		cr_assert_not(helper_is(pids[i]));
}
