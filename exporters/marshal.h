/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what Python's marshal module wrote, versions 0 to 5, as far as pstats files hold it: numbers, texts, tuples' and dictionaries' heads,
 * references to values before, and code objects, which are passed over (marshal_code.c). Hostile input: what is kept is bounded, and nothing is allocated by a length that the input claims. */
#ifndef SAMPLED_EXPORTERS_MARSHAL_H
#define SAMPLED_EXPORTERS_MARSHAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/fault.h"
#include "exporters/input.h"
#include "exporters/intern.h"

enum marshal_kind {
	MARSHAL_IS_NULL, /* no value: the end of a dictionary */
	MARSHAL_IS_NUMBER,
	MARSHAL_IS_FLOAT,
	MARSHAL_IS_TEXT,
	MARSHAL_IS_TUPLE, /* its items follow */
	MARSHAL_IS_DICT,  /* keys and values follow, then MARSHAL_IS_NULL */
	MARSHAL_IS_KNOWN, /* a reference to something that marshal_remember() was told of */
	MARSHAL_IS_CODE,  /* its parts follow: marshal_skip_code() */
	MARSHAL_IS_OTHER, /* None, True, False, and what has no other kind */
};

#define MARSHAL_NO_SLOT UINT32_MAX

struct marshal_value {
	enum marshal_kind kind;
	union {
		int64_t number; /* beyond its range: the nearest */
		double real;
		uint32_t index; /* IS_TEXT: in texts; IS_TUPLE: items; IS_KNOWN: what it was remembered as */
	};
	uint32_t slot; /* IS_TUPLE, IS_DICT: for marshal_remember(); MARSHAL_NO_SLOT: nothing will refer to it */
};

struct marshal { /* all zero but `in` and `fault`: at the start */
	struct input *in;
	struct fault *fault;
	struct text_set texts;
	struct buf slots;    /* struct marshal_value: what a reference may mean */
	struct buf interned; /* uint32_t: texts, for Python 2's references */
	struct buf text;     /* the one being read */
};

void marshal_release(struct marshal *m);
/* The next value, or the head of one. 0 or -errno with *fault filled. */
int marshal_next(struct marshal *m, struct marshal_value *ret_value);
/* Passes over a code object, whose type byte marshal_next() took off (MARSHAL_IS_CODE), of any Python from 2.7 on, and all that is in it. Its
 * name and file are texts of the set; its first line. 0 or -errno with *fault filled. */
int marshal_skip_code(struct marshal *m, uint32_t *ret_name, uint32_t *ret_file, uint32_t *ret_line);
/* What was read gets a number of its own, by which it is referred to. 0 or -errno. */
int marshal_add_slot(struct marshal *m, struct marshal_value *value);
/* A tuple that was read means `index` to the caller, when it is referred to. */
void marshal_remember(struct marshal *m, uint32_t slot, uint32_t index);
/* Fills the fault with what is wrong and where. Returns -EPROTO. */
int marshal_wrong(const struct marshal *m, const char *what);

#endif
