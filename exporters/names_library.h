/* SPDX-License-Identifier: Apache-2.0 */
/* libdw and liblzma, loaded by the child that names native frames alone: a process that reads others' memory never maps them. */
#ifndef SAMPLED_EXPORTERS_NAMES_LIBRARY_H
#define SAMPLED_EXPORTERS_NAMES_LIBRARY_H

#include <elfutils/libdw.h>
#include <lzma.h>
#include <stdbool.h>

/* The functions of libdw that we use; X(name) of dwarf_name(). */
#define DWARF_FUNCTIONS(X)                                                                                             \
	X(begin_elf)                                                                                                   \
	X(end)                                                                                                         \
	X(next_unit)                                                                                                   \
	X(offdie)                                                                                                      \
	X(child)                                                                                                       \
	X(siblingof)                                                                                                   \
	X(tag)                                                                                                         \
	X(ranges)                                                                                                      \
	X(dieoffset)                                                                                                   \
	X(attr)                                                                                                        \
	X(attr_integrate)                                                                                              \
	X(formstring)                                                                                                  \
	X(formudata)                                                                                                   \
	X(formref_die)                                                                                                 \
	X(getsrclines)                                                                                                 \
	X(getsrc_die)                                                                                                  \
	X(lineno)                                                                                                      \
	X(linesrc)                                                                                                     \
	X(getsrcfiles)                                                                                                 \
	X(filesrc)

struct dwarf_library {
#define DWARF_MEMBER(function) __typeof__ (&dwarf_##function)(function);
	DWARF_FUNCTIONS(DWARF_MEMBER)
#undef DWARF_MEMBER
};

/* Loads what is installed; for good. Before system calls are filtered. */
void names_library_load(void);
/* NULL: libdw is not installed, or lacks a function. Then there are no lines and no inlined functions. */
const struct dwarf_library *names_library_dwarf(void);
/* lzma_stream_buffer_decode(); NULL: liblzma is not installed. */
__typeof__(&lzma_stream_buffer_decode) names_library_lzma(void);

#endif
