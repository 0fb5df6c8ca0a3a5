/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

Test(buf, grows_and_keeps_what_it_holds)
{
	struct buf b = {0};
	char block[300];
	size_t all = 0;

	for (size_t bytes = 0; bytes < sizeof(block); bytes++) {
		memset(block, (int)(bytes & 0x7f), bytes);
		buf_add(&b, block, bytes);
		all += bytes;
		cr_assert_eq(b.bytes, all);
		cr_assert_leq(b.bytes, b.room);
	}
	cr_assert_leq(b.room, 4 * all, "room is doubled, not more");
	for (size_t bytes = 0, at = 0; bytes < sizeof(block); at += bytes++)
		for (size_t i = 0; i < bytes; i++)
			cr_assert_eq(b.data[at + i], (int)(bytes & 0x7f));
	buf_release(&b);
	cr_assert(!b.data && b.bytes == 0 && b.room == 0);
}

/* Each length around the first room of 256 bytes, where the NUL of printf and of buf_text() does not fit any more. */
Test(buf, texts)
{
	for (size_t before = 250; before < 260; before++) {
		struct buf b = {0};

		for (size_t i = 0; i < before; i++)
			buf_putc(&b, '.');
		buf_printf(&b, "%d-%s", 42, "x");
		cr_assert_eq(b.bytes, before + 4);
		buf_puts(&b, "!");
		cr_assert_eq(strlen(buf_text(&b)), before + 5);
		cr_assert_str_eq(buf_text(&b) + before, "42-x!");
		cr_assert_eq(b.bytes, before + 5, "the NUL is not part of it");
		buf_release(&b);
	}
	cr_assert_str_eq(buf_text(&(struct buf){0}), "");
}

Test(buf, what_there_is_no_memory_for_sticks)
{
	struct buf b = {0};

	buf_puts(&b, "abc");
	cr_assert_null(buf_reserve(&b, SIZE_MAX - 1));
	cr_assert_eq(b.err, -ENOMEM);
	buf_puts(&b, "def");
	buf_printf(&b, "%d", 1);
	cr_assert_eq(b.bytes, 3, "nothing goes in any more");
	cr_assert_str_eq(buf_text(&b), "");
	cr_assert_null(buf_reserve(&b, 1));
	buf_release(&b);
	cr_assert_eq(b.err, 0);
	cr_assert_null(buf_reserve(&b, SIZE_MAX / 4));
	cr_assert_eq(b.err, -ENOMEM, "as much as can be counted, and not be had");
	buf_release(&b);
}
