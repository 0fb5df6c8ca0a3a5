/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile store files a profile under: names and values. */
#ifndef SAMPLED_EXPORTERS_LABEL_H
#define SAMPLED_EXPORTERS_LABEL_H

#include <stddef.h>

struct label {
	const char *name;  /* letters, digits, '_' and '.', no digit first; "service_name" is what all stores want */
	const char *value; /* UTF-8 */
};

struct labels {
	const struct label *items;
	size_t count;
};

/* NULL: there is none. */
const char *labels_value(struct labels labels, const char *name);

#endif
