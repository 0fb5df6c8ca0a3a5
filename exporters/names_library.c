/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/names_library.h"

#include "base/library.h"

static const struct library_function dwarf_functions[] = {
#define DWARF_ROW(function) LIBRARY_FUNCTION(struct dwarf_library, function, dwarf_##function),
	DWARF_FUNCTIONS(DWARF_ROW)
#undef DWARF_ROW
};

struct lzma_library {
	__typeof__(&lzma_stream_buffer_decode) unpack;
};

static const struct library_function lzma_functions[] = {
	LIBRARY_FUNCTION(struct lzma_library, unpack, lzma_stream_buffer_decode),
};

/* Set once, while the process has one thread. */
static struct dwarf_library dwarf;
static bool has_dwarf;
static struct lzma_library lzma;

void names_library_load(void)
{
	has_dwarf = library_open("libdw.so.1", dwarf_functions, sizeof(dwarf_functions) / sizeof(dwarf_functions[0]),
	                         &dwarf, NULL, NULL) == 0;
	if (library_open("liblzma.so.5", lzma_functions, 1, &lzma, NULL, NULL) < 0)
		lzma.unpack = NULL;
}

const struct dwarf_library *names_library_dwarf(void)
{
	return has_dwarf ? &dwarf : NULL;
}

__typeof__(&lzma_stream_buffer_decode) names_library_lzma(void)
{
	return lzma.unpack;
}
