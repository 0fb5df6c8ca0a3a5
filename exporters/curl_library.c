/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/curl_library.h"

#include <errno.h>
#include <stddef.h>

#include "base/library.h"

static const char file[] = "libcurl.so.4"; /* its number has been the same since 2006 */

enum { VERSION_MIN = 0x074200 }; /* 7.66: curl_multi_poll() and Retry-After */

/* Not in the portable program: TLS, and the libraries below it, belong to the host. */
static const struct library_function functions[] = {
#define CURL_ROW(function) LIBRARY_FUNCTION_SHARED(struct curl_library, function, curl_##function),
	CURL_FUNCTIONS(CURL_ROW)
#undef CURL_ROW
};

int curl_library_load(struct curl_library *ret_library, struct fault *fault)
{
	struct curl_library library;
	const char *why;

	if (library_open(file, functions, sizeof(functions) / sizeof(functions[0]), &library, NULL, &why) < 0)
		return fault_set(fault, -ENOSYS, library_hint("install libcurl4"),
		                 "libcurl, which sends, is not to be had: %s", why);
	if (library.version_info(CURLVERSION_NOW)->version_num < VERSION_MIN ||
	    library.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return fault_set(fault, -ENOSYS, "7.66 is what it takes", "libcurl %s cannot be used",
		                 library.version_info(CURLVERSION_NOW)->version);
	*ret_library = library;
	return 0;
}
