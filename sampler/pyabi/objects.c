/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/pyabi/objects.h"

/* The head of a code object that 3.6 and 3.7 share, and that of 3.8 to 3.10, which have positional-only arguments. */
#define CODE_TO_37  {.flags = 32, .argcount = 16, .kwonlyargcount = 20, .nlocals = 24, .varnames = 64, .freevars = 72, .cellvars = 80, .localsplusnames = ABSENT, .localspluskinds = ABSENT}
#define CODE_TO_310 {.flags = 36, .argcount = 16, .kwonlyargcount = 24, .nlocals = 28, .varnames = 72, .freevars = 80, .cellvars = 88, .localsplusnames = ABSENT, .localspluskinds = ABSENT}
#define CODE_FROM_312 {.flags = 48, .argcount = 52, .kwonlyargcount = 60, .nlocals = ABSENT, .varnames = ABSENT, .freevars = ABSENT, .cellvars = ABSENT, .localsplusnames = 96, .localspluskinds = 104}

static const struct pyobjects objects[] = {
	{
		.first_minor = 6, .last_minor = 6,
		.frame = {.first = 376, .globals = 48, .locals = 56},
		.code = CODE_TO_37,
		.func = {.qualname = 104},
		.gen = {.qualname = 56},
	},
	{
		.first_minor = 7, .last_minor = 7,
		.frame = {.first = 360, .globals = 48, .locals = 56},
		.code = CODE_TO_37,
		.func = {.qualname = 104},
		.gen = {.qualname = 56},
		.named_deltas = true, .lone_argument = true,
	},
	{
		.first_minor = 8, .last_minor = 9,
		.frame = {.first = 360, .globals = 48, .locals = 56},
		.code = CODE_TO_310,
		.func = {.qualname = 104},
		.gen = {.qualname = 56},
		.named_deltas = true, .lone_argument = true,
	},
	{
		.first_minor = 10, .last_minor = 10,
		.frame = {.first = 352, .globals = 48, .locals = 56},
		.code = CODE_TO_310,
		.func = {.qualname = 40},
		.gen = {.qualname = 48},
		.named_deltas = true, .lone_argument = true,
	},
	{
		.first_minor = 11, .last_minor = 11,
		.frame = {.first = ABSENT, .globals = 8, .locals = 24},
		.code = {.flags = 48, .argcount = 56, .kwonlyargcount = 64, .nlocals = ABSENT, .varnames = ABSENT,
		         .freevars = ABSENT, .cellvars = ABSENT, .localsplusnames = 96, .localspluskinds = 104},
		.func = {.qualname = 40},
		.gen = {.qualname = 40},
		.named_deltas = true, .lone_argument = true,
	},
	{
		.first_minor = 12, .last_minor = 13,
		.frame = {.first = ABSENT, .globals = 24, .locals = 40},
		.code = CODE_FROM_312,
		.func = {.qualname = 40},
		.gen = {.qualname = 32},
		.int_tag = true, .named_deltas = true, .lone_argument = true, .ordered_as_dict = true,
	},
	{
		.first_minor = 14, .last_minor = 15,
		.frame = {.first = ABSENT, .globals = 24, .locals = 40, .tagged = true},
		.code = CODE_FROM_312,
		.func = {.qualname = 40},
		.gen = {.qualname = 32},
		.int_tag = true, .named_deltas = true, .lone_argument = true, .ordered_as_dict = true,
	},
};

const struct pyobjects *pyobjects_of(const struct pyabi *abi)
{
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		if (abi->major == 3 && abi->minor >= objects[i].first_minor && abi->minor <= objects[i].last_minor)
			return &objects[i];
	return NULL;
}
