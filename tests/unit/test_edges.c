/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "base/hash.h"
#include "sampler/edges.h"

enum { NOW_NS = 1000000000 };

static struct call call_of(uint64_t site, uint64_t callee)
{
	return (struct call){
		.key = hash_combine(site, callee) | 1, .site = hash_u64(site) | 1, .callee = hash_u64(callee) | 1};
}

/* A copy that shows this call alone. */
static bool sight_single(struct edges *e, const struct call *call)
{
	edges_count(e, call->site, 1, NOW_NS);
	edges_count(e, call->callee, 1, NOW_NS);
	return edges_sight_once(e, call, NOW_NS);
}

static struct edges *new_edges(void)
{
	struct edges *e;

	cr_assert_eq(edges_new(&e, false), 0);
	return e;
}

Test(edges, a_call_seen_alike_three_times_is_known)
{
	struct edges *e = new_edges();
	struct call call = call_of(1, 2);

	cr_assert_not(edges_sight(e, &call, NOW_NS));
	cr_assert_not(edges_sight(e, &call, NOW_NS));
	cr_assert_not(edges_has(e, call.key));
	cr_assert(edges_sight(e, &call, NOW_NS));
	cr_assert(edges_has(e, call.key));
	edges_free(e);
}

/* What two copies show alike by chance, of a site and a callee that are both seen far more often without each other. */
Test(edges, alike_by_chance_is_not_enough)
{
	struct edges *e = new_edges();
	struct call torn = call_of(1, 2);

	edges_count(e, torn.site, 10000, NOW_NS);
	edges_count(e, torn.callee, 10000, NOW_NS);
	for (int i = 0; i < 90; i++)
		cr_assert_not(edges_sight(e, &torn, NOW_NS));
	edges_free(e);
}

/* In the first looks three of them come together soon where sampler and target go in step. */
Test(edges, early_sightings_alike_must_be_more)
{
	struct edges *e = new_edges();
	struct call torn = call_of(1, 2);

	edges_count(e, torn.site, 400, NOW_NS);
	edges_count(e, torn.callee, 400, NOW_NS);
	for (int i = 0; i < 31; i++) /* 3, a hundredth, and a sixteenth of 400 */
		cr_assert_not(edges_sight(e, &torn, NOW_NS));
	cr_assert(edges_sight(e, &torn, NOW_NS));
	edges_free(e);
}

Test(edges, sightings_long_ago_do_not_count)
{
	struct edges *e = new_edges();
	struct call call = call_of(1, 2);

	for (uint64_t i = 0; i < 10; i++)
		cr_assert_not(edges_sight(e, &call, NOW_NS + i * 15 * NOW_NS));
	edges_free(e);
}

Test(edges, a_short_call_is_known_by_its_share)
{
	struct edges *e = new_edges();
	struct call call = call_of(1, 2);
	int sightings = 1;

	while (!sight_single(e, &call))
		cr_assert_lt(sightings++, 64);
	cr_assert_gt(sightings, 8);
	cr_assert(edges_has(e, call.key));
	edges_free(e);
}

Test(edges, a_small_share_is_not_enough)
{
	struct edges *e = new_edges();
	struct call torn = call_of(1, 2);

	for (int i = 0; i < 1000; i++) {
		cr_assert_not(sight_single(e, &torn));
		edges_count(e, torn.site, 20, NOW_NS);
		edges_count(e, torn.callee, 20, NOW_NS);
	}
	edges_free(e);
}

/* The callee of an earlier call, left behind above a caller that by now makes another call. */
Test(edges, a_site_known_to_call_something_else_teaches_nothing_by_share)
{
	struct edges *e = new_edges();
	struct call right = call_of(1, 2), stale = call_of(1, 3);

	edges_learn(e, &right);
	for (int i = 0; i < 200; i++) {
		cr_assert_not(sight_single(e, &stale));
		cr_assert_not(edges_sight_left(e, &stale, NOW_NS));
	}
	edges_free(e);
}

Test(edges, a_callee_that_is_only_seen_left_is_known_in_the_end)
{
	struct edges *e = new_edges();
	struct call call = call_of(1, 2);
	int sightings = 1;

	while (!edges_sight_left(e, &call, NOW_NS))
		cr_assert_lt(sightings++, 200);
	cr_assert_gt(sightings, 32);
	edges_free(e);
}

Test(edges, a_rare_call_is_believed_where_nothing_speaks_against_it)
{
	struct edges *e = new_edges();
	struct call call = call_of(1, 2), attribute = call_of(3, 4), never = call_of(5, 6);
	struct call before = call_of(7, 8), other = call_of(10, 8), disturbed = call_of(11, 12);

	/* Alike in two copies once, and never in one that nothing disturbed. */
	cr_assert_not(edges_sight(e, &disturbed, NOW_NS));
	sight_single(e, &call);
	/* An attribute that mostly calls nothing. */
	attribute.seldom = true;
	sight_single(e, &attribute);
	/* A site that was seen often, and never with a callee. */
	edges_count(e, never.site, 100, NOW_NS);
	sight_single(e, &never);
	/* The same caller is known to call it from another place: a copy that is torn between the two. */
	before.pair = other.pair = 9;
	sight_single(e, &before);
	edges_learn(e, &other);
	edges_free(e);
}

/* A call on top of a coroutine, whose other frames were copied later: known alone, as long as its site calls nothing else. */
Test(edges, a_single_call_does_not_ask_who_led_to_it)
{
	struct edges *e = new_edges();
	struct call call = call_of(1, 2), elsewhere = call, other = call_of(1, 3);
	int sightings = 1;

	elsewhere.key = hash_combine(call.key, 7) | 1;
	while (!edges_sight_single(e, &call, NOW_NS))
		cr_assert_lt(sightings++, 64);
	cr_assert_not(edges_has(e, call.key));
	cr_assert(edges_has_single(e, &call));
	cr_assert(edges_has_single(e, &elsewhere));
	cr_assert_not(edges_has_single(e, &other));
	edges_learn(e, &other);
	cr_assert_not(edges_has_single(e, &call));
	edges_free(e);
}

/* What a caller was given can depend on who called it: such a call is known in one context for each, and possible in others only where it is known
 * in several. */
Test(edges, a_single_call_of_what_was_given_asks_who_led_to_it)
{
	struct edges *e = new_edges();
	struct call call = call_of(1, 2);
	int sightings = 1;

	call.given = true;
	while (!edges_sight_single(e, &call, NOW_NS))
		cr_assert_lt(sightings++, 64);
	cr_assert_not(edges_has_single(e, &call));
	for (uint64_t context = 1; context <= 3; context++) {
		struct call elsewhere = call;

		cr_assert_not(edges_has_single(e, &call));
		elsewhere.key = hash_combine(call.key, context) | 1;
		edges_learn(e, &elsewhere);
		edges_learn(e, &elsewhere); /* one context still */
	}
	cr_assert(edges_has_single(e, &call));
	cr_assert_not(edges_has(e, call.key));
	edges_free(e);
}

/* What a function calls is mostly what it calls whoever called it, and a program that recurses has thousands of contexts. */
Test(edges, a_single_call_known_in_three_contexts_is_known_in_all)
{
	struct edges *e = new_edges();
	struct call call = call_of(1, 2), other = call_of(1, 3);

	for (uint64_t context = 1; context <= 3; context++) {
		struct call elsewhere = call;

		cr_assert_not(edges_has_always(e, &call));
		elsewhere.key = hash_combine(call.key, context) | 1;
		edges_learn(e, &elsewhere);
	}
	cr_assert(edges_has_always(e, &call));
	cr_assert_not(edges_has(e, call.key));
	edges_learn(e, &other);
	cr_assert_not(edges_has_always(e, &call), "another one is called there, too");
	edges_free(e);
}

/* A callee of 40 ns on top of a coroutine has been left in most copies: these and the others count together, in whatever context. */
Test(edges, a_single_call_is_known_by_what_was_left_too)
{
	struct edges *e = new_edges();
	struct call call = call_of(1, 2);
	int sightings = 1;

	for (bool known = false; !known; known |= edges_sight_single(e, &call, NOW_NS)) {
		cr_assert_lt(sightings++, 200);
		for (uint64_t context = 0; !known && context < 3; context++) {
			call.key = hash_combine(1, context) | 1;
			known = edges_sight_left_single(e, &call, NOW_NS);
		}
	}
	cr_assert_not(edges_has(e, call.key));
	cr_assert(edges_has_single(e, &call));
	edges_free(e);
}

static bool never(const struct call *call)
{
	(void)call;
	return false;
}

/* Where what stands at the site does not call, no share makes a call of it, and alike copies only when they are many. */
Test(edges, a_site_that_cannot_call_learns_nothing_by_share)
{
	struct edges *e = new_edges();
	struct call call = call_of(1, 2), other = call_of(3, 4);

	call.can_be = other.can_be = never;
	for (int i = 0; i < 1000; i++)
		cr_assert_not(sight_single(e, &call));
	for (int i = 0; i < 31; i++)
		cr_assert_not(edges_sight(e, &other, NOW_NS));
	cr_assert(edges_sight(e, &other, NOW_NS), "it falls back to the general instruction, now and then");
	edges_free(e);
}

/* Like call_of(), of one caller, whose value stack has the callee. */
static struct call handed_of(uint64_t site, uint64_t callee)
{
	struct call call = call_of(site, callee);

	call.pair = hash_u64(callee) | 3;
	call.handed = true;
	return call;
}

static int sightings_needed(struct edges *e, const struct call *call)
{
	for (int i = 1; i < 1000; i++)
		if (sight_single(e, call))
			return i;
	return 0;
}

/* A line that calls one function after the other. */
Test(edges, a_site_calls_each_function_that_it_was_handed)
{
	struct edges *e = new_edges();
	struct call first = handed_of(1, 2), second = handed_of(1, 3), torn = handed_of(1, 4), rare = handed_of(1, 5);

	cr_assert_eq(sightings_needed(e, &first), 16);
	cr_assert_eq(sightings_needed(e, &second), 16);
	torn.handed = false;
	cr_assert_eq(sightings_needed(e, &torn), 0);
	cr_assert_not(sight_single(e, &rare));
	edges_free(e);
}

Test(edges, what_is_called_from_elsewhere_as_well_is_not_handed)
{
	struct edges *e = new_edges();
	struct call first = handed_of(1, 2), torn = handed_of(1, 3), elsewhere = handed_of(7, 3);

	cr_assert_eq(sightings_needed(e, &first), 16);
	edges_count(e, elsewhere.site, 1000, NOW_NS);
	edges_count(e, elsewhere.callee, 1000, NOW_NS);
	for (int i = 0; i < 100; i++) {
		cr_assert_not(edges_sight_once(e, &torn, NOW_NS));
		if (i % 4 == 0)
			edges_sight_once(e, &elsewhere, NOW_NS);
	}
	edges_learn(e, &elsewhere);
	cr_assert_eq(sightings_needed(e, &torn), 0, "it is known to be called there");
	edges_free(e);
}

/* A count of one stack in sixteen is off by its own size where it is small. */
Test(edges, rough_counts_want_more_sightings)
{
	struct edges *e = new_edges();
	struct call call = call_of(1, 2);

	edges_count(e, call.site, 16, NOW_NS);
	for (int i = 0; i < 63; i++)
		cr_assert_not(edges_sight_once(e, &call, NOW_NS));
	cr_assert(edges_sight_once(e, &call, NOW_NS));
	edges_free(e);
}

/* Sightings age with what they are compared with: a call that is a third of what is seen of its site and callee stays one. */
Test(edges, sightings_are_halved_with_the_counts)
{
	struct edges *e = new_edges();
	struct call call = call_of(1, 2);
	uint64_t now_ns = NOW_NS;

	for (int second = 0; second < 15; second++, now_ns += 1000000000) {
		for (int i = 0; i < 100; i++) {
			edges_count(e, call.site, 1, now_ns);
			edges_count(e, call.callee, 1, now_ns);
			if (i % 3 == 0)
				cr_assert_not(edges_sight_once(e, &call, now_ns));
		}
	}
	edges_free(e);
}

/* The call alone, whoever led to it, as often alike as any. */
Test(edges, a_call_alone_seen_alike_is_known_with_any_context)
{
	struct edges *e = new_edges();
	struct call call = call_of(1, 2), there = call_of(1, 2), other = call_of(1, 3);

	there.key = hash_combine(call.key, 7) | 1;
	edges_count(e, call.site, 200, NOW_NS);
	edges_count(e, call.callee, 200, NOW_NS);
	for (int i = 0; i < 16; i++) /* 3, two hundredths, and a sixteenth of 200 */
		cr_assert_not(edges_sight_edge(e, i % 2 ? &call : &there, NOW_NS));
	cr_assert(edges_sight_edge(e, &call, NOW_NS));
	cr_assert(edges_has_single(e, &there));
	cr_assert_not(edges_has(e, call.key));
	for (int i = 0; i < 3; i++)
		edges_sight_edge(e, &other, NOW_NS);
	cr_assert_not(edges_has_single(e, &call), "both are called there");
	edges_free(e);
}

/* One look in so many reads what proves a call, so that is compared with what was proven of the callee, not with all that was seen of it. */
Test(edges, what_was_proven_is_compared_with_what_was_proven)
{
	struct edges *e = new_edges();
	struct call call = call_of(1, 2), torn = call_of(3, 2);

	edges_count(e, call.site, 100000, NOW_NS);
	edges_count(e, call.callee, 100000, NOW_NS);
	for (int i = 0; i < 2; i++)
		cr_assert_not(edges_sight_proven(e, &call, NOW_NS));
	cr_assert(edges_sight_proven(e, &call, NOW_NS));
	cr_assert(edges_has(e, call.key));
	for (int i = 0; i < 2000; i++) {
		cr_assert_not(edges_sight_proven(e, &call, NOW_NS), "it is known");
		if (i % 200 == 0)
			cr_assert_not(edges_sight_proven(e, &torn, NOW_NS));
	}
	edges_free(e);
}

/* Many coroutines on one another make many contexts, none of which is proven three times. */
Test(edges, what_was_proven_counts_whoever_led_to_it_unless_the_caller_was_given_it)
{
	struct edges *e = new_edges();
	struct call call = call_of(1, 2), given = call_of(3, 4);

	given.given = true;
	for (uint64_t context = 1; context <= 3; context++) {
		call.key = hash_combine(context, 1) | 1;
		given.key = hash_combine(context, 2) | 1;
		cr_assert_eq(edges_sight_proven(e, &call, NOW_NS), context == 3);
		cr_assert_not(edges_sight_proven(e, &given, NOW_NS));
	}
	cr_assert(edges_has_single(e, &call));
	cr_assert_not(edges_has_single(e, &given));
	for (int i = 0; i < 2; i++)
		cr_assert_eq(edges_sight_proven(e, &given, NOW_NS), i == 1, "in this context three times now");
	edges_free(e);
}

/* Few tallies are kept where few calls are learnt at a time. */
Test(edges, with_coroutines_more_are_kept)
{
	struct edges *e;
	uint32_t kept = 0, kept_wide = 0;

	cr_assert_eq(edges_new(&e, true), 0);
	for (uint64_t key = 1; key <= 500; key++)
		edges_tally(e, hash_u64(key), 0);
	for (uint64_t key = 1; key <= 500; key++)
		kept += edges_tallied(e, hash_u64(key)) == 1;
	edges_widen(e);
	for (uint64_t key = 1; key <= 500; key++)
		edges_tally(e, hash_u64(key), 0);
	for (uint64_t key = 1; key <= 500; key++)
		kept_wide += edges_tallied(e, hash_u64(key)) == 1;
	cr_assert_lt(kept, 480);
	cr_assert_eq(kept_wide, 500);
	edges_free(e);
}

/* A call whose tally another one takes, each time that it is met, would never be known: the samples of its callee went to another function. */
Test(edges, tallies_that_fall_together_keep_their_counts)
{
	for (uint64_t program = 0; program < 100; program++) {
		struct edges *e;

		cr_assert_eq(edges_new(&e, true), 0);
		for (uint32_t turn = 1; turn <= 20; turn++)
			for (uint64_t key = 0; key < 60; key++)
				cr_assert_eq(edges_tally(e, hash_u64(program << 32 | key), 0), turn);
		edges_free(e);
	}
}
