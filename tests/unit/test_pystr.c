/* SPDX-License-Identifier: Apache-2.0 */
/* Text read from objects: every kind of str, cutting, hostile heads. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "sampler/pyobj.h"
#include "tests/unit/fake_objects.h"

static void expect_str(const struct pyabi *abi, raddr_t str, size_t room, const char *want, bool want_cut)
{
	char text[8192];
	bool cut = !want_cut;
	int bytes;

	memset(text, '#', sizeof(text));
	cr_assert(room < sizeof(text));
	bytes = pyobj_str(fake_remote(), abi, str, text, room, &cut);
	cr_assert(bytes == (int)strlen(want), "%d bytes, not %zu: '%s'", bytes, strlen(want), want);
	cr_assert(strcmp(text, want) == 0, "'%s', not '%s'", text, want);
	cr_assert(cut == want_cut);
	cr_assert(text[room] == '#', "nothing is written behind the room");
}

Test(pystr, all_kinds, .init = fake_reset)
{
	const uint16_t chinese[] = {0x6f22, 0x5b57, 'x'};
	const uint32_t astral[] = {0x1f40d, 'y', 0x10ffff};

	for (int i = 0; i < FAKE_LAYOUTS; i++) {
		const struct pyabi *abi = fake_abi((enum fake_layout)i);

		expect_str(abi, fake_str(abi, ""), 100, "", false);
		expect_str(abi, fake_str(abi, "MainThread"), 100, "MainThread", false);
		expect_str(abi, fake_str_of(abi, 1, "caf\xe9", 4), 100, "caf\u00e9", false);
		expect_str(abi, fake_str_of(abi, 2, chinese, 3), 100, "\u6f22\u5b57x", false);
		expect_str(abi, fake_str_of(abi, 4, astral, 3), 100, "\U0001f40dy\U0010ffff", false);
	}
}

Test(pystr, what_is_no_character_is_replaced, .init = fake_reset)
{
	const uint16_t surrogates[] = {'a', 0xd800, 0xdfff, 'b'};
	const uint32_t beyond[] = {0x110000, 0xffffffff, 'c'};
	const struct pyabi *abi = fake_abi(FAKE_312);

	expect_str(abi, fake_str_of(abi, 2, surrogates, 4), 100, "a\ufffd\ufffdb", false);
	expect_str(abi, fake_str_of(abi, 4, beyond, 3), 100, "\ufffd\ufffdc", false);
	expect_str(abi, fake_str_of(abi, 1, "\0\n\x1f\x7f ", 5), 100, "\ufffd\ufffd\ufffd\x7f ", false);
}

Test(pystr, cut_at_a_character, .init = fake_reset)
{
	const struct pyabi *abi = fake_abi(FAKE_311);
	raddr_t ascii = fake_str(abi, "abcdefgh"), latin = fake_str_of(abi, 1, "\xe9\xe9\xe9\xe9", 4);
	char none = '#';

	expect_str(abi, ascii, 9, "abcdefgh", false);
	expect_str(abi, ascii, 8, "abcd\u2026", true);
	expect_str(abi, ascii, 5, "a\u2026", true);
	expect_str(abi, ascii, 4, "\u2026", true);
	expect_str(abi, ascii, 3, "ab", true);
	expect_str(abi, ascii, 1, "", true);
	expect_str(abi, latin, 9, "\u00e9\u00e9\u00e9\u00e9", false);
	expect_str(abi, latin, 8, "\u00e9\u00e9\u2026", true);
	expect_str(abi, latin, 7, "\u00e9\u2026", true);
	cr_assert(pyobj_str(fake_remote(), abi, ascii, &none, 0, NULL) == -EINVAL && none == '#');
}

/* Longer than what is read with the head, and than one piece. */
Test(pystr, long_text, .init = fake_reset)
{
	static uint32_t units[65536];
	static char want[8192];

	for (size_t i = 0; i < 65536; i++)
		units[i] = 'a' + (uint32_t)i % 26;
	for (int i = 0; i < FAKE_LAYOUTS; i++) {
		const struct pyabi *abi = fake_abi((enum fake_layout)i);

		for (size_t k = 0; k < 5000; k++)
			want[k] = (char)units[k];
		want[5000] = '\0';
		expect_str(abi, fake_str_of(abi, 4, units, 5000), 6000, want, false);
		strcpy(want + 4095 - 3, "\u2026");
		expect_str(abi, fake_str_of(abi, 4, units, 65536), 4096, want, true);
	}
}

/* Not compact: the text of a str's subclass lies elsewhere. */
static raddr_t apart(const struct pyabi *abi, uint32_t state, uint64_t count, raddr_t text)
{
	raddr_t str = fake_alloc(96);

	fake_put_u64(str + (raddr_t)abi->str.length, count);
	fake_put(str + (raddr_t)abi->str.state, &state, sizeof(state));
	fake_put_u64(str + (raddr_t)abi->str.text, text);
	return str;
}

Test(pystr, text_apart, .init = fake_reset)
{
	const uint16_t units[] = {'h', 0x4e00};
	raddr_t ascii = fake_alloc(8), wide = fake_alloc(8);

	fake_put(ascii, "hello", 5);
	fake_put(wide, units, sizeof(units));
	for (int i = 0; i < FAKE_LAYOUTS; i++) {
		const struct pyabi *abi = fake_abi((enum fake_layout)i);

		expect_str(abi, apart(abi, 1 << 2 | 1 << 6, 5, ascii), 100, "hello", false);
		expect_str(abi, apart(abi, 2 << 2, 2, wide), 100, "h\u4e00", false);
	}
}

/* Not ready, to 3.11: only wchar_t, with its own count. */
Test(pystr, not_ready, .init = fake_reset)
{
	const wchar_t units[] = {'w', 0x1f40d};
	raddr_t text = fake_alloc(sizeof(units)), str;
	char to[16];

	fake_put(text, units, sizeof(units));
	for (int i = 0; i < FAKE_LAYOUTS; i++) {
		const struct pyabi *abi = fake_abi((enum fake_layout)i);

		str = apart(abi, 0, 0, 0);
		fake_put_u64(str + 40, text);
		fake_put_u64(str + 64, 2);
		if (abi->str_layout == STR_TO_311)
			expect_str(abi, str, 100, "w\U0001f40d", false);
		else
			cr_assert(pyobj_str(fake_remote(), abi, str, to, sizeof(to), NULL) == -EPROTO);
	}
}

Test(pystr, hostile_heads, .init = fake_reset)
{
	char to[64];

	for (int i = 0; i < FAKE_LAYOUTS; i++) {
		const struct pyabi *abi = fake_abi((enum fake_layout)i);
		static const uint32_t bad_kinds[] = {3 << 2, 5 << 2, 7 << 2, 0};
		raddr_t str;

		for (size_t k = 0; k < 4; k++)
			cr_assert(pyobj_str(fake_remote(), abi, apart(abi, bad_kinds[k] | 1 << 5, 3, fake_alloc(16)), to, sizeof(to), NULL) ==
			          -EPROTO);
		cr_assert(pyobj_str(fake_remote(), abi, apart(abi, 2 << 2 | 1 << 5 | 1 << 6, 3, 0), to, sizeof(to), NULL) == -EPROTO,
		          "ASCII of two bytes each");
		cr_assert(pyobj_str(fake_remote(), abi, apart(abi, 1 << 2, UINT64_C(1) << 60, fake_alloc(16)), to, sizeof(to), NULL) ==
		          -EPROTO);
		cr_assert(pyobj_str(fake_remote(), abi, apart(abi, 1 << 2, UINT64_MAX, fake_alloc(16)), to, sizeof(to), NULL) == -EPROTO);
		cr_assert(pyobj_str(fake_remote(), abi, apart(abi, 1 << 2, 3, 0), to, sizeof(to), NULL) == -EPROTO);
		cr_assert(pyobj_str(fake_remote(), abi, apart(abi, 1 << 2, 3, fake_unmapped()), to, sizeof(to), NULL) == -EFAULT);
		cr_assert(pyobj_str(fake_remote(), abi, fake_unmapped(), to, sizeof(to), NULL) == -EFAULT);
		/* A length that is far too large, but believable: as much as there is room for is read, and said to be cut. */
		str = fake_str(abi, "abcdefghijklmnop");
		fake_put_u64(str + (raddr_t)abi->str.length, UINT64_C(1) << 39);
		cr_assert(pyobj_str(fake_remote(), abi, str, to, 8, NULL) == 7 && strcmp(to, "abcd\u2026") == 0);
	}
}

/* An object at the very end of what is mapped: the head is read as far as it goes. */
Test(pystr, end_of_mapping, .init = fake_reset)
{
	const struct pyabi *abi = fake_abi(FAKE_313);
	unsigned char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	raddr_t from = fake_str(abi, "edge"), at;
	char to[32];

	cr_assert(page != MAP_FAILED && mprotect(page + 4096, 4096, PROT_NONE) == 0);
	memcpy(page + 4096 - 45, (void *)(uintptr_t)from, 45);
	at = (raddr_t)(uintptr_t)page + 4096 - 45;
	expect_str(abi, at, 32, "edge", false);
	fake_put_u64(at + (raddr_t)abi->str.length, 20);
	cr_assert(pyobj_str(fake_remote(), abi, at, to, sizeof(to), NULL) == -EFAULT);
	cr_assert(pyobj_str(fake_remote(), abi, (raddr_t)(uintptr_t)page + 4090, to, sizeof(to), NULL) == -EFAULT);
	memset(page + 4096 - 32, 0, 32); /* a length of 0, but no state */
	cr_assert(pyobj_str(fake_remote(), abi, (raddr_t)(uintptr_t)page + 4096 - 32, to, sizeof(to), NULL) == -EFAULT);
	munmap(page, 8192);
}

Test(pystr, bytes, .init = fake_reset)
{
	const struct pyabi *abi = fake_abi(FAKE_38);
	raddr_t object = fake_alloc(64);
	char to[8] = "#######";

	fake_put(object + (raddr_t)abi->bytes.data, "0123456789", 10);
	fake_put_u64(object + (raddr_t)abi->bytes.size, 10);
	cr_assert(pyobj_bytes(fake_remote(), abi, object, to, 4) == 10 && memcmp(to, "0123###", 7) == 0);
	cr_assert(pyobj_bytes(fake_remote(), abi, object, NULL, 0) == 10);
	fake_put_u64(object + (raddr_t)abi->bytes.size, 2);
	cr_assert(pyobj_bytes(fake_remote(), abi, object, to, 8) == 2 && memcmp(to, "0123###", 7) == 0);
	fake_put_u64(object + (raddr_t)abi->bytes.size, UINT64_C(1) << 60);
	cr_assert(pyobj_bytes(fake_remote(), abi, object, to, 8) == -EPROTO);
	fake_put_u64(object + (raddr_t)abi->bytes.size, UINT64_MAX);
	cr_assert(pyobj_bytes(fake_remote(), abi, object, to, 8) == -EPROTO);
	cr_assert(pyobj_bytes(fake_remote(), abi, fake_unmapped(), to, 8) == -EFAULT);
}

Test(pystr, type_names, .init = fake_reset)
{
	static const char *const names[][2] = {
		{"Thread", "Thread"},
		{"collections.OrderedDict", "OrderedDict"},
		{"caf\u00e9\U0001f40d", "caf\u00e9\U0001f40d"},
		{"a\xff\xc3", "a\ufffd\ufffd"},                       /* not UTF-8, and cut in the middle */
		{"\xed\xa0\x80\xc0\x80", "\ufffd\ufffd\ufffd"},      /* a surrogate, one too long */
		{"", ""},
	};
	const struct pyabi *abi = fake_abi(FAKE_311);
	raddr_t object = fake_alloc(16);
	char to[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		fake_put_u64(object + 8, fake_type(abi, names[i][0], 0));
		cr_assert(pyobj_type_name(fake_remote(), abi, object, to, sizeof(to)) == (int)strlen(names[i][1]));
		cr_assert(strcmp(to, names[i][1]) == 0, "'%s'", to);
	}
	fake_put_u64(object + 8, fake_type(abi, "averyveryverylongname", 0));
	cr_assert(pyobj_type_name(fake_remote(), abi, object, to, 8) == 7 && strcmp(to, "aver\u2026") == 0);
	fake_put_u64(object + 8, fake_unmapped());
	cr_assert(pyobj_type_name(fake_remote(), abi, object, to, sizeof(to)) == -EFAULT);
}
