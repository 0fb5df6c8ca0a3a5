/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/names_demangle.h"

#include <libiberty/demangle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SYMBOL_MAX = 16384 }; /* longer ones are shown as they are: what they would become has no bound */

/* Marks that compilers put behind the name of what they made of a function; ".123" besides. */
static const char *const clones[] = {"cold",   "part",       "isra", "constprop", "lto_priv",
                                     "llvm",   "localalias", "warm", "hot",       "unlikely",
                                     "cloned", "resolver",   "exit", "startup",   "likely"};

bool name_is_mangled(const char *symbol)
{
	return strncmp(symbol, "_Z", 2) == 0 || strncmp(symbol, "_R", 2) == 0 || strncmp(symbol, "__Z", 3) == 0;
}

static bool is_clone_mark(const char *text, size_t bytes)
{
	if (bytes > 0 && strspn(text, "0123456789") >= bytes)
		return true;
	for (size_t i = 0; i < sizeof(clones) / sizeof(clones[0]); i++)
		if (strlen(clones[i]) == bytes && memcmp(text, clones[i], bytes) == 0)
			return true;
	return false;
}

/* The length of the symbol's own name. */
static size_t without_marks(const char *symbol)
{
	const char *version = strchr(symbol[0] ? symbol + 1 : symbol, '@');
	size_t bytes = version ? (size_t)(version - symbol) : strlen(symbol);

	for (;;) {
		size_t dot = bytes;

		while (dot > 1 && symbol[dot - 1] != '.')
			dot--;
		if (dot <= 1 || !is_clone_mark(symbol + dot, bytes - dot))
			return bytes;
		bytes = dot - 1;
	}
}

size_t name_readable(char *to, size_t room, const char *symbol)
{
	size_t bytes = without_marks(symbol);
	char *readable = NULL, *own;

	if (name_is_mangled(symbol) && bytes < SYMBOL_MAX) {
		own = strndup(symbol, bytes);
		readable = own ? rust_demangle(own, DMGL_NO_OPTS) : NULL;
		if (own && !readable)
			readable = cplus_demangle_v3(own, DMGL_NO_OPTS);
		free(own);
	}
	if (readable)
		snprintf(to, room, "%s", readable);
	else
		snprintf(to, room, "%.*s", (int)(bytes < room ? bytes : room), symbol);
	free(readable);
	return strlen(to);
}
