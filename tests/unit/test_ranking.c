/* SPDX-License-Identifier: Apache-2.0 */
/* What comes first where functions are ranked, and how files are named in short. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "build_profile.h"
#include "exporters/functions.h"
#include "exporters/ranking.h"

Test(ranking, short_files)
{
	static const struct {
		const char *file, *expected;
	} cases[] = {
		{"/usr/lib/python3.11/threading.py", "threading.py"},
		{"/opt/python/lib/python3.11/json/encoder.py", "json/encoder.py"},
		{"/x/lib/python3.12/site-packages/sympy/core/cache.py", "sympy/core/cache.py"},
		{"/usr/lib/python3/dist-packages/yaml/reader.py", "yaml/reader.py"},
		{"/usr/lib/python3.13t/json/decoder.py", "json/decoder.py"},
		{"/srv/app/shop.py", "/srv/app/shop.py"},
		{"/srv/python/shop.py", "/srv/python/shop.py"},
		{"/srv/python3.11/", "/srv/python3.11/"},
		{"<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>"},
		{"", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_str_eq(ranking_short_file(cases[i].file), cases[i].expected);
}

/* A thread that sleeps ten times as long as another one works. */
static struct profile *sleeper_and_worker(unsigned work_samples, unsigned work_status)
{
	struct profile *p = built_new();
	uint32_t process = built_process(p, 1, "python"), sleep = built_symbol(p, "sleep", "a.py", 1),
		 work = built_symbol(p, "work", "a.py", 9);
	uint32_t sleeper = built_thread(p, process, 0, 1, "sleeper"), worker = built_thread(p, process, 0, 2, "worker");

	built_sample(p, sleeper, built_child(p, sleeper, 0, sleep, 2), 100, STATUS_IDLE);
	if (work_samples)
		built_sample(p, worker, built_child(p, worker, 0, work, 10), work_samples, work_status);
	return p;
}

/* The function that comes first, and how it is ranked. */
static void assert_first(const struct profile *p, const char *label, const char *name)
{
	struct ranking ranking = ranking_of(p);
	struct function *functions;
	uint32_t count;

	cr_assert_str_eq(ranking.label, label);
	cr_assert_eq(functions_rank(&functions, &count, p, &ranking), 0);
	cr_assert_str_eq(p->symbols[functions[0].symbol].name, name);
	free(functions);
}

Test(ranking, who_sleeps_does_not_win)
{
	struct profile *p = sleeper_and_worker(10, STATUS_RUNNABLE | STATUS_GIL);

	assert_first(p, "running", "work");
	built_cpu_time(p);
	assert_first(p, "on CPU", "work");
	built_free(p);
	p = sleeper_and_worker(10, STATUS_GIL_WAIT);
	assert_first(p, "running", "work");
	built_free(p);
}

Test(ranking, where_all_sleep, .description = "the profile's weight is left to go by")
{
	struct profile *p = sleeper_and_worker(0, 0);

	built_cpu_time(p);
	assert_first(p, "self", "sleep");
	built_free(p);
}
