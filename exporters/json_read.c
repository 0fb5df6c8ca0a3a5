/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/json_read.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/record.h"

enum {
	LEVELS_MAX = 2 * REC_DEPTH_MAX + 64, /* of arrays and objects: two a frame */
	TOKEN_MAX = 16 << 20, /* bytes of one text, which the parser keeps, and looks at again with each piece */
	NUMBER_MAX = 64,      /* digits of one number */
	TEXT_MAX = 2 * REC_TEXT_MAX + 64, /* bytes kept of one text */
	KEY_MAX = 1024,                   /* … of one key */
	STEPS_MAX = 256,                  /* values of an array that are counted off, one by one */
	HELD_MAX = 1 << 30                /* bytes of values and of texts */
};

/* --- the text --- */

/* What the parser says of the text, or the callbacks of what it means; both with the place. */
static int failed(yajl_handle parser, yajl_status status, uint64_t at, struct fault *fault)
{
	char why[sizeof(fault->why)];
	unsigned char *text;
	int err = fault->err;

	if (status == yajl_status_client_canceled && fault->why[0]) {
		memcpy(why, fault->why, sizeof(why));
	} else {
		text = yajl_get_error(parser, 0, NULL, 0);
		err = -EPROTO;
		snprintf(why, sizeof(why), "%.*s", text ? (int)strcspn((char *)text, "\n") : 0,
		         text ? (char *)text : "");
		yajl_free_error(parser, text);
	}
	return fault_set(fault, err, "", "%.200s (at byte %" PRIu64 ")", why, at);
}

int json_parse(struct input *from, yajl_handle parser, bool *moved, bool *ret_cut, struct fault *fault)
{
	const unsigned char *data;
	uint64_t quiet = 0, before = from->bytes;
	yajl_status status;
	size_t bytes;

	fault->why[0] = '\0';
	yajl_config(parser, yajl_dont_validate_strings, 1); /* the builder makes them valid */
	while ((bytes = input_next(from, &data, sizeof(from->data))) > 0) {
		*moved = false;
		status = yajl_parse(parser, data, bytes);
		if (status != yajl_status_ok)
			return failed(parser, status, before + yajl_get_bytes_consumed(parser), fault);
		before += bytes;
		quiet = *moved ? 0 : quiet + bytes;
		if (quiet > TOKEN_MAX)
			return fault_set(fault, -EPROTO, "", "a text in it is longer than %d MiB (at byte %" PRIu64 ")",
			                 TOKEN_MAX >> 20, before - quiet);
	}
	if (from->err)
		return input_fault(from->err, fault);
	status = yajl_complete_parse(parser);
	if (status == yajl_status_ok)
		return 0;
	if (ret_cut)
		*ret_cut = status == yajl_status_error;
	return failed(parser, status, before, fault);
}

/* --- the values --- */

struct reading {
	struct json_tree tree;
	struct buf open; /* uint32_t: the arrays and objects around, which are kept */
	struct buf key;  /* of the member that comes next */
	const char *wanted;
	int (*take)(void *context, const struct json_tree *tree, struct fault *fault);
	void *context;
	uint32_t depth;   /* of arrays and objects, kept or not */
	uint32_t take_at; /* values at this depth are taken, one by one */
	bool inside;      /* … and we are in what holds them */
	bool moved;
	struct fault *fault;
};

static struct json_value *value_at(struct json_tree *tree, uint32_t index)
{
	return (struct json_value *)(void *)tree->values.data + index;
}

static uint32_t count_of(const struct json_tree *tree)
{
	return (uint32_t)(tree->values.bytes / sizeof(struct json_value));
}

static uint32_t keep_text(struct reading *r, const void *text, size_t bytes)
{
	uint32_t off = (uint32_t)r->tree.texts.bytes;

	buf_add(&r->tree.texts, text, bytes);
	return off;
}

static int no_room(struct reading *r)
{
	if (r->tree.values.err || r->tree.texts.err || r->open.err || r->key.err)
		fault_set(r->fault, -ENOMEM, "", "out of memory");
	else
		fault_set(r->fault, -E2BIG, "", "it holds more than %d MiB", HELD_MAX >> 20);
	return 0;
}

/* For yajl: 0 stops. A value that holds none, or the end of one that does. */
static int end_value(struct reading *r)
{
	int err = 0;

	if (r->take && r->inside && r->depth == r->take_at) {
		err = r->take(r->context, &r->tree, r->fault);
		r->tree.values.bytes = r->tree.texts.bytes = 0;
	}
	return err == 0;
}

static int add(struct reading *r, struct json_value value)
{
	size_t levels = r->open.bytes / sizeof(uint32_t);
	uint32_t index = count_of(&r->tree);

	r->moved = true;
	if (r->tree.values.bytes + r->tree.texts.bytes > HELD_MAX)
		return no_room(r);
	if (levels > 0)
		value_at(&r->tree, ((uint32_t *)(void *)r->open.data)[levels - 1])->count++;
	if (r->key.bytes) {
		value.key_bytes = (r->key.bytes - 1) & 0xffffff;
		value.key_off = keep_text(r, r->key.data, value.key_bytes);
		r->key.bytes = 0;
	}
	value.next = index + 1;
	buf_add(&r->tree.values, &value, sizeof(value));
	return !r->tree.values.err && !r->tree.texts.err ? 1 : no_room(r);
}

static bool is_kept(const struct reading *r)
{
	return r->inside;
}

static int scalar(struct reading *r, struct json_value value)
{
	r->moved = true;
	if (!is_kept(r))
		return 1;
	return add(r, value) && end_value(r);
}

static int on_null(void *context)
{
	return scalar(context, (struct json_value){.type = JSON_NULL});
}

static int on_boolean(void *context, int value)
{
	return scalar(context, (struct json_value){.type = value ? JSON_TRUE : JSON_FALSE});
}

static int on_number(void *context, const char *text, size_t bytes)
{
	struct reading *r = context;
	char copy[NUMBER_MAX + 1];

	bytes = bytes > NUMBER_MAX ? NUMBER_MAX : bytes;
	memcpy(copy, text, bytes);
	copy[bytes] = '\0';
	return scalar(r, (struct json_value){.type = JSON_NUMBER, .number = strtod(copy, NULL)});
}

static int on_text(void *context, const unsigned char *text, size_t bytes)
{
	struct reading *r = context;
	struct json_value value = {.type = JSON_TEXT};

	r->moved = true;
	if (!is_kept(r))
		return 1;
	value.text.bytes = (uint32_t)(bytes > TEXT_MAX ? TEXT_MAX : bytes);
	value.text.off = keep_text(r, text, value.text.bytes);
	return scalar(r, value);
}

static int on_key(void *context, const unsigned char *text, size_t bytes)
{
	struct reading *r = context;

	r->moved = true;
	r->key.bytes = 0;
	if (is_kept(r)) {
		buf_add(&r->key, text, bytes > KEY_MAX ? KEY_MAX : bytes);
		buf_putc(&r->key, '\0'); /* an empty one is one, too */
	} else if (r->depth == 1 && r->wanted) {
		r->take_at = strlen(r->wanted) == bytes && memcmp(r->wanted, text, bytes) == 0 ? 2 : 0;
	}
	return !r->key.err ? 1 : no_room(r);
}

static int begin(struct reading *r, enum json_type type)
{
	uint32_t index = count_of(&r->tree);

	r->moved = true;
	if (r->depth++ == LEVELS_MAX) {
		fault_set(r->fault, -EPROTO, "", "it is nested too deep");
		return 0;
	}
	if (is_kept(r)) {
		if (!add(r, (struct json_value){.type = (uint8_t)type}))
			return 0;
		buf_add(&r->open, &index, sizeof(index));
		return !r->open.err ? 1 : no_room(r);
	}
	if (type == JSON_ARRAY && r->wanted && (r->depth == 1 || (r->depth == 2 && r->take_at == 2))) {
		r->take_at = r->depth;
		r->inside = true;
	}
	return 1;
}

static int on_map(void *context)
{
	return begin(context, JSON_OBJECT);
}

static int on_array(void *context)
{
	return begin(context, JSON_ARRAY);
}

static int on_end(void *context)
{
	struct reading *r = context;
	uint32_t index;

	r->moved = true;
	r->depth--;
	if (!is_kept(r))
		return 1;
	if (r->open.bytes == 0) { /* of what held the values that are taken */
		r->inside = false;
		r->take_at = 0;
		return 1;
	}
	r->open.bytes -= sizeof(index);
	memcpy(&index, r->open.data + r->open.bytes, sizeof(index));
	value_at(&r->tree, index)->next = count_of(&r->tree);
	return end_value(r);
}

static int read_values(struct reading *r, struct input *from, bool *ret_cut, struct fault *fault)
{
	static const yajl_callbacks callbacks = {.yajl_null = on_null,
	                                         .yajl_boolean = on_boolean,
	                                         .yajl_number = on_number,
	                                         .yajl_string = on_text,
	                                         .yajl_start_map = on_map,
	                                         .yajl_map_key = on_key,
	                                         .yajl_end_map = on_end,
	                                         .yajl_start_array = on_array,
	                                         .yajl_end_array = on_end};
	yajl_handle parser = yajl_alloc(&callbacks, NULL, r);
	int err;

	if (!parser)
		return fault_set(fault, -ENOMEM, "", "out of memory");
	r->fault = fault;
	if (r->take && !r->wanted)
		yajl_config(parser, yajl_allow_multiple_values, 1);
	err = json_parse(from, parser, &r->moved, ret_cut, fault);
	yajl_free(parser);
	buf_release(&r->open);
	buf_release(&r->key);
	return err;
}

int json_read(struct json_tree *ret_tree, struct input *from, struct fault *fault)
{
	struct reading r = {.inside = true};
	int err = read_values(&r, from, NULL, fault);

	if (!err && r.tree.values.bytes == 0)
		err = fault_set(fault, -EPROTO, "", "it is empty");
	if (err)
		json_tree_release(&r.tree);
	else
		*ret_tree = r.tree;
	return err;
}

int json_each(struct input *from, const char *key,
              int (*take)(void *context, const struct json_tree *tree, struct fault *fault), void *context,
              bool *ret_cut, struct fault *fault)
{
	struct reading r = {.wanted = key, .take = take, .context = context, .inside = !key};
	int err = read_values(&r, from, ret_cut, fault);

	json_tree_release(&r.tree);
	return err;
}

void json_tree_release(struct json_tree *tree)
{
	buf_release(&tree->values);
	buf_release(&tree->texts);
}

/* --- looking at them --- */

const struct json_value *json_first(const struct json_value *of)
{
	return of && (of->type == JSON_ARRAY || of->type == JSON_OBJECT) && of->count ? of + 1 : NULL;
}

const struct json_value *json_after(const struct json_tree *tree, const struct json_value *of,
                                    const struct json_value *value)
{
	return value->next < of->next ? json_root(tree) + value->next : NULL;
}

const struct json_value *json_member(const struct json_tree *tree, const struct json_value *object, const char *key)
{
	size_t bytes = strlen(key);

	if (!object || object->type != JSON_OBJECT)
		return NULL;
	for (const struct json_value *v = json_first(object); v; v = json_after(tree, object, v))
		if (v->key_bytes == bytes && memcmp(tree->texts.data + v->key_off, key, bytes) == 0)
			return v;
	return NULL;
}

const struct json_value *json_at(const struct json_tree *tree, const struct json_value *array, uint64_t index)
{
	const struct json_value *value = json_first(array);

	if (!value || array->type != JSON_ARRAY || index >= array->count)
		return NULL;
	if (array->next - (uint32_t)(array - json_root(tree)) == array->count + 1)
		return value + index;
	if (array->count > STEPS_MAX)
		return NULL;
	while (value && index-- > 0)
		value = json_after(tree, array, value);
	return value;
}

double json_number(const struct json_value *value, double otherwise)
{
	return value && value->type == JSON_NUMBER && isfinite(value->number) ? value->number : otherwise;
}

uint64_t json_index(const struct json_value *value, uint64_t most)
{
	double number = json_number(value, -1);

	return number >= 0 && number <= (double)most && number == floor(number) ? (uint64_t)number : UINT64_MAX;
}

struct span json_text(const struct json_tree *tree, const struct json_value *value)
{
	if (!value || value->type != JSON_TEXT)
		return (struct span){.at = ""};
	return value->text.bytes ? (struct span){.at = tree->texts.data + value->text.off, .bytes = value->text.bytes}
	                         : (struct span){.at = ""};
}

bool json_is(const struct json_tree *tree, const struct json_value *value, const char *text)
{
	struct span span = json_text(tree, value);

	return value && value->type == JSON_TEXT && span.bytes == strlen(text) &&
	       memcmp(span.at, text, span.bytes) == 0;
}
