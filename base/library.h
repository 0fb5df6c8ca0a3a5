/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries that only some runs need: found when they are first asked for, so that a plain run maps none of them. The portable
 * program (`make static`) has the same functions linked in, or has not got them at all. */
#ifndef SAMPLED_BASE_LIBRARY_H
#define SAMPLED_BASE_LIBRARY_H

#include <stddef.h>

/* One function of a library, and where its address goes in the caller's table. */
struct library_function {
	const char *name;
	size_t offset;
	void (*linked)(void); /* in the portable program: the function itself; else NULL */
};

/* A row for LIBRARY_TEXT(symbol), for libraries that the portable program has linked in. */
#ifdef SAMPLED_STATIC
#define LIBRARY_LINKED(symbol) ((void (*)(void))(symbol))
#else
#define LIBRARY_LINKED(symbol) NULL
#endif
#define LIBRARY_TEXT_OF(text) #text
#define LIBRARY_TEXT(symbol)  LIBRARY_TEXT_OF(symbol)
#define LIBRARY_FUNCTION(table, member, symbol)                                                                        \
	{                                                                                                              \
		LIBRARY_TEXT(symbol), offsetof(table, member), LIBRARY_LINKED(symbol)                                  \
	}
/* The same for libraries that the portable program has not got. */
#define LIBRARY_FUNCTION_SHARED(table, member, symbol)                                                                 \
	{                                                                                                              \
		LIBRARY_TEXT(symbol), offsetof(table, member), NULL                                                    \
	}

/* Fills the functions' pointers in *ret_table. The library stays loaded until library_close(), with *ret_handle, which may be NULL:
 * then it stays for good. 0, or -ENOSYS: *ret_why, where not NULL, says why, valid until the thread's next call. */
int library_open(const char *file, const struct library_function *functions, size_t count, void *ret_table,
                 void **ret_handle, const char **ret_why);
void library_close(void *handle);
/* How to get one that is not there: `install`, or, where nothing can be loaded, another build of the program. */
const char *library_hint(const char *install);

#endif
