/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl, loaded when it is first asked for and by who sends alone: the process that reads others' memory must not even map it. */
#ifndef SAMPLED_EXPORTERS_CURL_LIBRARY_H
#define SAMPLED_EXPORTERS_CURL_LIBRARY_H

#define CURL_DISABLE_TYPECHECK /* it would make macros of functions that are pointers here */
#include <curl/curl.h>

#include "base/fault.h"

#if defined(LIBCURL_VERSION_NUM) && LIBCURL_VERSION_NUM < 0x075700
#error "sampled needs the headers of libcurl 7.87 or newer to be built (Debian 12 has it): see Install in README.md"
#endif

/* The functions that we use; X(name) of curl_name(). */
#define CURL_FUNCTIONS(X)                                                                                              \
	X(global_init)                                                                                                 \
	X(version_info)                                                                                                \
	X(easy_init)                                                                                                   \
	X(easy_setopt)                                                                                                 \
	X(easy_getinfo)                                                                                                \
	X(easy_perform)                                                                                                \
	X(easy_strerror)                                                                                               \
	X(easy_reset)                                                                                                  \
	X(easy_cleanup)                                                                                                \
	X(slist_append)                                                                                                \
	X(slist_free_all)                                                                                              \
	X(multi_init)                                                                                                  \
	X(multi_add_handle)                                                                                            \
	X(multi_remove_handle)                                                                                         \
	X(multi_perform)                                                                                               \
	X(multi_poll)                                                                                                  \
	X(multi_info_read)                                                                                             \
	X(multi_cleanup)

struct curl_library {
#define CURL_MEMBER(function) __typeof__ (&curl_##function)(function);
	CURL_FUNCTIONS(CURL_MEMBER)
#undef CURL_MEMBER
};

/* Loads it and makes it ready; for good. Before other threads are made. 0 or -ENOSYS with *fault filled. */
int curl_library_load(struct curl_library *ret_library, struct fault *fault);

#endif
