/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/curl_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

static const char file[] = "libcurl.so.4"; /* its number has been the same since 2006 */

enum { VERSION_MIN = 0x074200 }; /* 7.66: curl_multi_poll() and Retry-After */

static const struct {
	const char *name;
	size_t offset;
} functions[] = {
#define CURL_ROW(function) {"curl_" #function, offsetof(struct curl_library, function)},
	CURL_FUNCTIONS(CURL_ROW)
#undef CURL_ROW
};

int curl_library_load(struct curl_library *ret_library, struct fault *fault)
{
	static const char hint[] = "install libcurl4";
	void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	struct curl_library library;

	if (!handle)
		return fault_set(fault, -ENOSYS, hint, "libcurl, which sends, is not to be had: %s", dlerror());
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *function = dlsym(handle, functions[i].name);

		if (!function) {
			dlclose(handle);
			return fault_set(fault, -ENOSYS, hint, "%s has no %s", file, functions[i].name);
		}
		memcpy((char *)&library + functions[i].offset, &function, sizeof(function));
	}
	if (library.version_info(CURLVERSION_NOW)->version_num < VERSION_MIN ||
	    library.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return fault_set(fault, -ENOSYS, "7.66 is what it takes", "libcurl %s cannot be used",
		                 library.version_info(CURLVERSION_NOW)->version);
	*ret_library = library;
	return 0;
}
