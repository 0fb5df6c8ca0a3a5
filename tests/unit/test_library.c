/* SPDX-License-Identifier: Apache-2.0 */
#include "base/library.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static struct table {
	void *untouched;
	const char *(*version)(void);
	double (*power)(double, double);
} table;

static const struct library_function wanted[] = {LIBRARY_FUNCTION_SHARED(struct table, version, zlibVersion)};
static const struct library_function more[] = {LIBRARY_FUNCTION_SHARED(struct table, version, zlibVersion),
                                               LIBRARY_FUNCTION_SHARED(struct table, power, no_such_function)};

Test(library, functions_are_found)
{
	void *handle = NULL;

	cr_assert_eq(library_open("libz.so.1", wanted, 1, &table, &handle, NULL), 0);
	cr_assert_not_null(handle);
	cr_assert_eq(table.version()[0], '1');
	cr_assert_null(table.untouched);
	cr_assert_null(table.power);
	library_close(handle);
	library_close(NULL);
	cr_assert_eq(library_open("libz.so.1", wanted, 1, &table, NULL, NULL), 0, "it may stay for good");
	cr_assert_eq(table.version()[0], '1');
}

Test(library, why_one_is_not_to_be_had)
{
	const char *why = NULL;
	void *handle = &table;

	cr_assert_eq(library_open("libnone.so.0", wanted, 1, &table, &handle, &why), -ENOSYS);
	cr_assert_not_null(strstr(why, "libnone.so.0"));
	cr_assert_eq(library_open("libnone.so.0", wanted, 1, &table, &handle, NULL), -ENOSYS);
	cr_assert_eq(library_open("libz.so.1", more, 2, &table, &handle, &why), -ENOSYS);
	cr_assert_str_eq(why, "libz.so.1 has no no_such_function");
	cr_assert_eq(library_open("libz.so.1", more, 2, &table, &handle, NULL), -ENOSYS);
	cr_assert_eq(handle, (void *)&table, "no handle is given");
	cr_assert_str_eq(library_hint("apt-get install libnone0"), "apt-get install libnone0");
}
