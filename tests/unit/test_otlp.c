/* SPDX-License-Identifier: Apache-2.0 */
/* Field numbers and rules: opentelemetry-proto 1.11, profiles/v1development. The bytes are worked out by hand. What the rules ask of large
 * profiles is checked by tests/integration/test_format_otlp.py, with the published descriptors. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporters/format.h"
#include "exporters/protobuf.h"
#include "tests/unit/build_profile.h"

/* What is written has NULs in it: tests/unit/written.h is for text. */
struct file {
	unsigned char *data;
	size_t bytes;
};

static struct file write_file(struct profile *p)
{
	static struct writer to;
	FILE *temporary = tmpfile();
	struct buf content = {0};
	struct file file;

	cr_assert_not_null(temporary);
	writer_open_fd(&to, fileno(temporary));
	cr_assert_eq(format_write(format_by_name("otlp"), p, &(struct export_options){0}, &to), 0);
	cr_assert_eq(writer_close(&to, NULL), 0);
	file.bytes = to.bytes;
	buf_reserve(&content, file.bytes + 1);
	cr_assert_eq(pread(fileno(temporary), content.data, file.bytes, 0), (ssize_t)file.bytes);
	fclose(temporary);
	file.data = (unsigned char *)content.data;
	return file;
}

/* The n-th field with this number, from 0. */
static struct pb_message find(struct pb_message m, uint32_t number, unsigned n)
{
	struct pb_field field;

	while (pb_next(&m, &field))
		if (field.number == number && n-- == 0) {
			cr_assert_eq(field.wire, PB_BYTES);
			return pb_message_of(&field);
		}
	cr_assert(false, "no field %u", number);
	return m;
}

static unsigned count(struct pb_message m, uint32_t number)
{
	struct pb_field field;
	unsigned found = 0;

	while (pb_next(&m, &field))
		found += field.number == number;
	cr_assert(!m.malformed);
	return found;
}

static void expect(struct pb_message m, const char *bytes, size_t length)
{
	cr_assert_eq(m.end - m.at, (ptrdiff_t)length, "%td bytes, not %zu", m.end - m.at, length);
	cr_assert(memcmp(m.at, bytes, length) == 0);
}

#define EXPECT(m, text) expect(m, text, sizeof(text) - 1)

/* Strings: 0 "", 1 samples, 2 count, 3 wall, 4 nanoseconds, 5 cpu, 6 gil, 7 thread.name, 8 thread.id, 9 f, 10 a.py. */
Test(otlp, one_sample_by_hand)
{
	struct profile *p = built_new();
	uint32_t t = built_thread(p, built_process(p, 10, "/usr/bin/python3 -u /srv/x.py"), 0, 10, "T");
	struct pb_message all, resource, scope, wall, dictionary;
	struct file file;

	built_sample(p, t, built_child(p, t, 0, built_symbol(p, "f", "a.py", 3), 4), 2, STATUS_RUNNABLE);
	file = write_file(p);
	all = (struct pb_message){.at = file.data, .end = file.data + file.bytes};
	cr_assert_eq(count(all, 1), 1);
	cr_assert_eq(count(all, 2), 1);
	resource = find(find(all, 1, 0), 1, 0);
	EXPECT(find(resource, 1, 0), "\x0a\x0cservice.name\x12\x06\x0a\x04x.py");
	EXPECT(find(resource, 1, 1), "\x0a\x0bprocess.pid\x12\x02\x18\x0a");
	scope = find(find(all, 1, 0), 2, 0);
	cr_assert_eq(count(scope, 2), 4, "a profile for each kind of value");
	EXPECT(find(find(scope, 1, 0), 1, 0), "sampled");
	wall = find(scope, 2, 0);
	/* type wall/nanoseconds; stack 1, attributes 1 and 2, value 2,000,000; 1.7e18 ns, 5 s; every 1,000,000 of wall/nanoseconds */
	EXPECT(wall, "\x0a\x04\x08\x03\x10\x04"
	             "\x12\x0b\x08\x01\x12\x02\x01\x02\x22\x03\x80\x89\x7a"
	             "\x19\x00\x00\x2a\x36\xfe\x9c\x97\x17"
	             "\x20\x80\xe4\x97\xd0\x12"
	             "\x2a\x04\x08\x03\x10\x04"
	             "\x30\xc0\x84\x3d");
	EXPECT(find(find(scope, 2, 1), 1, 0), "\x08\x01\x10\x02");
	EXPECT(find(find(scope, 2, 2), 1, 0), "\x08\x05\x10\x04");
	EXPECT(find(find(scope, 2, 3), 1, 0), "\x08\x06\x10\x04");
	cr_assert_eq(count(find(scope, 2, 3), 2), 0, "no sample held the GIL");
	dictionary = find(all, 2, 0);
	EXPECT(dictionary, "\x0a\x00"
	                   "\x12\x00\x12\x06\x1a\x04\x08\x01\x10\x04"
	                   "\x1a\x00\x1a\x06\x08\x09\x18\x0a\x20\x03"
	                   "\x22\x00"
	                   "\x2a\x00\x2a\x07samples\x2a\x05" "count\x2a\x04wall\x2a\x0bnanoseconds\x2a\x08runnable\x2a\x03gil"
	                   "\x2a\x0bthread.name\x2a\x09thread.id\x2a\x01" "f\x2a\x04" "a.py"
	                   "\x32\x00\x32\x07\x08\x07\x12\x03\x0a\x01T\x32\x06\x08\x08\x12\x02\x18\x0a"
	                   "\x3a\x00\x3a\x03\x0a\x01\x01");
	free(file.data);
	built_free(p);
}

Test(otlp, empty_profile_is_a_dictionary_of_zero_values)
{
	struct profile *p = built_new();
	struct file file = write_file(p);

	expect((struct pb_message){.at = file.data, .end = file.data + file.bytes},
	       "\x12\x0e\x0a\x00\x12\x00\x1a\x00\x22\x00\x2a\x00\x32\x00\x3a\x00", 16);
	free(file.data);
	built_free(p);
}

/* Stacks are leaf first, shared by threads, and an empty one is stack 0; what no sample needs is not in the dictionary. */
Test(otlp, stacks_are_shared_and_nothing_is_orphaned)
{
	struct profile *p = built_new();
	uint32_t process = built_process(p, 10, "x"), a = built_thread(p, process, 0, 10, "A"), b = built_thread(p, process, 0, 11, NULL);
	uint32_t f = built_symbol(p, "f", "a.py", 1), g = built_symbol(p, "g", "a.py", 2), unused = built_symbol(p, "unused", "b.py", 1);
	uint32_t silent = built_thread(p, process, 0, 12, "silent");
	struct pb_message all, dictionary, samples;
	struct file file;

	built_sample(p, a, built_child(p, a, built_child(p, a, 0, f, 1), g, 2), 1, 0);
	built_sample(p, b, built_child(p, b, built_child(p, b, 0, f, 1), g, 2), 3, 0);
	built_sample(p, b, 0, 5, 0);
	built_child(p, a, 0, unused, 9);
	built_child(p, silent, 0, unused, 9);
	file = write_file(p);
	all = (struct pb_message){.at = file.data, .end = file.data + file.bytes};
	dictionary = find(all, 2, 0);
	cr_assert_eq(count(dictionary, 7), 2, "the empty stack, and one");
	EXPECT(find(dictionary, 7, 1), "\x0a\x02\x02\x01");
	cr_assert_eq(count(dictionary, 2), 3);
	cr_assert_eq(count(dictionary, 3), 3);
	cr_assert_eq(count(dictionary, 6), 4, "none, name and number of A, number of the other");
	samples = find(find(find(all, 1, 0), 2, 0), 2, 1);
	cr_assert_eq(count(samples, 2), 3);
	EXPECT(find(samples, 2, 0), "\x08\x01\x12\x02\x01\x02\x22\x01\x01");
	EXPECT(find(samples, 2, 1), "\x12\x01\x03\x22\x01\x05");
	EXPECT(find(samples, 2, 2), "\x08\x01\x12\x01\x03\x22\x01\x03");
	free(file.data);
	built_free(p);
}

Test(otlp, services_are_named_by_what_runs)
{
	static const char *const names[][2] = {
		{"python3 -m http.server", "http.server"}, {"/usr/sbin/gunicorn --bind x", "gunicorn"}, {"python3", "python3"},
		{"python3 -c print(1)", "python3"},        {"", "unknown_service"},                     {"/", "unknown_service"},
		{"a\xff", "a\xef\xbf\xbd"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct profile *p = built_new();
		struct pb_message resource, value;
		struct file file;

		built_process(p, 10, names[i][0]);
		file = write_file(p);
		resource = find(find((struct pb_message){.at = file.data, .end = file.data + file.bytes}, 1, 0), 1, 0);
		value = find(find(find(resource, 1, 0), 2, 0), 1, 0);
		expect(value, names[i][1], strlen(names[i][1]));
		free(file.data);
		built_free(p);
	}
}
