/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/read_back.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_input(struct profile **ret_profile, const struct format *format, struct input *in,
                      const struct builder_options *options, struct fault *fault)
{
	static const struct builder_options all = {.memory_max_bytes = 1 << 30};
	struct builder *builder;
	int err;

	*fault = (struct fault){0};
	*ret_profile = NULL;
	if (builder_new(&builder, options ? options : &all))
		abort();
	err = format->read(in, builder, fault);
	if (!err)
		err = builder_finish(builder, ret_profile);
	builder_free(builder);
	return err;
}

int read_as(struct profile **ret_profile, const char *format, const void *data, size_t bytes,
            const struct builder_options *options, struct fault *fault)
{
	static struct input in;
	int err;

	if (input_open_bytes(&in, data, bytes))
		abort();
	err = read_input(ret_profile, format_by_name(format), &in, options, fault);
	input_close(&in);
	return err;
}

int read_back(struct profile **ret_profile, const char *format, const void *data, size_t bytes,
              const struct builder_options *options, struct fault *fault)
{
	static struct input in;
	const struct format *found;
	int err;

	if (input_open_bytes(&in, data, bytes))
		abort();
	found = format_by_content(&in);
	if (!found || strcmp(found->name, format) != 0) {
		fprintf(stderr, "it looks like %s\n", found ? found->name : "nothing");
		abort();
	}
	err = read_input(ret_profile, found, &in, options, fault);
	input_close(&in);
	return err;
}

struct profile *read_text(const char *format, const char *text)
{
	struct profile *profile;
	struct fault fault;

	if (read_back(&profile, format, text, strlen(text), NULL, &fault)) {
		fprintf(stderr, "%s\n", fault.why);
		abort();
	}
	return profile;
}

double note_of(const struct profile *profile, const char *key)
{
	for (uint32_t i = 0; i < profile->note_count; i++)
		if (strcmp(profile->notes[i].key, key) == 0)
			return profile->notes[i].number;
	return -1;
}

static void read_any(const char *format, const char *data, size_t bytes)
{
	struct profile *profile;
	struct fault fault;
	int err = read_as(&profile, format, data, bytes, NULL, &fault);

	if (!err)
		profile_free(profile);
	else if (err != -EPROTO || fault.why[0] == '\0')
		abort();
}

void read_damaged(const char *format, const char *data, size_t bytes)
{
	static const char values[] = {0, '\n', ' ', ';', ':', '"', '}', '(', '9', (char)0x80, (char)0xff};
	char *copy = malloc(bytes + 1);

	if (!copy)
		abort();
	for (size_t i = 0; i <= bytes; i++)
		read_any(format, data, i);
	for (size_t i = 0; i < bytes; i++)
		for (size_t v = 0; v < sizeof(values); v++) {
			memcpy(copy, data, bytes);
			copy[i] = values[v];
			read_any(format, copy, bytes);
		}
	free(copy);
}
