/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/links.h"

#define FRAME  UINT64_C(0x10000)
#define CALLEE UINT64_C(0x20000)

static uint8_t frame_bytes[PYABI_FRAME_MAX];

static void put(uint64_t at, uint64_t value)
{
	memcpy(frame_bytes + at, &value, sizeof(value));
}

/* A frame with `slots` slots in use; the object that CALLEE belongs to lies in slot `named`. */
static struct link make_frame(const struct pyabi *abi, uint64_t slots, uint64_t named, uint64_t flags)
{
	uint64_t end = (uint64_t)abi->frame.bytes + 8 * slots;
	int32_t top = (int32_t)slots;

	memset(frame_bytes, 0, sizeof(frame_bytes));
	if (abi->frame.stackpointer != ABSENT)
		put((uint64_t)abi->frame.stackpointer, FRAME + end);
	else
		memcpy(frame_bytes + abi->frame.stacktop, &top, sizeof(top));
	put((uint64_t)abi->frame.bytes + 8 * named, (CALLEE - (uint64_t)abi->gen.iframe) | flags);
	return (struct link){.frame = FRAME, .bytes = frame_bytes, .count = sizeof(frame_bytes)};
}

static void check_awaits(const struct pyabi *abi, uint64_t flags)
{
	struct link link = make_frame(abi, 4, 3, flags);

	cr_assert(link_awaits(abi, &link, CALLEE));
	cr_assert_not(link_awaits(abi, &link, CALLEE + 64), "it awaits another one");
	link = make_frame(abi, 4, 2, flags);
	cr_assert(link_awaits(abi, &link, CALLEE), "below what is sent to it");
	link = make_frame(abi, 4, 1, flags);
	cr_assert_not(link_awaits(abi, &link, CALLEE), "a variable names it");
	link = make_frame(abi, 1, 0, flags);
	cr_assert(link_awaits(abi, &link, CALLEE));
	link.count = (uint32_t)abi->frame.bytes;
	cr_assert_not(link_awaits(abi, &link, CALLEE), "its value stack was not copied");
	link = make_frame(abi, 4, 3, flags);
	link.shim = true;
	cr_assert_not(link_awaits(abi, &link, CALLEE));
	link = (struct link){.frame = FRAME};
	cr_assert_not(link_awaits(abi, &link, CALLEE), "there is no copy");
}

Test(links, what_a_frame_awaits_lies_on_its_value_stack)
{
	struct pyabi abi;

	for (unsigned minor = 11; minor <= 12; minor++) {
		cr_assert_not_null(pyabi_table(3, minor));
		check_awaits(pyabi_table(3, minor), 0);
	}
	abi = *pyabi_table(3, 12); /* newer ones say themselves where their fields are */
	abi.frame.bytes = 88;
	abi.frame.stackpointer = 56;
	abi.gen.iframe = 72;
	check_awaits(&abi, 1);
}

/* Whatever a target says of its stack pointer, nothing outside the copy is looked at. */
Test(links, a_senseless_stack_pointer_awaits_nothing)
{
	const int32_t tops[] = {INT32_MIN, -1, 0, 22, 1000, INT32_MAX};
	const uint64_t pointers[] = {
		0, FRAME, FRAME + 8, FRAME + 88, FRAME - 8, UINT64_MAX, FRAME + PYABI_FRAME_MAX + 8};
	struct pyabi abi = *pyabi_table(3, 12);
	uint8_t *copy = malloc((size_t)abi.frame.bytes); /* so small that a sanitizer sees what is read behind it */
	struct link link = {.frame = FRAME, .bytes = copy, .count = (uint32_t)abi.frame.bytes};

	cr_assert_not_null(copy);
	memset(copy, 0, (size_t)abi.frame.bytes);
	for (size_t i = 0; i < sizeof(tops) / sizeof(*tops); i++) {
		memcpy(copy + abi.frame.stacktop, &tops[i], sizeof(tops[i]));
		cr_assert_not(link_awaits(&abi, &link, CALLEE));
	}
	abi.frame.stackpointer = 56;
	for (size_t i = 0; i < sizeof(pointers) / sizeof(*pointers); i++) {
		memcpy(copy + 56, &pointers[i], sizeof(pointers[i]));
		cr_assert_not(link_awaits(&abi, &link, CALLEE));
	}
	free(copy);
}

Test(links, an_awaiter_stood_at_the_send_before_its_yield)
{
	uint8_t resuming[8] = {0};
	struct code code = {.bytecode_bytes = 128, .resuming = resuming};
	int64_t at = 0;

	resuming[46 / 16] |= 1 << 46 / 2 % 8;
	cr_assert(awaited_at(&code, 52, &at));
	cr_assert_eq(at, 46);
	cr_assert(awaited_at(&code, 46, &at));
	cr_assert_not(awaited_at(&code, 60, &at));
	cr_assert_not(awaited_at(&code, 2, &at));
	cr_assert_not(awaited_at(&code, -2, &at));
	code.resuming = NULL;
	cr_assert_not(awaited_at(&code, 52, &at), "not known");
}
