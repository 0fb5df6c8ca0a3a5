/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as arguments: no read out of bounds; and of a password, whatever its bytes, nothing is left. */
#include <stdlib.h>
#include <string.h>

#include "sampler/command_line.h"
#include "base/secrets.h"
#include "tests/fuzz/common.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const char plain[] = "app\0--password=";
	char *copy = malloc(bytes + sizeof(plain)); /* of the exact size, so that one byte too far is seen */
	char *shown = malloc(bytes + 1);
	struct buf masked = {0};

	expect(copy != NULL && shown != NULL);
	memcpy(copy, data, bytes);
	secrets_mask(&masked, copy, bytes);
	expect(masked.err == 0);
	buf_release(&masked);
	for (int how = COMMAND_LINE_FULL; how <= COMMAND_LINE_PROGRAM; how++)
		expect(command_line_show(shown, bytes + 1, copy, bytes, (enum command_line)how) == strlen(shown));
	/* Whatever an option's value is: nothing of it is left. */
	memcpy(copy, plain, sizeof(plain) - 1);
	memset(copy + sizeof(plain) - 1, 'x', bytes);
	for (size_t i = 0; i < bytes; i++)
		if (data[i] != '\0')
			copy[sizeof(plain) - 1 + i] = (char)data[i];
	secrets_mask(&masked, copy, sizeof(plain) - 1 + bytes);
	expect(masked.bytes == sizeof(plain) - 1 + (bytes ? strlen(SECRETS_MASK) : 0));
	buf_release(&masked);
	free(copy);
	free(shown);
	return 0;
}
