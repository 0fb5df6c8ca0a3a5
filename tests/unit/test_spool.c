/* SPDX-License-Identifier: Apache-2.0 */
/* The spool: what is written is read back, whole, bounded, and within what servers take; and what nobody wrote so is refused. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "build_profile.h"
#include "daemon/push_queue.h"
#include "daemon/spool_files.h"
#include "daemon/spool_pack.h"
#include "daemon/spool_read.h"
#include "daemon/spool_write.h"
#include "exporters/formats.h"

static char dir[] = "/tmp/sampled-spool-XXXXXX";
static int dir_fd;
static struct fault fault;
static struct spool_counts counts;

static void setup(void)
{
	cr_assert(mkdtemp(dir));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
	cr_assert(dir_fd >= 0);
}

static void teardown(void)
{
	char command[160];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert_eq(system(command), 0);
}

TestSuite(spool, .init = setup, .fini = teardown);

static struct profile *small(void)
{
	struct profile *p = built_new();
	uint32_t process = built_process(p, 7, "python3 app.py"), thread = built_thread(p, process, 0, 8, "main");
	uint32_t f = built_symbol(p, "f", "a.py", 1), g = built_symbol(p, "g", "a.py", 9);
	uint32_t at = built_child(p, thread, 0, f, 2);

	built_sample(p, thread, at, 3, 0);
	built_sample(p, thread, built_child(p, thread, at, g, 10), 4, 0);
	return p;
}

static const struct label named[] = {{"service_name", "caf\xc3\xa9 \"<1>\""}, {"host", "h"}, {"empty", ""}};

static int write_items(const struct profile *p, size_t count, uint64_t max_bytes)
{
	struct spool_item items[4];

	for (size_t i = 0; i < count; i++)
		items[i] = (struct spool_item){
			.labels = {named, 3}, .from_ns = 1000 + i, .until_ns = 2000 + i, .profile = p};
	return spool_write(dir_fd, items, count, max_bytes, &counts, &fault);
}

/* The profile in an item; freed with profile_free(). */
static struct profile *unpacked(const void *packed, size_t bytes)
{
	struct input *in = malloc(sizeof(*in));
	struct builder *builder;

	cr_assert(in && input_open_bytes(in, packed, bytes) == 0);
	cr_assert_eq(builder_new(&builder, &(struct builder_options){0}), 0);
	cr_assert_eq(pprof_read(in, builder, &fault), 0, "%s", fault.why);
	input_close(in);
	free(in);
	return built_finish(builder);
}

Test(spool, what_is_written_is_read_back)
{
	struct profile *p = small();
	struct spool_names names;
	struct spool_reader reader;
	struct spool_read_item item;
	struct stat status;

	umask(077);
	cr_assert_eq(write_items(p, 2, 1 << 20), 0, "%s", fault.why);
	cr_assert(counts.files == 1 && counts.items == 2 && counts.failed_items == 0 && counts.pruned_items == 0);
	cr_assert_eq(spool_list(dir_fd, &names), 0);
	cr_assert_eq(names.count, 1);
	cr_assert_eq(fstatat(dir_fd, names.items[0].text, &status, 0), 0);
	cr_assert_eq(status.st_mode & 0777, 0660, "who sends is of the group, whatever the umask is");
	cr_assert_eq(spool_reader_open(&reader, dir_fd, names.items[0].text, &fault), 0);
	for (uint64_t i = 0; i < 2; i++) {
		struct profile *back;

		cr_assert_eq(spool_reader_next(&reader, &item, &fault), 1, "%s", fault.why);
		cr_assert(item.from_ns == 1000 + i && item.until_ns == 2000 + i && item.labels.count == 3);
		cr_assert_str_eq(labels_value(item.labels, "service_name"), named[0].value);
		cr_assert_str_eq(labels_value(item.labels, "empty"), "");
		cr_assert_null(labels_value(item.labels, "unit"));
		back = unpacked(item.packed, item.packed_bytes);
		cr_assert_eq(profile_sum(back, VALUE_SAMPLES), 7);
		cr_assert_eq(profile_sum(back, VALUE_WALL), profile_sum(p, VALUE_WALL));
		profile_free(back);
	}
	cr_assert_eq(spool_reader_next(&reader, &item, &fault), 0);
	spool_reader_close(&reader);
	spool_names_release(&names);
	built_free(p);
}

Test(spool, the_oldest_go_beyond_the_bound_and_are_counted)
{
	struct profile *p = small();
	struct spool_names names;

	for (int i = 0; i < 9; i++)
		cr_assert_eq(write_items(p, 1, 5 * 4096), 0, "%s", fault.why);
	cr_assert_eq(spool_list(dir_fd, &names), 0);
	cr_assert(names.bytes <= 5 * 4096 && names.count >= 2);
	cr_assert_eq(counts.files, 9);
	cr_assert_eq(counts.dropped_files, 9 - names.count);
	cr_assert_eq(strcmp(names.items[0].text, names.items[1].text) < 0, 1);
	cr_assert_eq(write_items(p, 1, 100), -EFBIG, "one that never fits");
	cr_assert_eq(counts.failed_items, 1);
	spool_names_release(&names);
	built_free(p);
}

Test(spool, files_that_were_never_finished_are_swept)
{
	struct profile *p = small();
	char name[SPOOL_NAME_ROOM];
	int fd;

	spool_name_make(name, 1700000000000000000, 5, true);
	cr_assert_str_eq(name, ".20231114T221320Z-000005.tmp");
	fd = openat(dir_fd, name, O_CREAT | O_WRONLY, 0600);
	cr_assert(fd >= 0);
	close(fd);
	cr_assert_eq(write_items(p, 1, 1 << 20), 0);
	cr_assert(faccessat(dir_fd, name, F_OK, 0) != 0);
	built_free(p);
}

/* Threads each with `stacks` different ones. */
static struct profile *large(uint32_t threads, uint32_t stacks, size_t name_bytes)
{
	struct profile *p = built_new();
	uint32_t process = built_process(p, 7, "python3 app.py");
	char *name = malloc(name_bytes + 32);

	cr_assert(name);
	for (uint32_t t = 0; t < threads; t++) {
		uint32_t thread = built_thread(p, process, 0, t + 1, "worker");

		for (uint32_t i = 0; i < stacks; i++) {
			memset(name, 'n', name_bytes);
			snprintf(name + name_bytes, 32, "%u", i);
			built_sample(p, thread, built_child(p, thread, 0, built_symbol(p, name, "a.py", i), i),
			             1 + i % 3, 0);
		}
	}
	free(name);
	return p;
}

static void check_packed(const struct profile *p)
{
	struct buf packed = {0};
	struct profile *back;
	uint64_t samples = 0;
	bool pruned = false;
	const unsigned char *tail;

	cr_assert_eq(spool_pack(p, &packed, &pruned, &fault), 0, "%s", fault.why);
	cr_assert(pruned);
	tail = (const unsigned char *)packed.data + packed.bytes - 4;
	cr_assert((tail[0] | tail[1] << 8 | tail[2] << 16 | tail[3] << 24) <= 4 << 20);
	back = unpacked(packed.data, packed.bytes);
	cr_assert_eq(profile_sum(back, VALUE_SAMPLES), profile_sum(p, VALUE_SAMPLES), "sums stay");
	cr_assert_eq(profile_sum(back, VALUE_WALL), profile_sum(p, VALUE_WALL));
	for (uint32_t t = 0; t < back->thread_count; t++)
		for (uint32_t n = 0; n < back->threads[t].node_count; n++)
			samples += back->threads[t].nodes[n].self[VALUE_SAMPLES] > 0;
	cr_assert(samples <= SPOOL_SAMPLES_MAX);
	profile_free(back);
	buf_release(&packed);
}

Test(spool, no_more_samples_than_servers_take)
{
	struct profile *p = large(1, 20000, 0);

	check_packed(p);
	built_free(p);
}

Test(spool, no_more_bytes_than_servers_take)
{
	struct profile *p = large(1, 300, 20000);

	check_packed(p);
	built_free(p);
}

Test(spool, no_more_threads_than_servers_take)
{
	struct profile *p = large(17000, 1, 0);

	check_packed(p);
	built_free(p);
}

Test(spool, stacks_without_a_frame_get_one)
{
	struct profile *p = small(), *back;
	uint32_t idle = built_thread(p, 0, 0, 9, "native");
	struct buf packed = {0};
	uint64_t nameless = 0;
	bool pruned;

	built_sample(p, idle, 0, 5, 0);
	built_sample(p, 0, 0, 2, 0);
	cr_assert_eq(spool_pack(p, &packed, &pruned, &fault), 0);
	cr_assert_not(pruned);
	cr_assert_eq(p->threads[idle].nodes[0].self[VALUE_SAMPLES], 5, "the profile is as it was");
	back = unpacked(packed.data, packed.bytes);
	for (uint32_t t = 0; t < back->thread_count; t++)
		nameless += back->threads[t].nodes[0].self[VALUE_SAMPLES];
	cr_assert_eq(nameless, 0);
	cr_assert_eq(profile_sum(back, VALUE_SAMPLES), 14);
	profile_free(back);
	buf_release(&packed);
	built_free(p);
}

/* A file of these bytes. */
static void put(const char *name, const void *bytes, size_t count)
{
	int fd = openat(dir_fd, name, O_CREAT | O_TRUNC | O_WRONLY, 0600);

	cr_assert(fd >= 0 && write(fd, bytes, count) == (ssize_t)count);
	close(fd);
}

static int read_one(const char *text)
{
	struct spool_reader reader;
	struct spool_read_item item;
	int err;

	fault = (struct fault){0};
	put("x", text, strlen(text));
	err = spool_reader_open(&reader, dir_fd, "x", &fault);
	if (err)
		return err;
	err = spool_reader_next(&reader, &item, &fault);
	spool_reader_close(&reader);
	return err;
}

#define LINE(members) SPOOL_HEAD "{" members "}\n"
#define TIMES         "\"from_ns\":\"1\",\"until_ns\":\"2\""

Test(spool, what_makes_no_sense_is_refused)
{
	static const char *const bad[] = {
		"",
		"sampled-spool 2\n",
		SPOOL_HEAD "{",
		SPOOL_HEAD "[]\n",
		SPOOL_HEAD "{}\n",
		LINE("\"labels\":{}," TIMES ",\"bytes\":99"),
		LINE("\"labels\":{}," TIMES ",\"bytes\":-1"),
		LINE("\"labels\":{}," TIMES ",\"bytes\":1e3"),
		LINE("\"labels\":{}," TIMES ",\"bytes\":99999999999999999999999"),
		LINE("\"labels\":{\"a\":\"1\",\"a\":\"2\"}," TIMES ",\"bytes\":20"),
		LINE("\"labels\":{\"a b\":\"1\"}," TIMES ",\"bytes\":20"),
		LINE("\"labels\":{\"1\":\"1\"}," TIMES ",\"bytes\":20"),
		LINE("\"labels\":{\"a\":\"\\u0000\"}," TIMES ",\"bytes\":20"),
		LINE("\"labels\":{\"a\":{}}," TIMES ",\"bytes\":20"),
		LINE("\"labels\":[[[[]]]]," TIMES ",\"bytes\":20"),
		LINE("\"labels\":null," TIMES ",\"bytes\":20"),
		LINE("\"labels\":{}," TIMES "," TIMES ",\"bytes\":20"),
		LINE("\"labels\":{},\"from_ns\":\"3\",\"until_ns\":\"2\",\"bytes\":20"),
		LINE("\"labels\":{},\"from_ns\":\"9223372036854775808\",\"until_ns\":\"2\",\"bytes\":20"),
		LINE("\"labels\":{}," TIMES ",\"bytes\":20") "not packed with gzip",
		LINE("\"labels\":{}," TIMES ",\"bytes\":20") "\x1f\x8b too short",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_assert_eq(read_one(bad[i]), -EPROTO, "%s", bad[i]);
		cr_assert(fault.why[0]);
	}
	cr_assert_eq(
		read_one(LINE("\"labels\":{}," TIMES ",\"bytes\":20,\"later\":\"x\"") "\x1f\x8b 45678901234567890"), 1);
}

Test(spool, a_file_must_be_one)
{
	struct spool_reader reader;

	cr_assert_eq(mkfifoat(dir_fd, "fifo", 0600), 0);
	cr_assert_eq(spool_reader_open(&reader, dir_fd, "fifo", &fault), -EPROTO);
	cr_assert_eq(symlinkat("/etc/passwd", dir_fd, "link"), 0);
	cr_assert_eq(spool_reader_open(&reader, dir_fd, "link", &fault), -ELOOP);
	cr_assert_not(spool_name_is_valid("20231114T221320Z-00000x.spool"));
	cr_assert_not(spool_name_is_valid(".20231114T221320Z-000005.tmp"));
	cr_assert(spool_name_is_valid("20231114T221320Z-000005.spool"));
}

/* --- the queue of who sends --- */

static char a[] = "a", b[] = "b";

static struct push_config config_of_two(void)
{
	struct push_config c = {.spool = dir, .spool_bytes = 1 << 20, .destination_count = 2};

	c.destinations[0].name = a;
	c.destinations[1].name = b;
	return c;
}

Test(spool, a_file_is_removed_when_all_are_through)
{
	struct push_config config = config_of_two();
	struct profile *p = small();
	struct push_queue queue;
	struct push_entry *entry;
	char name[SPOOL_NAME_ROOM], sent[SPOOL_NAME_ROOM];

	cr_assert_eq(write_items(p, 3, 1 << 20), 0);
	cr_assert_eq(push_queue_open(&queue, &config, &fault), 0, "%s", fault.why);
	cr_assert_eq(push_queue_scan(&queue), 0);
	cr_assert_eq(queue.count, 1);
	strcpy(name, push_queue_oldest(&queue, 1)->name.text);
	push_queue_sent(&queue, name, 1);
	push_queue_sent(&queue, name, 1);
	push_queue_done(&queue, name, 0);
	cr_assert_null(push_queue_oldest(&queue, 0));
	push_queue_close(&queue);

	/* One that starts anew goes on where it was. */
	cr_assert_eq(push_queue_open(&queue, &config, &fault), 0);
	cr_assert_eq(push_queue_scan(&queue), 0);
	cr_assert_null(push_queue_oldest(&queue, 0));
	entry = push_queue_oldest(&queue, 1);
	cr_assert(entry && entry->sent[1] == 2);
	push_queue_done(&queue, name, 1);
	cr_assert_eq(queue.count, 0);
	cr_assert(faccessat(dir_fd, name, F_OK, 0) != 0, "it is gone");
	spool_name_sent(sent, name);
	cr_assert(faccessat(dir_fd, sent, F_OK, 0) != 0, "and so is what was noted");
	push_queue_close(&queue);
	built_free(p);
}

Test(spool, the_sender_keeps_the_bound_too)
{
	struct push_config config = config_of_two();
	struct profile *p = small();
	struct push_queue queue;

	for (int i = 0; i < 4; i++)
		cr_assert_eq(write_items(p, 1, 1 << 20), 0);
	config.spool_bytes = 2 * 4096;
	cr_assert_eq(push_queue_open(&queue, &config, &fault), 0);
	cr_assert_eq(push_queue_scan(&queue), 0);
	cr_assert(queue.bytes <= 2 * 4096 && queue.count + queue.dropped_files == 4);
	cr_assert_eq(unlinkat(dir_fd, queue.entries[0].name.text, 0), 0);
	cr_assert_eq(push_queue_scan(&queue), 0);
	cr_assert(queue.count + queue.dropped_files == 4, "one that its writer removed is counted");
	push_queue_close(&queue);
	built_free(p);
}
