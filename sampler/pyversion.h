/* SPDX-License-Identifier: Apache-2.0 */
/* Which Python is it? Text and numbers in which a release names itself. */
#ifndef SAMPLED_SAMPLER_PYVERSION_H
#define SAMPLED_SAMPLER_PYVERSION_H

#include <stddef.h>
#include <stdint.h>

#include "sampler/image.h"

struct pyversion {
	uint32_t hex;  /* as sys.hexversion >> 8: 0x030b02 is 3.11.2 */
	char text[32]; /* "3.11.2", "3.15.0rc1" */
};

/* From sys.hexversion. 0, or -EPROTO: not one of a Python. */
int pyversion_from_hex(struct pyversion *ret_version, uint64_t hexversion);

/* From text that begins with one, as "3.8.18 (default, …" with `stop` " (", or "3.8.18" with `stop` "". The stop must
 * follow (a NUL for ""). 0, or -EPROTO. */
int pyversion_from_text(struct pyversion *ret_version, const char *text, size_t bytes, const char *stop);

/* From a loaded image: the word Py_Version, else the text of Py_GetVersion() in its writable memory, else PY_VERSION
 * among its constants. 0, or -ENOENT: none is there (yet). */
int pyversion_of_image(struct pyversion *ret_version, const struct image *image, const struct remote *r);

#endif
