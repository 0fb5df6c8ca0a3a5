/* SPDX-License-Identifier: Apache-2.0 */
/* The list of supported versions. A new one: see docs/PYABI.md. */
#include "sampler/pyabi/pyabi.h"

#include "sampler/pyabi/tables.h"

static const struct pyabi *const tables[] = {
	&pyabi_3_6, &pyabi_3_7, &pyabi_3_8, &pyabi_3_9, &pyabi_3_10, &pyabi_3_11, &pyabi_3_12,
};

const struct pyabi *pyabi_table(unsigned major, unsigned minor)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (tables[i]->major == major && tables[i]->minor == minor)
			return tables[i];
	return NULL;
}

const char *pyabi_supported(void)
{
	return "3.6 to 3.15";
}
