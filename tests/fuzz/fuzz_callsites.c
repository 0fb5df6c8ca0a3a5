/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as bytecode of any version to 3.10: no read or write out of bounds, an end, sites in order and slots in the stack.
 * Input: version's byte, stack size, then the bytecode. */
#include "sampler/callsites.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/common.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const struct pyabi *abi;
	struct callsite *sites;
	uint8_t *code;
	int count;

	if (bytes < 2 || bytes > 1 << 16)
		return 0;
	abi = pyabi_table(3, 6 + data[0] % 5);
	code = malloc(bytes - 2 > 0 ? bytes - 2 : 1); /* of the exact size, so that one byte too far is seen */
	expect(abi != NULL && code != NULL);
	memcpy(code, data + 2, bytes - 2);
	count = callsites_find_all(abi, code, (uint32_t)(bytes - 2), data[1], &sites);
	expect(count >= 0 && (size_t)count <= (bytes - 2) / 2);
	for (int i = 0; i < count; i++) {
		expect(i == 0 || sites[i].offset > sites[i - 1].offset);
		expect(sites[i].kind == CALLSITE_OTHER || (sites[i].slot < sites[i].end && sites[i].end <= data[1]));
		expect(callsites_at(sites, (uint32_t)count, sites[i].offset) == &sites[i]);
	}
	free(sites);
	free(code);
	return 0;
}
