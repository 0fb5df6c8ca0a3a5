/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols, sections and segments of an ELF file that may be hostile. Addresses are those written in the file: add the
 * load bias for the process. */
#ifndef SAMPLED_SAMPLER_ELF_H
#define SAMPLED_SAMPLER_ELF_H

#include <stdbool.h>
#include <stdint.h>

struct elf_image;

struct elf_range {
	uint64_t addr, bytes;
	const char *where; /* ".dynsym", ".symtab", or the section's name; static */
};

/* Opens the ELF file behind fd, which stays the caller's and must stay open. -ENOEXEC: not a 64-bit ELF file for this
 * machine, or one that makes no sense; -EFBIG: too large; or another -errno. */
int elf_image_open(struct elf_image **ret_image, int fd);
void elf_image_free(struct elf_image *image);

/* A defined symbol, from .dynsym or, when not there, .symtab. 0, -ENOENT, or -ENOEXEC. */
int elf_image_symbol(const struct elf_image *image, const char *name, struct elf_range *ret_range);
struct elf_function {
	const char *name; /* ends within its string table */
	uint64_t addr, bytes;
	bool exported; /* of .dynsym, not .symtab */
};

/* Calls fn for each function that is defined, those of .dynsym first; one may come several times. */
void elf_image_functions(const struct elf_image *image, void (*fn)(void *context, const struct elf_function *function),
                         void *context);
/* A section that is loaded, by name. `name` must be static. 0, -ENOENT, or -ENOEXEC. */
int elf_image_section(const struct elf_image *image, const char *name, struct elf_range *ret_range);
/* The i-th loadable segment: its memory, and whether it can be written. false: there are not so many. */
bool elf_image_segment(const struct elf_image *image, unsigned i, struct elf_range *ret_range, bool *ret_writable);
/* Does it ask for a shared library whose name begins so? */
bool elf_image_needs(const struct elf_image *image, const char *prefix);

/* The bias of a mapping of the file: what to add to the file's addresses to get the process'. map_start is where the
 * part of the file at file_off was mapped. 0, or -ENOENT: no segment begins there. */
int elf_image_bias(const struct elf_image *image, uint64_t map_start, uint64_t file_off, uint64_t *ret_bias);

#endif
