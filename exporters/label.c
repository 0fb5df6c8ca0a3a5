/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/label.h"

#include <string.h>

const char *labels_value(struct labels labels, const char *name)
{
	for (size_t i = 0; i < labels.count; i++)
		if (strcmp(labels.items[i].name, name) == 0)
			return labels.items[i].value;
	return NULL;
}
