/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/thread_names.h"

/* What was said on standard error. */
static bool check(const struct thread_names *names, char *ret_said, size_t room)
{
	int ends[2], kept = dup(STDERR_FILENO);
	bool missing;
	ssize_t bytes;

	cr_assert_eq(pipe(ends), 0);
	fflush(stderr);
	dup2(ends[1], STDERR_FILENO);
	missing = thread_names_check(names, true);
	fflush(stderr);
	dup2(kept, STDERR_FILENO);
	close(ends[1]);
	bytes = read(ends[0], ret_said, room - 1);
	ret_said[bytes > 0 ? bytes : 0] = '\0';
	close(ends[0]);
	close(kept);
	return missing;
}

Test(thread_names, what_is_there_is_no_mistake)
{
	struct thread_list asked = {.items = {{.name = "ranking"}, {.tid = 12}}, .count = 2};
	struct thread_names names = {.asked = &asked};
	char said[512];

	thread_names_take(&names, "MainThread", 11);
	thread_names_take(&names, NULL, 12);
	thread_names_take(&names, "ranking", 0);
	cr_expect_not(check(&names, said, sizeof(said)));
	cr_expect_str_eq(said, "");
	thread_names_release(&names);
}

Test(thread_names, the_nearest_is_asked_for)
{
	struct thread_list asked = {.items = {{.name = "rankin"}, {.tid = 99}}, .count = 2};
	struct thread_names names = {.asked = &asked};
	char said[512];

	for (int i = 0; i < 2; i++) {
		thread_names_take(&names, "MainThread", 11);
		thread_names_take(&names, "ranking", 12);
	}
	cr_expect(check(&names, said, sizeof(said)));
	cr_expect_str_eq(said, "sampled: -t rankin: there was no such thread (is it ranking? threads: MainThread, ranking)\n"
	                       "sampled: -t 99: there was no such thread (threads: MainThread, ranking)\n");
	thread_names_release(&names);
}

Test(thread_names, of_thousands_some_are_named)
{
	struct thread_list asked = {.items = {{.name = "x\033[31m"}}, .count = 1};
	struct thread_names names = {.asked = &asked};
	char name[64], said[2048];

	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "worker %d \033[31m\n", i);
		thread_names_take(&names, name, 0);
	}
	cr_expect_eq(names.count, THREAD_NAMES_MAX);
	cr_expect(check(&names, said, sizeof(said)));
	cr_expect_not_null(strstr(said, " and 988 more)\n"), "%s", said);
	cr_expect_null(strchr(said, '\033'));
	thread_names_release(&names);
}
