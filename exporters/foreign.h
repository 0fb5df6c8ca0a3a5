/* SPDX-License-Identifier: Apache-2.0 */
/* Formats that are not read, told by their own marks: they are refused by name, and no reader that takes any text may have them. */
#ifndef SAMPLED_EXPORTERS_FOREIGN_H
#define SAMPLED_EXPORTERS_FOREIGN_H

#include <stddef.h>

struct foreign {
	const char *name; /* "perf.data" */
	const char *hint; /* what makes it readable; "": nothing that we know of */
};

/* By how it begins. NULL: it is none that we know. */
const struct foreign *foreign_by_content(const unsigned char *head, size_t bytes);

#endif
