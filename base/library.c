/* SPDX-License-Identifier: Apache-2.0 */
#include "base/library.h"

#include <errno.h>
#include <string.h>

#ifdef SAMPLED_STATIC

/* A static program cannot load a library of another C library: what is not linked in is not to be had. */
int library_open(const char *file, const struct library_function *functions, size_t count, void *ret_table,
                 void **ret_handle, const char **ret_why)
{
	(void)file;
	for (size_t i = 0; i < count; i++) {
		if (!functions[i].linked) {
			if (ret_why)
				*ret_why = "the portable program has none";
			return -ENOSYS;
		}
		memcpy((char *)ret_table + functions[i].offset, &functions[i].linked, sizeof(functions[i].linked));
	}
	if (ret_handle)
		*ret_handle = NULL;
	return 0;
}

void library_close(void *handle)
{
	(void)handle;
}

const char *library_hint(const char *install)
{
	(void)install;
	return "use a build with shared libraries: make, or make deb";
}

#else

#include <dlfcn.h>
#include <stdio.h>

int library_open(const char *file, const struct library_function *functions, size_t count, void *ret_table,
                 void **ret_handle, const char **ret_why)
{
	static _Thread_local char why[128];
	void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		if (ret_why)
			*ret_why = dlerror();
		return -ENOSYS;
	}
	for (size_t i = 0; i < count; i++) {
		/* An address becomes a function's by its bytes: ISO C has no conversion between the two. */
		void *function = dlsym(handle, functions[i].name);

		if (!function) {
			snprintf(why, sizeof(why), "%s has no %s", file, functions[i].name);
			if (ret_why)
				*ret_why = why;
			dlclose(handle);
			return -ENOSYS;
		}
		memcpy((char *)ret_table + functions[i].offset, &function, sizeof(function));
	}
	if (ret_handle)
		*ret_handle = handle;
	return 0;
}

void library_close(void *handle)
{
	if (handle)
		dlclose(handle);
}

const char *library_hint(const char *install)
{
	return install;
}

#endif
