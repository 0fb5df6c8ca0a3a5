/* SPDX-License-Identifier: Apache-2.0 */
/* Py_GetVersion() formats "3.8.18 (default, date) [compiler]" into a static buffer the first time it is asked, which
 * happens while sys is made: before any Python code runs. */
#include "sampler/pyversion.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { VERSION_TEXT_MAX = 31, OVERLAP = 64 };

int pyversion_from_hex(struct pyversion *ret_version, uint64_t hexversion)
{
	static const char *const levels[16] = {[0xa] = "a", [0xb] = "b", [0xc] = "rc", [0xf] = ""};
	unsigned major = (unsigned)(hexversion >> 24) & 0xff, minor = (unsigned)(hexversion >> 16) & 0xff;
	unsigned patch = (unsigned)(hexversion >> 8) & 0xff, level = (unsigned)(hexversion >> 4) & 0xf;
	struct pyversion version = {.hex = (uint32_t)(hexversion >> 8)};

	if (hexversion >> 32 || major < 2 || major > 4 || !levels[level])
		return -EPROTO;
	snprintf(version.text, sizeof(version.text), "%u.%u.%u%s", major, minor, patch, levels[level]);
	if (level != 0xf)
		snprintf(version.text + strlen(version.text), sizeof(version.text) - strlen(version.text), "%u",
		         (unsigned)hexversion & 0xf);
	*ret_version = version;
	return 0;
}

/* A decimal number of at most three digits. */
static bool take_decimal(const char **at, const char *end, unsigned *ret_value)
{
	unsigned value = 0;
	int digits = 0;

	for (; *at < end && **at >= '0' && **at <= '9' && digits < 3; ++*at, digits++)
		value = value * 10 + (unsigned)(**at - '0');
	*ret_value = value;
	return digits > 0 && value <= 255;
}

int pyversion_from_text(struct pyversion *ret_version, const char *text, size_t bytes, const char *stop)
{
	const char *at = text, *end = text + bytes;
	struct pyversion version = {0};
	unsigned major, minor, patch;
	size_t stop_bytes = *stop ? strlen(stop) : 1;

	if (!take_decimal(&at, end, &major) || major < 2 || major > 4 || at == end || *at++ != '.' ||
	    !take_decimal(&at, end, &minor) || at == end || *at++ != '.' || !take_decimal(&at, end, &patch))
		return -EPROTO;
	/* "a1", "rc2", and the "+" of a tree after the release */
	while (at < end &&
	       ((*at >= '0' && *at <= '9') || *at == 'a' || *at == 'b' || *at == 'r' || *at == 'c' || *at == '+'))
		at++;
	if (at - text > VERSION_TEXT_MAX || (size_t)(end - at) < stop_bytes || memcmp(at, stop, stop_bytes) != 0)
		return -EPROTO;
	version.hex = major << 16 | minor << 8 | patch;
	memcpy(version.text, text, (size_t)(at - text));
	*ret_version = version;
	return 0;
}

struct text_search {
	struct pyversion found;
	bool constants; /* look for PY_VERSION alone, between two NULs */
};

static int find_text(void *context, raddr_t addr, const char *piece, size_t bytes)
{
	struct text_search *search = context;
	const char *end = piece + bytes;
	const char *at = piece;

	(void)addr;
	while ((at = memchr(at, '.', (size_t)(end - at)))) {
		struct pyversion version;
		const char *start = at - 1; /* the major version has one digit */

		at++;
		/* It begins a string: a NUL is before it, or it begins the buffer of Py_GetVersion(), preceded by anything. */
		if (start < piece || *start < '2' || *start > '4' || (start > piece && start[-1] != '\0'))
			continue;
		if (pyversion_from_text(&version, start, (size_t)(end - start), search->constants ? "" : " ("))
			continue;
		/* Other libraries have such constants too: SQLite is at 3.34 and beyond. */
		if (search->constants && (version.hex >> 8 & 0xff) > 10)
			continue;
		search->found = version;
		return 1;
	}
	return 0;
}

int pyversion_of_image(struct pyversion *ret_version, const struct image *image, const struct remote *r)
{
	struct text_search search = {0};
	uint64_t word;

	if (image->version_word && remote_read_u64(r, image->version_word, &word) == 0 &&
	    pyversion_from_hex(ret_version, word) == 0)
		return 0;
	if (image_search(image, r, true, OVERLAP, find_text, &search) <= 0) {
		search.constants = true;
		if (image_search(image, r, false, OVERLAP, find_text, &search) <= 0)
			return -ENOENT;
	}
	*ret_version = search.found;
	return 0;
}
