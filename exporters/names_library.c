/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/names_library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static const struct {
	const char *name;
	size_t offset;
} functions[] = {
#define DWARF_ROW(function) {"dwarf_" #function, offsetof(struct dwarf_library, function)},
	DWARF_FUNCTIONS(DWARF_ROW)
#undef DWARF_ROW
};

/* Set once, while the process has one thread. */
static struct dwarf_library dwarf;
static bool has_dwarf;
static __typeof__(&lzma_stream_buffer_decode) lzma;

static bool load_dwarf(void)
{
	void *handle = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; handle && i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *function = dlsym(handle, functions[i].name);

		if (!function)
			return false;
		memcpy((char *)&dwarf + functions[i].offset, &function, sizeof(function));
	}
	return handle != NULL;
}

void names_library_load(void)
{
	void *handle = dlopen("liblzma.so.5", RTLD_NOW | RTLD_LOCAL), *function;

	has_dwarf = load_dwarf();
	function = handle ? dlsym(handle, "lzma_stream_buffer_decode") : NULL;
	memcpy(&lzma, &function, sizeof(lzma));
}

const struct dwarf_library *names_library_dwarf(void)
{
	return has_dwarf ? &dwarf : NULL;
}

__typeof__(&lzma_stream_buffer_decode) names_library_lzma(void)
{
	return lzma;
}
