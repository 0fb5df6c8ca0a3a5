/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define ELLIPSIS    "\xe2\x80\xa6" /* U+2026 */

size_t utf8_next(const char *text, size_t bytes, uint32_t *ret_char)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *p = (const unsigned char *)text;
	uint32_t c = p[0];
	size_t need;

	*ret_char = 0xfffd;
	if (c < 0x80) {
		*ret_char = c;
		return 1;
	}
	need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
	if (c < 0xc2 || c > 0xf4 || need > bytes)
		return 1;
	c &= 0x7fu >> need;
	for (size_t i = 1; i < need; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 1;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least[need] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 1;
	*ret_char = c;
	return need;
}

bool utf8_is_unsafe(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || (c >= 0x200e && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

unsigned utf8_columns(uint32_t c)
{
	/* First and last of the blocks that terminals draw two columns wide (Unicode's East Asian Width W and F). */
	static const uint32_t wide[][2] = {
		{0x1100, 0x115f}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
		{0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd},
	};

	if ((c >= 0x300 && c <= 0x36f) || (c >= 0x200b && c <= 0x200d) || (c >= 0xfe00 && c <= 0xfe0f))
		return 0;
	for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
		if (c >= wide[i][0] && c <= wide[i][1])
			return 2;
	return 1;
}

void utf8_add_valid(struct buf *to, const char *text, size_t bytes)
{
	size_t plain = 0; /* so many bytes need no change */

	while (plain < bytes) {
		uint32_t c;
		size_t length = utf8_next(text + plain, bytes - plain, &c);

		if (c != 0 && (c != 0xfffd || length == 3)) {
			plain += length;
			continue;
		}
		buf_add(to, text, plain);
		buf_puts(to, REPLACEMENT);
		text += plain + length;
		bytes -= plain + length;
		plain = 0;
	}
	buf_add(to, text, plain);
}

static void add_safe(struct buf *to, const char *text, size_t length, uint32_t c)
{
	if (c == 0xfffd || utf8_is_unsafe(c))
		buf_puts(to, REPLACEMENT);
	else
		buf_add(to, text, length);
}

void utf8_add_safe(struct buf *to, const char *text)
{
	size_t left = strlen(text);

	while (left > 0) {
		uint32_t c;
		size_t length = utf8_next(text, left, &c);

		add_safe(to, text, length, c);
		text += length;
		left -= length;
	}
}

static unsigned text_columns(const char *text, size_t bytes)
{
	unsigned columns = 0;
	uint32_t c;

	for (size_t at = 0; at < bytes;) {
		at += utf8_next(text + at, bytes - at, &c);
		columns += utf8_columns(utf8_is_unsafe(c) ? 0xfffd : c);
	}
	return columns;
}

unsigned utf8_fit(struct buf *to, const char *text, unsigned columns, bool cut_front)
{
	size_t bytes = strlen(text), at = 0;
	unsigned all = text_columns(text, bytes), skip = 0, used = 0;
	bool cut = all > columns;

	if (columns == 0)
		return 0;
	if (cut && cut_front) {
		skip = all - columns + 1;
		buf_puts(to, ELLIPSIS);
		used = 1;
	}
	while (at < bytes) {
		uint32_t c;
		size_t length = utf8_next(text + at, bytes - at, &c);
		unsigned wide = utf8_columns(utf8_is_unsafe(c) ? 0xfffd : c);

		if (skip > 0) { /* a wide character that only half fits goes as well */
			skip -= wide < skip ? wide : skip;
		} else {
			if (cut && !cut_front && used + wide > columns - 1)
				break;
			add_safe(to, text + at, length, c);
			used += wide;
		}
		at += length;
	}
	if (cut && !cut_front) {
		buf_puts(to, ELLIPSIS);
		used++;
	}
	return used;
}
