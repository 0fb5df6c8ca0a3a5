/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/push_request.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "aggregator/builder.h"
#include "base/clock.h"
#include "exporters/base64.h"
#include "exporters/formats.h"
#include "exporters/gzip.h"
#include "exporters/memory.h"
#include "exporters/protobuf.h"

/* Of trees and symbols, when a profile is read to be written in another way. */
#define TREES_MAX_BYTES (UINT64_C(64) << 20)

static const char service_label[] = "service_name", default_service[] = "python";

/* By enum push_type. */
static const struct {
	const char *name, *path, *content_type;
} types[PUSH_TYPES] = {
	[PUSH_PYROSCOPE] = {"pyroscope", "/ingest", "application/octet-stream"},
	[PUSH_PYROSCOPE_PUSH] = {"pyroscope-push", "/push.v1.PusherService/Push", "application/json"},
	[PUSH_PARCA] = {"parca", "/api/profiles/writeraw", "application/json"},
	[PUSH_OTLP] = {"otlp", "/v1development/profiles", "application/x-protobuf"},
};

enum push_type push_type_by_name(const char *name)
{
	int type = 0;

	while (type < PUSH_TYPES && strcmp(name, types[type].name) != 0)
		type++;
	return (enum push_type)type;
}

const char *push_type_name(enum push_type type)
{
	return types[type].name;
}

/* --- addresses --- */

static void add_url(struct buf *to, const char *base, const char *path)
{
	size_t bytes = strlen(base), path_bytes = strlen(path);

	while (bytes > 0 && base[bytes - 1] == '/')
		bytes--;
	buf_add(to, base, bytes);
	/* Who gave the whole address meant it. */
	if (bytes < path_bytes || memcmp(base + bytes - path_bytes, path, path_bytes) != 0)
		buf_puts(to, path);
}

static void add_escaped(struct buf *to, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (isalnum(c) || c == '-' || c == '_' || c == '.' || c == '~')
			buf_putc(to, (char)c);
		else
			buf_printf(to, "%%%02X", c);
	}
}

/* Pyroscope's names have no quotes and no escapes: what would end a value is replaced, as are controls. */
static void add_key_text(struct buf *to, const char *text)
{
	for (; *text; text++)
		buf_putc(to, strchr("{},=", *text) || (unsigned char)*text < ' ' ? '_' : *text);
}

/* SERVICE{NAME=VALUE,…} */
static void make_key(struct buf *to, struct labels labels)
{
	const char *service = labels_value(labels, service_label);
	bool first = true;

	add_key_text(to, service && *service ? service : default_service);
	buf_putc(to, '{');
	for (size_t i = 0; i < labels.count; i++) {
		if (strcmp(labels.items[i].name, service_label) == 0 || labels.items[i].value[0] == '\0')
			continue;
		buf_printf(to, "%s%s=", first ? "" : ",", labels.items[i].name);
		add_key_text(to, labels.items[i].value);
		first = false;
	}
	buf_putc(to, '}');
}

static void add_ingest_query(struct buf *to, const struct push_profile *profile)
{
	struct buf key = {0};
	/* Whole seconds, and one at least: what begins and ends in the same one would be of no time. */
	uint64_t from_s = profile->from_ns / NS_PER_S, until_s = (profile->until_ns + NS_PER_S - 1) / NS_PER_S;

	make_key(&key, profile->labels);
	buf_puts(to, "?name=");
	add_escaped(to, buf_text(&key));
	buf_printf(to, "&from=%" PRIu64 "&until=%" PRIu64 "&spyName=sampled&format=pprof", from_s,
	           until_s > from_s ? until_s : from_s + 1);
	if (key.err)
		to->err = key.err;
	buf_release(&key);
}

/* --- JSON --- */

/* Label names of Prometheus and its kin have no dots. */
static void write_label(struct writer *to, const char *name, const char *value)
{
	writer_puts(to, "{\"name\":\"");
	for (; *name; name++)
		writer_putc(to, *name == '.' ? '_' : *name);
	writer_puts(to, "\",\"value\":");
	writer_json_string(to, value);
	writer_putc(to, '}');
}

/* The list of labels; `name` is what stands for __name__ where no label does. */
static void write_labels(struct writer *to, struct labels labels, const char *name)
{
	writer_putc(to, '[');
	write_label(to, "__name__", labels_value(labels, "__name__") ? labels_value(labels, "__name__") : name);
	if (!labels_value(labels, service_label)) {
		writer_putc(to, ',');
		write_label(to, service_label, default_service);
	}
	for (size_t i = 0; i < labels.count; i++) {
		if (strcmp(labels.items[i].name, "__name__") == 0 || labels.items[i].value[0] == '\0')
			continue;
		writer_putc(to, ',');
		write_label(to, labels.items[i].name, labels.items[i].value);
	}
	writer_putc(to, ']');
}

static void write_base64(struct writer *to, const struct push_profile *profile)
{
	writer_putc(to, '"');
	base64_write(to, profile->packed, profile->packed_bytes);
	writer_putc(to, '"');
}

static int make_parca(struct buf *body, const struct push_profile *profile)
{
	struct writer *to = memory_new();

	if (to) {
		writer_puts(to, "{\"series\":[{\"labels\":{\"labels\":");
		write_labels(to, profile->labels, "sampled");
		writer_puts(to, "},\"samples\":[{\"rawProfile\":");
		write_base64(to, profile);
		writer_puts(to, "}]}],\"normalized\":true}");
	}
	return memory_finish(to, 0, body);
}

/* A random UUID (RFC 9562, version 4): two that are sent twice are the same to Pyroscope. */
static void write_id(struct writer *to)
{
	unsigned char id[16];

	if (getrandom(id, sizeof(id), GRND_NONBLOCK) != (ssize_t)sizeof(id)) {
		writer_fail(to, -EIO);
		return;
	}
	id[6] = (unsigned char)((id[6] & 0x0f) | 0x40);
	id[8] = (unsigned char)((id[8] & 0x3f) | 0x80);
	for (size_t i = 0; i < sizeof(id); i++)
		writer_printf(to, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
}

static int make_pyroscope_push(struct buf *body, const struct push_profile *profile)
{
	struct writer *to = memory_new();

	if (to) {
		writer_puts(to, "{\"series\":[{\"labels\":");
		write_labels(to, profile->labels, "process_cpu");
		writer_puts(to, ",\"samples\":[{\"ID\":\"");
		write_id(to);
		writer_puts(to, "\",\"rawProfile\":");
		write_base64(to, profile);
		writer_puts(to, "}]}]}");
	}
	return memory_finish(to, 0, body);
}

/* --- OTLP --- */

static int read_packed(const struct push_profile *from, struct profile **ret_profile, struct fault *fault)
{
	struct input *in = malloc(sizeof(*in));
	struct builder *builder = NULL;
	int err = in ? builder_new(&builder, &(struct builder_options){.memory_max_bytes = TREES_MAX_BYTES}) : -ENOMEM;

	if (!err)
		err = input_open_bytes(in, from->packed, from->packed_bytes);
	if (!err) {
		err = pprof_read(in, builder, fault);
		input_close(in);
	}
	if (!err)
		err = builder_finish(builder, ret_profile);
	builder_free(builder);
	free(in);
	if (err && !(fault && fault->err))
		fault_set(fault, err, "", "%s", strerror(-err));
	return err;
}

static int make_otlp(struct buf *body, const struct push_profile *from, struct fault *fault)
{
	struct export_options options = {.labels = from->labels};
	struct profile *profile;
	struct buf plain = {0};
	struct writer *to;
	struct gzip *gzip;
	int err = read_packed(from, &profile, fault);

	if (err)
		return err;
	if (profile->wall_start_ns == 0)
		profile->wall_start_ns = from->from_ns;
	to = memory_new();
	err = memory_finish(to, to ? otlp_write(profile, &options, to) : 0, &plain);
	profile_free(profile);
	if (!err) {
		to = memory_new();
		gzip = to ? gzip_new(to) : NULL;
		if (gzip)
			gzip_add(gzip, plain.data, plain.bytes);
		gzip_finish(gzip);
		err = memory_finish(to, 0, body);
	}
	buf_release(&plain);
	return err;
}

uint64_t push_answer_rejected(enum push_type type, const void *answer, size_t bytes)
{
	enum { RESPONSE_PARTIAL = 1, PARTIAL_REJECTED = 1 };
	struct pb_message response = {.at = answer, .end = (const unsigned char *)answer + bytes};
	uint64_t rejected = 0;
	struct pb_field field;

	if (type != PUSH_OTLP || bytes == 0)
		return 0;
	while (pb_next(&response, &field)) {
		struct pb_message partial;

		if (field.number != RESPONSE_PARTIAL || field.wire != PB_BYTES)
			continue;
		partial = pb_message_of(&field);
		while (pb_next(&partial, &field))
			if (field.number == PARTIAL_REJECTED && field.wire == PB_VARINT)
				rejected = field.value;
	}
	return response.malformed ? 0 : rejected;
}

/* --- the whole --- */

int push_request_make(struct push_request *ret_request, enum push_type type, const char *base,
                      const struct push_profile *profile, struct fault *fault)
{
	struct push_request r = {.content_type = types[type].content_type, .gzip = type == PUSH_OTLP};
	struct fault why = {0};
	int err = 0;

	add_url(&r.url, base, types[type].path);
	if (type == PUSH_PYROSCOPE) {
		add_ingest_query(&r.url, profile);
		buf_add(&r.body, profile->packed, profile->packed_bytes);
	} else if (type == PUSH_PYROSCOPE_PUSH) {
		err = make_pyroscope_push(&r.body, profile);
	} else if (type == PUSH_PARCA) {
		err = make_parca(&r.body, profile);
	} else {
		err = make_otlp(&r.body, profile, &why);
	}
	buf_text(&r.url);
	err = err ? err : r.url.err ? r.url.err : r.body.err;
	if (err) {
		push_request_release(&r);
		if (why.err)
			*fault = why;
		else
			fault_set(fault, err, "", "%s", strerror(-err));
		return err;
	}
	*ret_request = r;
	return 0;
}

void push_request_release(struct push_request *request)
{
	buf_release(&request->url);
	buf_release(&request->body);
}
