/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as collapsed stacks: no read out of bounds, and what was read is written and read again without more samples. */
#include <stdlib.h>

#include "exporters/formats.h"
#include "tests/fuzz/common.h"

static void read_again(const struct profile *profile)
{
	static struct writer to;
	struct profile *again;
	size_t bytes;
	char *text;

	fuzz_memory(&to);
	expect(collapsed_write(profile, &(struct export_options){0}, &to) == 0);
	text = fuzz_written(&to, &bytes);
	again = fuzz_read("collapsed", text, bytes, NULL, NULL);
	/* Less, where a frame begins with '#', as comments do. */
	expect(!again || profile_sum(again, VALUE_SAMPLES) <= profile_sum(profile, VALUE_SAMPLES));
	profile_free(again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	int err;
	struct profile *profile = fuzz_read("collapsed", data, bytes, NULL, &err);

	if (err == 0)
		read_again(profile);
	profile_free(profile);
	return 0;
}
