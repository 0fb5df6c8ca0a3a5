/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/running.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/fake_coroutine.h"
#include "tests/unit/fake_objects.h"

#define TSTATE    UINT64_C(0x100000)
#define ITEM      UINT64_C(0x200000) /* of a generator */
#define GENERATOR (ITEM + 32)
#define STACK     UINT64_C(0x300000)
#define RESUMER   (STACK + 64)
#define TOP       (STACK + 160)
#define CODE      UINT64_C(0x400000)
#define RESUMING  UINT64_C(0x410000)

/* A thread whose state was copied, and a generator of it that is remembered. */
struct made {
	struct thread thread;
	struct apart apart;
	struct chunk chunk;
	struct plan plan;
	struct piece piece;
	uint8_t head[PYABI_TSTATE_MAX];
	struct walker w;
	struct ends ends;
	struct pyabi abi;
};

static void put(struct made *m, int32_t at, uint64_t value)
{
	memcpy(m->head + at, &value, sizeof(value));
}

static struct made *make(unsigned minor, raddr_t item, raddr_t top)
{
	struct made *m = calloc(1, sizeof(*m));
	const struct pyabi *abi = pyabi_table(3, minor < 12 ? minor : 12);

	cr_assert_not_null(m);
	cr_assert_not_null(abi);
	m->abi = *abi;
	if (minor > 12) /* these say themselves where their fields are; the current frame is behind no pointer */
		m->abi.tstate.cframe = ABSENT;
	abi = &m->abi;
	m->piece = (struct piece){.from = TSTATE, .bytes = sizeof(m->head), .ok = true};
	m->plan = (struct plan){.pieces = &m->piece, .count = 1, .memory = m->head};
	m->chunk = (struct chunk){.base = STACK, .size_bytes = 16384};
	m->thread = (struct thread){.tstate = TSTATE, .apart = &m->apart, .chunks = &m->chunk, .chunk_count = 1};
	m->w = (struct walker){.abi = abi, .remote = fake_remote(), .plan = &m->plan, .ends = &m->ends};
	put(m, abi->tstate.exc_info, item);
	put(m, abi->tstate.chunk + 8, top);
	apart_note_link(&m->apart, (struct apart_link){.frame = GENERATOR, .previous = RESUMER, .code = CODE});
	return m;
}

static void note(struct made *m, raddr_t end, bool called)
{
	apart_note_state(&m->apart, (struct apart_state){.generator = GENERATOR,
	                                                 .end = end,
	                                                 .code = CODE,
	                                                 .resumer = RESUMING,
	                                                 .resumer_frame = RESUMER,
	                                                 .called = called});
}

static struct running found(struct made *m, raddr_t current)
{
	return running_find(&m->w, &m->thread, current);
}

Test(running, no_generator_runs)
{
	struct made *m = make(13, TSTATE + 200, TOP);

	note(m, TOP, false);
	cr_expect_eq(found(m, RESUMER).code, 0);
	free(m);
	m = make(12, TSTATE + 200, TOP);
	cr_expect_eq(found(m, RESUMER).code, 0);
	cr_expect_eq(running_named(&m->w, &m->thread, RESUMER), RESUMER);
	free(m);
}

Test(running, the_current_frame_is_the_generators)
{
	struct made *m = make(13, ITEM, TOP);

	cr_expect_eq(found(m, GENERATOR).code, CODE, "though its resumer is not known");
	cr_expect_eq(found(m, GENERATOR).resumer, 0);
	note(m, TOP, false);
	cr_expect_eq(found(m, GENERATOR).resumer, RESUMING);
	cr_expect_eq(found(m, RESUMER).code, 0, "it is about to be resumed");
	cr_expect_eq(found(m, TOP).frame, GENERATOR, "in C, behind a shim");
	free(m);
}

Test(running, what_it_has_called_runs_on_the_data_stack)
{
	struct made *m = make(13, ITEM, TOP + 96);

	cr_expect_eq(found(m, TOP).code, 0, "not known");
	note(m, TOP + 96, true);
	cr_expect_eq(found(m, TOP).code, 0);
	note(m, TOP + 96, false);
	cr_expect_eq(found(m, TOP).code, CODE, "what is being made does not run");
	free(m);
}

Test(running, where_the_current_frame_is_of_another_instant_the_top_tells)
{
	for (unsigned minor = 11; minor <= 12; minor++) {
		struct made *m = make(minor, ITEM, TOP);

		cr_expect_eq(running_named(&m->w, &m->thread, RESUMER), GENERATOR);
		note(m, TOP, false);
		note(m, TOP + 96, true);
		cr_expect_eq(found(m, RESUMER).code, CODE);
		put(m, m->w.abi->tstate.chunk + 8, TOP + 96);
		cr_expect_eq(found(m, RESUMER).code, 0);
		put(m, m->w.abi->tstate.chunk + 8, TOP + 200);
		cr_expect_eq(found(m, RESUMER).code, CODE, "not known: most likely it runs itself");
		free(m);
	}
}

/* Whatever a target says of its exceptions and its data stack, it is looked up only. */
Test(running, senseless_words)
{
	const uint64_t words[] = {0, 1, 31, TSTATE - 1, UINT64_MAX, UINT64_MAX - 31, INT64_MAX};

	for (unsigned minor = 11; minor <= 13; minor++)
		for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
			struct made *m = make(minor, words[i], words[i]);

			cr_expect_eq(found(m, words[i]).code, 0);
			free(m);
		}
}

/* A generator that no stack was seen with yet, and that has yielded since: it is what it was, and is remembered. */
Test(running, a_generator_that_is_met_for_the_first_time)
{
	struct pyabi exact;

	fake_coroutine_begin(12);
	exact = *fake.abi;
	exact.tstate.cframe = ABSENT;
	fake.w.abi = &exact;
	fake.t->copy.head = PLAN_FULL;
	fake_yield();
	cr_expect_eq(running_find(&fake.w, fake.t, fake.shim).code, 0, "no generator");
	cr_expect_eq(running_find(&fake.w, fake.t, fake.task).code, fake.task_code);
	cr_expect_eq(apart_link(fake.t->apart, fake.task).code, fake.task_code);
	fake_coroutine_end();
}
