/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what Dask's distributed keeps as profiles (see dask_write.c): one tree, or a history, a list of [time, tree]. Members may come in any
 * order, as merge() and json.dump(sort_keys=True) change it; so a tree is gathered first and handed to the builder when it is whole. The
 * parser does not recurse, and takes stacks as deep as ours.
 *
 * An entry of a history stands at its time: a window of time takes or leaves it whole, counted from the first entry. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "base/buf.h"
#include "base/clock.h"
#include "exporters/dask_reader.h"
#include "exporters/formats.h"
#include "exporters/json_head.h"
#include "exporters/json_read.h"

enum {
	LEVELS_MAX = 2 * REC_DEPTH_MAX + 16,    /* of objects: two a frame */
	TEXT_BYTES_MAX = 2 * REC_TEXT_MAX + 64, /* kept of a text */
	TEXTS_BYTES_MAX = 1 << 30,              /* … of all */
};

/* Of a count; dask_tree.c adds them up with care. */
#define COUNT_MAX (UINT64_C(1) << 61)

enum level_kind {
	LEVEL_HISTORY,     /* the list of entries */
	LEVEL_ENTRY,       /* [time, tree] */
	LEVEL_NODE,        /* an object: a node of a tree */
	LEVEL_DESCRIPTION, /* an object: a node's description */
	LEVEL_CHILDREN,    /* an object: identifier → node */
	LEVEL_SAMPLED,     /* an object: what sampled says of the root */
	LEVEL_OTHER,       /* anything else, passed over */
};

enum member {
	MEMBER_OTHER,
	MEMBER_IDENTIFIER,
	MEMBER_DESCRIPTION,
	MEMBER_COUNT,
	MEMBER_CHILDREN,
	MEMBER_NAME,
	MEMBER_FILENAME,
	MEMBER_LINE,
	MEMBER_SAMPLED,
	MEMBER_VALUE,
	MEMBER_UNIT
};

struct level {
	enum level_kind kind;
	enum member member; /* of the object: whose value comes next */
	uint32_t node;
	uint32_t identifier; /* LEVEL_CHILDREN: of the node that comes next */
};

/* Each of the parser's calls asks for it. */
static struct level *top(struct dask_reader *r)
{
	r->moved = true;
	return r->levels.bytes ? (struct level *)(void *)(r->levels.data + r->levels.bytes) - 1 : NULL;
}

static int push(struct dask_reader *r, struct level level)
{
	if (r->levels.bytes / sizeof(level) >= LEVELS_MAX)
		return dask_stop(r, "it is nested too deep");
	buf_add(&r->levels, &level, sizeof(level));
	return !r->levels.err;
}

static uint32_t keep(struct dask_reader *r, const unsigned char *text, size_t bytes)
{
	return text_set_add(&r->texts, (const char *)text, bytes < TEXT_BYTES_MAX ? bytes : TEXT_BYTES_MAX);
}

static int push_node(struct dask_reader *r, uint32_t parent, uint32_t identifier)
{
	uint32_t node = (uint32_t)(r->nodes.bytes / sizeof(struct dask_node));

	if (node >= DASK_NODES_MAX)
		return dask_stop(r, "a tree has more than 16 million nodes");
	buf_add(&r->nodes,
	        &(struct dask_node){
			.parent = parent, .identifier = identifier, .name = INTERN_FAILED, .filename = INTERN_FAILED},
	        sizeof(struct dask_node));
	return !r->nodes.err && push(r, (struct level){.kind = LEVEL_NODE, .node = node});
}

/* --- the parser's callbacks: 0 ends the parsing --- */

static int on_start_map(void *context)
{
	struct dask_reader *r = context;
	struct level *at = top(r);

	if (!at || at->kind == LEVEL_ENTRY) {
		if (r->nodes.bytes || (!at && r->trees))
			return dask_stop(r, "an entry has two trees");
		return push_node(r, 0, INTERN_FAILED);
	}
	if (at->kind == LEVEL_CHILDREN)
		return push_node(r, at->node, at->identifier);
	if (at->kind == LEVEL_NODE && at->member == MEMBER_DESCRIPTION)
		return push(r, (struct level){.kind = LEVEL_DESCRIPTION, .node = at->node});
	if (at->kind == LEVEL_NODE && at->member == MEMBER_CHILDREN)
		return push(r, (struct level){.kind = LEVEL_CHILDREN, .node = at->node});
	if (at->kind == LEVEL_HISTORY)
		return dask_stop(r, "an entry of the history is not [time, tree]");
	if (at->kind == LEVEL_NODE && at->node == 0 && at->member == MEMBER_SAMPLED)
		return push(r, (struct level){.kind = LEVEL_SAMPLED});
	return push(r, (struct level){.kind = LEVEL_OTHER});
}

static int on_end(void *context)
{
	struct dask_reader *r = context;
	struct level ended = *top(r);

	r->levels.bytes -= sizeof(ended);
	if (ended.kind == LEVEL_NODE && ended.node == 0)
		return dask_end_tree(r);
	return 1;
}

static int on_start_array(void *context)
{
	struct dask_reader *r = context;
	struct level *at = top(r);

	if (!at) {
		r->in_history = true;
		return push(r, (struct level){.kind = LEVEL_HISTORY});
	}
	if (at->kind == LEVEL_HISTORY) {
		r->has_time = false;
		return push(r, (struct level){.kind = LEVEL_ENTRY});
	}
	if (at->kind == LEVEL_CHILDREN || at->kind == LEVEL_ENTRY)
		return dask_stop(r, "a list is where a tree should be");
	return push(r, (struct level){.kind = LEVEL_OTHER});
}

static enum member member_of(enum level_kind kind, const unsigned char *key, size_t bytes)
{
	static const struct {
		enum level_kind kind;
		enum member member;
		const char *key;
	} members[] = {{LEVEL_NODE, MEMBER_IDENTIFIER, "identifier"},
	               {LEVEL_NODE, MEMBER_DESCRIPTION, "description"},
	               {LEVEL_NODE, MEMBER_COUNT, "count"},
	               {LEVEL_NODE, MEMBER_CHILDREN, "children"},
	               {LEVEL_DESCRIPTION, MEMBER_NAME, "name"},
	               {LEVEL_DESCRIPTION, MEMBER_FILENAME, "filename"},
	               {LEVEL_DESCRIPTION, MEMBER_LINE, "line_number"},
	               {LEVEL_NODE, MEMBER_SAMPLED, "sampled"},
	               {LEVEL_SAMPLED, MEMBER_VALUE, "value"},
	               {LEVEL_SAMPLED, MEMBER_UNIT, "unit"}};

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (members[i].kind == kind && strlen(members[i].key) == bytes &&
		    memcmp(members[i].key, key, bytes) == 0)
			return members[i].member;
	return MEMBER_OTHER;
}

static int on_key(void *context, const unsigned char *key, size_t bytes)
{
	struct dask_reader *r = context;
	struct level *at = top(r);

	at->member = member_of(at->kind, key, bytes);
	if (r->texts.texts.bytes > TEXTS_BYTES_MAX)
		return dask_stop(r, "it has more than 1 GiB of names");
	if (at->kind == LEVEL_CHILDREN)
		at->identifier = keep(r, key, bytes);
	return at->kind != LEVEL_CHILDREN || at->identifier != INTERN_FAILED;
}

static int on_string(void *context, const unsigned char *text, size_t bytes)
{
	struct dask_reader *r = context;
	struct level *at = top(r);

	if (!at || at->kind == LEVEL_HISTORY || at->kind == LEVEL_ENTRY || at->kind == LEVEL_CHILDREN)
		return dask_stop(r, "a text is where a tree should be");
	if (at->member == MEMBER_NAME)
		dask_raw(r, at->node)->name = keep(r, text, bytes);
	else if (at->member == MEMBER_FILENAME)
		dask_raw(r, at->node)->filename = keep(r, text, bytes);
	else if (at->member == MEMBER_VALUE)
		r->value = keep(r, text, bytes);
	else if (at->member == MEMBER_UNIT)
		r->unit = keep(r, text, bytes);
	else if (at->member == MEMBER_COUNT)
		return dask_stop(r, "a count is a text");
	return 1;
}

/* A number that is not negative, to nanoseconds or as it is. */
static bool take_number(const char *text, size_t bytes, double most, double *ret_number)
{
	char copy[64];

	if (bytes >= sizeof(copy))
		return false;
	memcpy(copy, text, bytes);
	copy[bytes] = '\0';
	*ret_number = strtod(copy, NULL);
	return *ret_number >= 0 && *ret_number <= most;
}

static int on_number(void *context, const char *text, size_t bytes)
{
	struct dask_reader *r = context;
	struct level *at = top(r);
	double number;

	if (!at || at->kind == LEVEL_HISTORY || at->kind == LEVEL_CHILDREN)
		return dask_stop(r, "a number is where a tree should be");
	if (at->kind == LEVEL_ENTRY) {
		if (r->has_time || !take_number(text, bytes, 9e9, &number))
			return dask_stop(r, "an entry's time makes no sense");
		r->time_ns = (uint64_t)(number * 1e9);
		r->time_ns += r->time_ns == 0;
		r->has_time = true;
	} else if (at->member == MEMBER_COUNT) {
		struct dask_node *node = dask_raw(r, at->node);

		if (!take_number(text, bytes, (double)COUNT_MAX, &number))
			return dask_stop(r, "a count makes no sense");
		node->count = (uint64_t)number;
		node->has_count = true;
	} else if (at->member == MEMBER_LINE) {
		if (take_number(text, bytes, UINT32_MAX, &number))
			dask_raw(r, at->node)->line = (uint32_t)number;
	}
	return 1;
}

static int on_other(struct dask_reader *r)
{
	struct level *at = top(r);

	if (!at || at->kind == LEVEL_HISTORY || at->kind == LEVEL_ENTRY || at->kind == LEVEL_CHILDREN ||
	    at->member == MEMBER_COUNT)
		return dask_stop(r, "null, true or false is where a tree or a count should be");
	return 1;
}

static int on_null(void *context)
{
	return on_other(context);
}

static int on_boolean(void *context, int value)
{
	(void)value;
	return on_other(context);
}

/* --- the file --- */

/* What stopped the parser, in place of what it says of that. */
static int parse(struct dask_reader *r, yajl_handle parser, struct input *from, struct fault *fault)
{
	int err = json_parse(from, parser, &r->moved, NULL, fault);

	if (builder_error(r->to))
		return fault_set(fault, builder_error(r->to), "", "%s", strerror(-builder_error(r->to)));
	if (err && !r->why && (r->levels.err || r->nodes.err))
		return fault_set(fault, -ENOMEM, "", "out of memory");
	return err;
}

int dask_read(struct input *from, struct builder *to, struct fault *fault)
{
	static const yajl_callbacks callbacks = {.yajl_null = on_null,
	                                         .yajl_boolean = on_boolean,
	                                         .yajl_number = on_number,
	                                         .yajl_string = on_string,
	                                         .yajl_start_map = on_start_map,
	                                         .yajl_map_key = on_key,
	                                         .yajl_end_map = on_end,
	                                         .yajl_start_array = on_start_array,
	                                         .yajl_end_array = on_end};
	struct dask_reader r = {.to = to, .fault = fault, .value = INTERN_FAILED, .unit = INTERN_FAILED};
	yajl_handle parser = yajl_alloc(&callbacks, NULL, &r);
	uint32_t process = builder_process(to, &(struct process){.name = "dask"});
	int err = 0;

	builder_profile(to)->imported = true;
	r.thread = builder_thread(to, &(struct thread_tree){.process = process, .is_main = true});
	if (!parser)
		return fault_set(fault, -ENOMEM, "", "out of memory");
	err = parse(&r, parser, from, fault);
	if (!err && r.untimed && builder_wants_time(to))
		err = fault_set(fault, -EINVAL, "a history, a list of [time, tree], has it",
		                "one Dask tree holds no time order, so this cannot be done with it");
	if (r.in_history)
		builder_note(to, "dask_entries", "entries of the history", (double)r.trees, false);
	if (r.repaired)
		builder_note(to, "repaired_counts", "nodes that counted less than what they call", (double)r.repaired,
		             true);
	yajl_free(parser);
	buf_release(&r.levels);
	buf_release(&r.nodes);
	text_set_release(&r.texts);
	return err;
}

bool dask_detect(const unsigned char *head, size_t bytes)
{
	if (!json_begins(head, bytes, '{') && !json_begins(head, bytes, '['))
		return false;
	return json_has_key(head, bytes, "children") &&
	       (json_has_key(head, bytes, "identifier") || json_has_key(head, bytes, "line_number"));
}
