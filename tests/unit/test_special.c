/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "sampler/special.h"

enum { STARTER = 0x2000 };

Test(special, the_collector_calls_python_from_c_alone)
{
	struct target *target = calloc(1, sizeof(*target));
	struct pyframe frames[] = {{.frame = 0x1000}, {.frame = STARTER, .direct = true}, {.frame = 0x3000}};
	struct thread t = {.seen = {.frames = frames, .depth = 2}};

	cr_assert_not_null(target);
	cr_expect(special_can_collect(target, &t, STARTER), "innermost");
	cr_expect(special_can_collect(target, &t, 0x9000), "not on this stack");
	t.seen.depth = 3;
	cr_expect(special_can_collect(target, &t, STARTER), "a finalizer, or a callback");
	frames[2].direct = true;
	cr_expect_not(special_can_collect(target, &t, STARTER), "it goes on");
	free(target);
}
