/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader and the writer of pstats files share. Such a file is one value of Python's marshal module, a dictionary
 * {(file, line, name): (cc, nc, tottime, cumtime, {caller's key: (nc, cc, tottime, cumtime)})}: cc and nc, primitive and all calls, change
 * places in a caller's tuple, as cProfile writes and pstats prints them. marshal.load() leaves what stands behind the first value
 * alone; there ours have a second one, a string: the accounting. (CPython: Python/marshal.c, Lib/cProfile.py, Lib/pstats.py.) */
#ifndef SAMPLED_EXPORTERS_PSTATS_H
#define SAMPLED_EXPORTERS_PSTATS_H

enum marshal_type {
	MARSHAL_NULL = '0', /* the end of a dictionary */
	MARSHAL_NONE = 'N',
	MARSHAL_FALSE = 'F',
	MARSHAL_TRUE = 'T',
	MARSHAL_INT = 'i',
	MARSHAL_INT64 = 'I',
	MARSHAL_LONG = 'l',  /* digits of 15 bits, their count's sign is the number's */
	MARSHAL_FLOAT = 'f', /* in decimal: versions 0 and 1 */
	MARSHAL_BINARY_FLOAT = 'g',
	MARSHAL_STRING = 's', /* bytes */
	MARSHAL_INTERNED = 't',
	MARSHAL_STRINGREF = 'R', /* the nth interned one: Python 2 */
	MARSHAL_UNICODE = 'u',   /* UTF-8, in which lone surrogates may stand */
	MARSHAL_ASCII = 'a',
	MARSHAL_ASCII_INTERNED = 'A',
	MARSHAL_SHORT_ASCII = 'z',
	MARSHAL_SHORT_ASCII_INTERNED = 'Z',
	MARSHAL_TUPLE = '(',
	MARSHAL_SMALL_TUPLE = ')',
	MARSHAL_DICT = '{',
	MARSHAL_LIST = '[',
	MARSHAL_SET = '<',
	MARSHAL_FROZENSET = '>',
	MARSHAL_CODE = 'c',
	MARSHAL_COMPLEX = 'x', /* in decimal, as MARSHAL_FLOAT */
	MARSHAL_BINARY_COMPLEX = 'y',
	MARSHAL_SLICE = ':', /* start, stop, step: 3.14 */
	MARSHAL_ELLIPSIS = '.',
	MARSHAL_STOP_ITERATION = 'S',
	MARSHAL_REF = 'r', /* the nth value that had the flag: version 3 and later */
	MARSHAL_FLAG_REF = 0x80,
};

/* The one function of a file that has none. */
#define PSTATS_NOTHING "<no samples>"
/* The first line of the accounting; the lines of struct callgraph, facts, follow. */
#define PSTATS_FACTS "sampled: what was sampled and lost\n"
/* Of these, the one that says that calls are counted, not samples; and the one that says that the times are not seconds. */
#define PSTATS_CALLS "calls: counted\n"
#define PSTATS_UNIT "unit of the times: "

#endif
