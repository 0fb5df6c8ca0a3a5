/* SPDX-License-Identifier: Apache-2.0 */
/* What an OTLP file says of processes, threads and the sampling itself: the attributes of resources, samples and the scope. */
#include "exporters/otlp.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "exporters/protobuf.h"
#include "exporters/service_name.h"

/* Field numbers, by message. */
enum { SCOPE_NAME = 1, SCOPE_ATTRIBUTES = 3 };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE };
enum { ANY_STRING = 1, ANY_INT = 3, ANY_DOUBLE };
enum { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE };

/* A value that is a text, into o->inner. */
static void any_string(struct otlp *o, const char *text)
{
	utf8_add_valid(&o->text, text, strlen(text));
	pb_message(&o->inner, ANY_STRING, &o->text);
}

/* An attribute of a resource or scope, into `to`. */
static void add_text(struct otlp *o, struct buf *to, uint32_t field, const char *key, const char *text)
{
	pb_bytes(&o->part, KEY_VALUE_KEY, key, strlen(key));
	any_string(o, text);
	pb_message(&o->part, KEY_VALUE_VALUE, &o->inner);
	pb_message(to, field, &o->part);
}

static void add_number(struct otlp *o, struct buf *to, uint32_t field, const char *key, int64_t number)
{
	pb_bytes(&o->part, KEY_VALUE_KEY, key, strlen(key));
	pb_varint(&o->inner, ANY_INT << 3);
	pb_varint(&o->inner, (uint64_t)number);
	pb_message(&o->part, KEY_VALUE_VALUE, &o->inner);
	pb_message(to, field, &o->part);
}

static bool is_rate(const char *key)
{
	size_t bytes = strlen(key);

	return bytes > 3 && strcmp(key + bytes - 3, "_hz") == 0;
}

/* A number in the unit that its key names: an integer, but rates (so that a key has one type in all files) and what is none; its words where
 * there is no number. */
static void add_fact(struct otlp *o, const struct fact *fact)
{
	uint64_t bits;
	char key[64];

	snprintf(key, sizeof(key), "sampled.%s", fact->key);
	if (!isfinite(fact->number)) {
		add_text(o, &o->scope, SCOPE_ATTRIBUTES, key, fact->text);
	} else if (!is_rate(key) && fabs(fact->number) < 0x1p63 && floor(fact->number) == fact->number) {
		add_number(o, &o->scope, SCOPE_ATTRIBUTES, key, (int64_t)fact->number);
	} else {
		memcpy(&bits, &fact->number, sizeof(bits));
		pb_bytes(&o->part, KEY_VALUE_KEY, key, strlen(key));
		pb_fixed64(&o->inner, ANY_DOUBLE, bits);
		pb_message(&o->part, KEY_VALUE_VALUE, &o->inner);
		pb_message(&o->scope, SCOPE_ATTRIBUTES, &o->part);
	}
}

/* The number of an attribute of the dictionary, whose value stands in o->inner. */
static uint32_t number_attribute(struct otlp *o, const char *key)
{
	uint32_t number;

	pb_uint(&o->part, ATTRIBUTE_KEY, stack_tables_string(&o->tables, key));
	pb_message(&o->part, ATTRIBUTE_VALUE, &o->inner);
	number = o->part.err ? INTERN_FAILED : text_set_add(&o->attributes, o->part.data, o->part.bytes);
	o->part.bytes = 0;
	if (number == INTERN_FAILED) {
		o->err = -ENOMEM;
		return 0;
	}
	return number + 1; /* 0 is the zero value */
}

/* For a thread. */
static void add_thread_attribute(struct otlp *o, struct buf *numbers, const char *key)
{
	uint32_t number = number_attribute(o, key);

	if (!o->err)
		pb_varint(numbers, number);
}

uint32_t otlp_text_attribute(struct otlp *o, const char *key, const char *text)
{
	any_string(o, text);
	return number_attribute(o, key);
}

void otlp_name_thread(struct otlp *o, uint32_t thread)
{
	const struct thread_tree *tree = &o->profile->threads[thread];
	struct buf *numbers = &o->thread_attributes[thread];

	if (tree->name && tree->name[0] != '\0') {
		any_string(o, tree->name);
		add_thread_attribute(o, numbers, "thread.name");
	}
	if (tree->tid) {
		pb_uint(&o->inner, ANY_INT, tree->tid);
		add_thread_attribute(o, numbers, "thread.id");
	}
	if (tree->interpreter) {
		pb_int(&o->inner, ANY_INT, tree->interpreter);
		add_thread_attribute(o, numbers, "cpython.interpreter.id");
	}
}

/* Labels that a profile store is told, by the names of OpenTelemetry's conventions where they have one. */
static void add_labels(struct otlp *o, struct buf *to)
{
	static const struct {
		const char *label, *attribute;
	} conventions[] = {{"service_name", "service.name"}, {"host", "host.name"}, {"container", "container.id"}};

	for (size_t i = 0; i < o->labels.count; i++) {
		const char *name = o->labels.items[i].name;

		/* These are the process' own, below. */
		if (strcmp(name, "pid") == 0 || strncmp(name, "process.", 8) == 0)
			continue;
		for (size_t c = 0; c < sizeof(conventions) / sizeof(conventions[0]); c++)
			if (strcmp(name, conventions[c].label) == 0)
				name = conventions[c].attribute;
		add_text(o, to, RESOURCE_ATTRIBUTES, name, o->labels.items[i].value);
	}
}

void otlp_make_resource(struct otlp *o, uint32_t process, struct buf *to)
{
	const struct process *p = &o->profile->processes[process];
	const char *command = p->name ? p->name : "";
	bool is_named = labels_value(o->labels, "service_name") || labels_value(o->labels, "service.name");
	char version[32], *service = service_name(command);

	add_labels(o, to);
	if (!service) {
		o->err = -ENOMEM;
		return;
	}
	if (!is_named)
		add_text(o, to, RESOURCE_ATTRIBUTES, "service.name", service);
	free(service);
	if (p->pid)
		add_number(o, to, RESOURCE_ATTRIBUTES, "process.pid", p->pid);
	if (command[0] != '\0')
		add_text(o, to, RESOURCE_ATTRIBUTES, "process.command_line", command);
	if (p->version) {
		facts_version_text(version, sizeof(version), p->version);
		add_text(o, to, RESOURCE_ATTRIBUTES, "process.runtime.name", "cpython");
		add_text(o, to, RESOURCE_ATTRIBUTES, "process.runtime.version", version);
	}
}

void otlp_make_scope(struct otlp *o)
{
	pb_bytes(&o->scope, SCOPE_NAME, "sampled", strlen("sampled"));
	if (!o->profile->imported)
		add_text(o, &o->scope, SCOPE_ATTRIBUTES, "sampled.mode", o->profile->mode ? o->profile->mode : "wall");
	for (size_t i = 0; i < o->facts.count; i++)
		add_fact(o, &o->facts.items[i]);
}
