/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/codes.h"

#include <criterion/criterion.h>
#include <errno.h>

#include "tests/unit/fake_coroutine.h"
#include "tests/unit/fake_objects.h"

TestSuite(codes);

/* What loading the code object says when it begins with this word. */
static int load_again(raddr_t code, uint64_t references)
{
	struct codes *codes = fake.target->codes;
	struct code *loaded = codes_find(codes, code);
	int32_t other_line = loaded ? (int32_t)loaded->first_line + 1 : 0;

	if (loaded) {
		fake_put(code + (uint64_t)fake.abi->code.firstlineno, &other_line, sizeof(other_line));
		cr_assert_eq(codes_recheck(codes, &fake.target->remote, loaded, 0, 1), -ESTALE);
		codes_drop_retired(codes);
	}
	fake_put_u64(code, references);
	codes_new_tick(codes);
	return codes_load(codes, &fake.target->remote, code, 1, &loaded);
}

Test(codes, one_that_goes_while_it_is_read_is_none)
{
	for (unsigned minor = 11; minor <= 12; minor++) {
		raddr_t code;

		fake_coroutine_begin(minor);
		code = fake_function("f");
		cr_expect_eq(load_again(code, 7), 0, "3.%u", minor);
		cr_expect_eq(load_again(code, 0), -EAGAIN, "3.%u: what it refers to is given up", minor);
		cr_expect_eq(load_again(code, code ^ 512), -EAGAIN, "3.%u: it is free, as another one of its pool", minor);
		cr_expect_null(codes_find(fake.target->codes, code));
		cr_expect_eq(load_again(code, 1), 0, "3.%u: another one at once lies there", minor);
		cr_expect_eq(load_again(code, UINT64_C(0x00800000c0000000)), 0, "3.%u: an immortal one with flags", minor);
		fake_coroutine_end();
	}
}
