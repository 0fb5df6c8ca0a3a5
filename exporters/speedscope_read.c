/* SPDX-License-Identifier: Apache-2.0 */
/* Reads speedscope's own format, of any writer: "sampled" and "evented" profiles, each a thread. The keys may come in any
 * order, the frames' names behind the stacks that use them (py-spy), and weights before their stacks; so all stacks go into
 * one tree of numbers first (speedscope_stacks.c), and into the builder at the end (speedscope_build.c).
 *
 * The JSON text is parsed as it comes. What is held is the tree, the frames, and of the profile that is being read which node
 * each of its rows belongs to, rows in a row counted; all of it bounded. This file is the one state machine of the parser's
 * callbacks, hence its length. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "exporters/formats.h"
#include "exporters/json_head.h"
#include "exporters/json_read.h"
#include "exporters/speedscope.h"

enum {
	NESTING_MAX = 64,
	NUMBER_MAX = 64 /* digits of one number */
};

/* Where in the file we are. */
enum place {
	IN_NOTHING,
	IN_FILE,
	IN_SHARED,
	IN_FRAMES,
	IN_FRAME,
	IN_PROFILES,
	IN_PROFILE,
	IN_IDENTITY,
	IN_SAMPLES,
	IN_STACK,
	IN_WEIGHTS,
	IN_COUNTS,
	IN_EVENTS,
	IN_EVENT,
	IN_OTHER /* what we do not look at */
};

/* The keys that lead further, or whose values we take. */
enum key {
	KEY_OTHER,
	KEY_SHARED,
	KEY_FRAMES,
	KEY_NAME,
	KEY_FILE,
	KEY_LINE,
	KEY_PROFILES,
	KEY_UNIT,
	KEY_SAMPLES,
	KEY_WEIGHTS,
	KEY_COUNTS,
	KEY_EVENTS,
	KEY_SAMPLED,
	KEY_PID,
	KEY_PROCESS,
	KEY_INTERPRETER,
	KEY_TID,
	KEY_MAIN,
	KEY_CPU,
	KEY_ORDERED,
	KEY_THREAD,
	KEY_TYPE,
	KEY_AT,
	KEY_FRAME,
	KEYS
};

static const char *const key_names[KEYS] = {
	[KEY_SHARED] = "shared", [KEY_FRAMES] = "frames",   [KEY_NAME] = "name",
	[KEY_FILE] = "file",     [KEY_LINE] = "line",       [KEY_PROFILES] = "profiles",
	[KEY_UNIT] = "unit",     [KEY_SAMPLES] = "samples", [KEY_WEIGHTS] = "weights",
	[KEY_COUNTS] = "counts", [KEY_EVENTS] = "events",   [KEY_SAMPLED] = "sampled",
	[KEY_PID] = "pid",       [KEY_PROCESS] = "process", [KEY_INTERPRETER] = "interpreter",
	[KEY_TID] = "tid",       [KEY_MAIN] = "main",       [KEY_THREAD] = "thread",
	[KEY_TYPE] = "type",     [KEY_AT] = "at",           [KEY_FRAME] = "frame",
	[KEY_CPU] = "cpu",       [KEY_ORDERED] = "ordered",
};

struct reading {
	struct speedscope file;
	enum place places[NESTING_MAX];
	size_t depth;
	enum key key; /* of the value that comes next */
	struct speedscope_frame frame;
	struct speedscope_event event;
	bool has_frames, has_profiles;
	bool moved; /* a value was met since the last look */
	struct fault *fault;
};

static enum place here(const struct reading *r)
{
	return r->depth ? r->places[r->depth - 1] : IN_NOTHING;
}

/* For yajl: 0 stops. */
static int go_on(struct reading *r, int err)
{
	r->moved = true;
	r->key = KEY_OTHER;
	return err == 0;
}

static int malformed(struct reading *r, const char *what)
{
	fault_set(r->fault, -EPROTO, "", "%s", what);
	return 0;
}

static int on_key(void *context, const unsigned char *text, size_t bytes)
{
	struct reading *r = context;

	r->moved = true;
	for (r->key = KEYS - 1; r->key > KEY_OTHER; r->key--)
		if (strlen(key_names[r->key]) == bytes && memcmp(key_names[r->key], text, bytes) == 0)
			break;
	return 1;
}

static int enter(struct reading *r, enum place place)
{
	if (r->depth == NESTING_MAX)
		return malformed(r, "it is nested too deeply");
	r->places[r->depth++] = place;
	return go_on(r, 0);
}

static int on_map(void *context)
{
	struct reading *r = context;
	enum key key = r->key;

	switch (here(r)) {
	case IN_NOTHING:
		return enter(r, IN_FILE);
	case IN_FILE:
		return enter(r, key == KEY_SHARED ? IN_SHARED : IN_OTHER);
	case IN_FRAMES:
		r->frame = (struct speedscope_frame){0};
		return enter(r, IN_FRAME);
	case IN_PROFILES:
		return enter(r, IN_PROFILE) && go_on(r, speedscope_begin(&r->file, r->fault));
	case IN_PROFILE:
		return enter(r, key == KEY_SAMPLED ? IN_IDENTITY : IN_OTHER);
	case IN_EVENTS:
		r->event = (struct speedscope_event){0};
		return enter(r, IN_EVENT);
	case IN_STACK:
	case IN_SAMPLES:
	case IN_WEIGHTS:
	case IN_COUNTS:
		return malformed(r, "an object stands where a number or a stack should");
	default:
		return enter(r, IN_OTHER);
	}
}

static int on_array(void *context)
{
	struct reading *r = context;
	enum key key = r->key;

	switch (here(r)) {
	case IN_NOTHING:
		return malformed(r, "it is an array, no object");
	case IN_FILE:
		r->has_profiles |= key == KEY_PROFILES;
		return enter(r, key == KEY_PROFILES ? IN_PROFILES : IN_OTHER);
	case IN_SHARED:
		if (key == KEY_FRAMES && r->has_frames)
			return malformed(r, "it has the frames twice");
		r->has_frames |= key == KEY_FRAMES;
		return enter(r, key == KEY_FRAMES ? IN_FRAMES : IN_OTHER);
	case IN_PROFILE:
		return enter(r, key == KEY_SAMPLES   ? IN_SAMPLES
		                : key == KEY_WEIGHTS ? IN_WEIGHTS
		                : key == KEY_COUNTS  ? IN_COUNTS
		                : key == KEY_EVENTS  ? IN_EVENTS
		                                     : IN_OTHER);
	case IN_SAMPLES:
		speedscope_stack_begin(&r->file);
		return enter(r, IN_STACK);
	case IN_STACK:
	case IN_WEIGHTS:
	case IN_COUNTS:
	case IN_EVENTS:
	case IN_FRAMES:
	case IN_PROFILES:
		return malformed(r, "an array stands where none should");
	default:
		return enter(r, IN_OTHER);
	}
}

static int on_end(void *context)
{
	struct reading *r = context;
	enum place left = here(r);
	int err = 0;

	r->depth--;
	if (left == IN_FRAME)
		err = speedscope_frame(&r->file, &r->frame, r->fault);
	else if (left == IN_STACK)
		err = speedscope_stack_end(&r->file, r->fault);
	else if (left == IN_SAMPLES)
		err = speedscope_samples_end(&r->file, r->fault);
	else if (left == IN_EVENT)
		err = speedscope_event(&r->file, &r->event, r->fault);
	else if (left == IN_PROFILE)
		err = speedscope_end(&r->file, r->fault);
	return go_on(r, err);
}

static int on_text(void *context, const unsigned char *text, size_t bytes)
{
	struct reading *r = context;
	const char *chars = (const char *)text;
	struct speedscope_profile *profile = r->file.profile;
	uint32_t *to = NULL;
	int err = 0;

	switch (here(r)) {
	case IN_FRAME:
		to = r->key == KEY_NAME ? &r->frame.name : r->key == KEY_FILE ? &r->frame.file : NULL;
		break;
	case IN_PROFILE:
		if (r->key == KEY_NAME)
			to = &profile->name;
		else if (r->key == KEY_UNIT)
			err = speedscope_unit(&r->file, chars, bytes, r->fault);
		break;
	case IN_IDENTITY:
		to = r->key == KEY_PROCESS ? &profile->process : r->key == KEY_THREAD ? &profile->thread : NULL;
		break;
	case IN_EVENT:
		if (r->key == KEY_TYPE)
			r->event.type = bytes == 1 ? chars[0] : '?';
		break;
	case IN_STACK:
	case IN_SAMPLES:
	case IN_WEIGHTS:
	case IN_COUNTS:
		return malformed(r, "a text stands where a number should");
	default:
		break;
	}
	if (to)
		err = speedscope_text(&r->file, chars, bytes, to, r->fault);
	return go_on(r, err);
}

static int take_number(struct reading *r, double number)
{
	struct speedscope_profile *profile = r->file.profile;
	int64_t whole = number >= -9e18 && number <= 9e18 ? (int64_t)number : 0;

	switch (here(r)) {
	case IN_FRAME:
		if (r->key == KEY_LINE && number > 0 && number < UINT32_MAX)
			r->frame.line = (uint32_t)number;
		return 0;
	case IN_STACK:
		return speedscope_stack_frame(&r->file, number, r->fault);
	case IN_WEIGHTS:
		return speedscope_weight(&r->file, number, r->fault);
	case IN_COUNTS:
		return speedscope_count(&r->file, number, r->fault);
	case IN_SAMPLES:
		return fault_set(r->fault, -EPROTO, "", "a number stands where a stack should");
	case IN_EVENT:
		if (r->key == KEY_AT) {
			r->event.at = number;
			r->event.has_at = true;
		} else if (r->key == KEY_FRAME) {
			r->event.frame = number;
			r->event.has_frame = true;
		}
		return 0;
	case IN_IDENTITY:
		if (r->key == KEY_PID)
			profile->pid = whole >= INT32_MIN && whole <= INT32_MAX ? (int32_t)whole : 0;
		else if (r->key == KEY_INTERPRETER)
			profile->interpreter = whole;
		else if (r->key == KEY_TID)
			profile->tid = whole > 0 ? (uint64_t)whole : 0;
		return 0;
	default:
		return 0;
	}
}

static int on_number(void *context, const char *text, size_t bytes)
{
	struct reading *r = context;
	char copy[NUMBER_MAX + 1];

	if (bytes > NUMBER_MAX)
		return here(r) == IN_OTHER ? go_on(r, 0) : malformed(r, "a number has too many digits");
	memcpy(copy, text, bytes);
	copy[bytes] = '\0';
	return go_on(r, take_number(r, strtod(copy, NULL)));
}

static int on_boolean(void *context, int value)
{
	struct reading *r = context;

	if (here(r) == IN_IDENTITY && r->key == KEY_MAIN)
		r->file.profile->is_main = value;
	if (here(r) == IN_IDENTITY && r->key == KEY_CPU)
		r->file.profile->is_cpu = value;
	if (here(r) == IN_IDENTITY && r->key == KEY_ORDERED)
		r->file.profile->unordered = !value;
	if (here(r) == IN_STACK || here(r) == IN_WEIGHTS || here(r) == IN_COUNTS || here(r) == IN_SAMPLES)
		return malformed(r, "something else stands where a number should");
	return go_on(r, 0);
}

static int on_null(void *context)
{
	return on_boolean(context, 0);
}

static const yajl_callbacks callbacks = {
	.yajl_null = on_null,
	.yajl_boolean = on_boolean,
	.yajl_number = on_number,
	.yajl_string = on_text,
	.yajl_start_map = on_map,
	.yajl_map_key = on_key,
	.yajl_end_map = on_end,
	.yajl_start_array = on_array,
	.yajl_end_array = on_end,
};

bool speedscope_detect(const unsigned char *head, size_t bytes)
{
	if (!json_begins(head, bytes, '{'))
		return false;
	if (json_has_key(head, bytes, "$schema") && memmem(head, bytes, "speedscope.app/file-format-schema", 33))
		return true;
	return json_has_key(head, bytes, "shared") && json_has_key(head, bytes, "frames") &&
	       !json_has_key(head, bytes, "stringArray"); /* the Firefox Profiler's */
}

int speedscope_read(struct input *from, struct builder *to, struct fault *fault)
{
	struct reading *r = calloc(1, sizeof(*r));
	yajl_handle parser = r ? yajl_alloc(&callbacks, NULL, r) : NULL;
	int err;

	if (!parser) {
		free(r);
		return fault_set(fault, -ENOMEM, "", "out of memory");
	}
	r->fault = fault;
	r->file.keeps_moments = builder_keeps_runs(to) || builder_wants_time(to);
	err = json_parse(from, parser, &r->moved, NULL, fault);
	if (!err && (!r->has_frames || !r->has_profiles))
		err = fault_set(fault, -EPROTO, "", "it has no \"%s\"", r->has_frames ? "profiles" : "frames");
	if (!err)
		err = speedscope_build(&r->file, to, fault);
	yajl_free(parser);
	speedscope_release(&r->file);
	free(r);
	return err;
}
