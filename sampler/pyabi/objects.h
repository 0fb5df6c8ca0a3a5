/* SPDX-License-Identifier: Apache-2.0 */
/* Where `dump --locals` finds variables in frames and code objects, and what lies in the objects that it shows. Read only then: what samples need is in
 * struct pyabi. Source: Include/ and Objects/ of each release; checked on live processes by tests/integration/test_locals.py. */
#ifndef SAMPLED_SAMPLER_PYABI_OBJECTS_H
#define SAMPLED_SAMPLER_PYABI_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/pyabi/pyabi.h"

struct pyobjects {
	uint8_t first_minor, last_minor; /* of Python 3 */
	struct {
		int32_t first;            /* of the variables; ABSENT: frame.bytes of struct pyabi */
		int32_t globals, locals;  /* f_globals, f_locals */
		bool tagged;              /* a variable's word is a _PyStackRef: the low bits are flags */
	} frame;
	struct {
		int32_t flags, argcount, kwonlyargcount; /* i32 */
		int32_t nlocals;                         /* i32, to 3.10 */
		int32_t varnames, cellvars, freevars;    /* tuples, to 3.10 */
		int32_t localsplusnames, localspluskinds; /* a tuple and a bytes, 3.11+ */
	} code;
	struct {
		int32_t qualname;
	} func;
	struct {
		int32_t qualname; /* of generators, coroutines and asynchronous generators */
	} gen;
	bool int_tag;       /* an int's word at 16 is its count of digits << 3 | its sign: 3.12+; else the signed count */
	bool named_deltas;  /* repr() of a timedelta names its parts: 3.7+ */
	bool lone_argument; /* repr() of an exception with one argument has no comma: 3.7+ */
	bool ordered_as_dict; /* repr() of an OrderedDict shows a dict: 3.12+ */
};

/* Kinds of variables (co_localspluskinds, Include/internal/pycore_code.h). */
enum { LOCAL_HIDDEN = 0x10, LOCAL_CELL = 0x40, LOCAL_FREE = 0x80 };
/* Bits of co_flags (Include/cpython/code.h). */
enum { CODE_OPTIMIZED = 1, CODE_VARARGS = 4, CODE_VARKEYWORDS = 8 };

/* NULL: a version whose values are not known. Static. */
const struct pyobjects *pyobjects_of(const struct pyabi *abi);

#endif
