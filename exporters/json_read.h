/* SPDX-License-Identifier: Apache-2.0 */
/* JSON on its way in, for the readers of formats in it. The text is parsed as it comes, without recursion; what is kept of it are values in one
 * array, parents before what they hold, so that a reader looks up members and columns instead of being called back for each. */
#ifndef SAMPLED_EXPORTERS_JSON_READ_H
#define SAMPLED_EXPORTERS_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yajl/yajl_parse.h>

#include "base/buf.h"
#include "base/fault.h"
#include "exporters/input.h"
#include "exporters/span.h"

/* Parses all of `from`. *moved is set by each callback, so that a text that never ends is noticed; a callback that returns 0 has filled *fault.
 * 0 or -errno with *fault filled, the place in the file with it. *ret_cut (NULL: not asked): the text is good as far as it goes, and ends too
 * early. */
int json_parse(struct input *from, yajl_handle parser, bool *moved, bool *ret_cut, struct fault *fault);

enum json_type { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_TEXT, JSON_ARRAY, JSON_OBJECT };

struct json_value {
	uint32_t type : 8, key_bytes : 24; /* of a member; longer keys are cut */
	uint32_t key_off;                  /* in the tree's texts */
	uint32_t next;                     /* the value behind this one and all in it */
	uint32_t count;                    /* of an array or object: what it holds */
	union {
		double number;
		struct {
			uint32_t off, bytes; /* in the tree's texts; longer ones are cut */
		} text;
	};
};

struct json_tree {         /* all zero: empty */
	struct buf values; /* struct json_value; the first is the whole */
	struct buf texts;
};

void json_tree_release(struct json_tree *tree);

/* All of a text as one tree, at most 1 GiB of values and texts. 0 or -errno with *fault filled. */
int json_read(struct json_tree *ret_tree, struct input *from, struct fault *fault);
/* Each value in the array `key` of the object that the text is, or in the array that it is itself, or, key NULL, each of the values that stand one
 * behind the other. The tree is good until take() returns: 0, or -errno with *fault filled, which ends it. */
int json_each(struct input *from, const char *key,
              int (*take)(void *context, const struct json_tree *tree, struct fault *fault), void *context,
              bool *ret_cut, struct fault *fault);

/* NULL: there is no such member, or `object` is none (NULL too). */
const struct json_value *json_member(const struct json_tree *tree, const struct json_value *object, const char *key);
static inline const struct json_value *json_root(const struct json_tree *tree)
{
	return tree->values.bytes ? (const struct json_value *)(const void *)tree->values.data : NULL;
}
/* The values in an array or object: first, and next after one; NULL: none. */
const struct json_value *json_first(const struct json_value *of);
const struct json_value *json_after(const struct json_tree *tree, const struct json_value *of,
                                    const struct json_value *value);
/* The value at `index` of an array of numbers, texts and such, at once; of one that holds arrays or objects, step by step, up to 256. NULL: there is none. */
const struct json_value *json_at(const struct json_tree *tree, const struct json_value *array, uint64_t index);
/* `otherwise`: it is no number. */
double json_number(const struct json_value *value, double otherwise);
/* A number that is whole and from 0 to `most`; else UINT64_MAX. */
uint64_t json_index(const struct json_value *value, uint64_t most);
/* Without bytes: it is no text. */
struct span json_text(const struct json_tree *tree, const struct json_value *value);
bool json_is(const struct json_tree *tree, const struct json_value *value, const char *text);


#endif
