/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "sampler/codenames.h"

static uint32_t hash_of(const char *name)
{
	return callname_hash(name, strlen(name));
}

static struct code named(const char *qualified)
{
	struct code code = {0};

	codenames_note(&code, qualified, strlen(qualified));
	return code;
}

Test(codenames, a_function_has_its_own_name_and_that_of_what_it_is_in)
{
	char longer[CALLNAME_BYTES + 8];
	struct code code = named("tree.Node.append");

	cr_expect_eq(code.name, hash_of("append"));
	cr_expect_eq(code.owner, hash_of("Node"));
	code = named("Node.append");
	cr_expect_eq(code.owner, hash_of("Node"));
	code = named("append");
	cr_expect_eq(code.name, hash_of("append"));
	cr_expect_eq(code.owner, 0);
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = 0;
	code = named(longer);
	cr_expect_eq(code.name, 0, "it is too long");
}

Test(codenames, a_class_is_called_by_its_own_name)
{
	struct callname names[] = {{.first = 2, .last = 5, .name = hash_of("Node"), .kind = CALLNAME_CALL, .single = true},
	                           {.first = 8, .last = 9, .name = hash_of("walk"), .kind = CALLNAME_RESUME}};
	struct code caller = {.callnames = names, .callname_count = 2, .callnames_read = true};
	struct code init = named("Node.__init__"), other = named("Node.append"), walk = named("walk");

	cr_expect_eq(codenames_calls(NULL, NULL, NULL, &caller, 6, &init, false), NAMED_SINGLE);
	cr_expect_eq(codenames_calls(NULL, NULL, NULL, &caller, 6, &other, false), NAMED_NOT);
	cr_expect_eq(codenames_calls(NULL, NULL, NULL, &caller, 16, &walk, true), NAMED_AMONG);
	cr_expect_eq(codenames_calls(NULL, NULL, NULL, &caller, 16, &walk, false), NAMED_NOT, "it is not called, but resumed there");
	cr_expect_eq(codenames_calls(NULL, NULL, NULL, &caller, 12, &init, false), NAMED_NOT);
}

Test(codenames, a_generator_expression_is_consumed_nowhere_else)
{
	struct callname names[] = {{.first = 2, .last = 5, .made = 0x1000, .kind = CALLNAME_CALL},
	                           {.first = 8, .last = 9, .name = hash_of("sum"), .kind = CALLNAME_CALL}};
	struct code caller = {.callnames = names, .callname_count = 2, .callnames_read = true};
	struct code expression = {.addr = 0x1000}, other = {.addr = 0x2000};

	cr_expect_not(codenames_excludes(&caller, 6, &expression));
	cr_expect(codenames_excludes(&caller, 6, &other));
	cr_expect(codenames_excludes(&caller, 16, &expression));
	cr_expect(codenames_excludes(&caller, 12, &expression));
	cr_expect_not(codenames_excludes(&caller, 16, &other));
}

Test(codenames, an_argument_may_be_what_is_resumed)
{
	struct callname names[] = {{.first = 2, .last = 5, .name = hash_of("sum"), .argument = hash_of("walk"), .kind = CALLNAME_CALL, .argument_single = true},
	                           {.first = 8, .last = 9, .argument = hash_of("step"), .kind = CALLNAME_CALL}};
	struct code caller = {.callnames = names, .callname_count = 2, .callnames_read = true};
	struct code walk = named("walk"), step = named("step");

	cr_expect_eq(codenames_calls(NULL, NULL, NULL, &caller, 6, &walk, true), NAMED_SINGLE);
	cr_expect_eq(codenames_calls(NULL, NULL, NULL, &caller, 6, &walk, false), NAMED_NOT, "it was called before");
	cr_expect_eq(codenames_calls(NULL, NULL, NULL, &caller, 6, &step, true), NAMED_NOT);
	cr_expect_eq(codenames_calls(NULL, NULL, NULL, &caller, 16, &step, true), NAMED_AMONG);
}

Test(codenames, a_generator_expression_is_named_where_it_is_consumed)
{
	struct callname names[] = {{.first = 2, .last = 5, .made = 0x1000, .kind = CALLNAME_CALL}};
	struct code caller = {.callnames = names, .callname_count = 1, .callnames_read = true};
	struct code expression = {.addr = 0x1000}, other = {.addr = 0x2000};

	cr_expect_eq(codenames_calls(NULL, NULL, NULL, &caller, 6, &expression, true), NAMED_SINGLE);
	cr_expect_eq(codenames_calls(NULL, NULL, NULL, &caller, 6, &other, true), NAMED_NOT, "it has no name, and neither has what is called");
	cr_expect_eq(codenames_calls(NULL, NULL, NULL, &caller, 6, &other, false), NAMED_NOT);
	cr_expect_eq(codenames_calls(NULL, NULL, NULL, &caller, 12, &expression, true), NAMED_NOT);
}
