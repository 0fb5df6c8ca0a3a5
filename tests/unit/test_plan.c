/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampler/plan.h"
#include "sampler/thread.h"

static struct remote own_process(void)
{
	return (struct remote){.pid = getpid(), .mem_fd = -1};
}

Test(plan, pieces_close_together_are_read_as_one_segment)
{
	static uint8_t memory[8192];
	struct remote r = own_process();
	struct plan p = {0};
	raddr_t from = (raddr_t)(uintptr_t)memory;

	for (uint32_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 7 + i / 256);
	cr_assert_eq(plan_add(&p, from, 100), 0);
	cr_assert_eq(plan_add(&p, from + 50, 100), 1); /* overlaps */
	cr_assert_eq(plan_add(&p, from + 400, 8), 2);  /* shortly behind */
	cr_assert_eq(plan_add(&p, from + 4000, 8), 3); /* far */
	cr_assert_eq(plan_add(&p, from + 200, 16), 4); /* before the last one: of its own */
	cr_assert_eq(p.segment_count, 3);
	cr_assert_eq(plan_read(&p, &r), 0);
	cr_assert_eq(memcmp(plan_bytes(&p, 0), memory, 100), 0);
	cr_assert_eq(memcmp(plan_bytes(&p, 1), memory + 50, 100), 0);
	cr_assert_eq(memcmp(plan_bytes(&p, 2), memory + 400, 8), 0);
	cr_assert_eq(memcmp(plan_bytes(&p, 3), memory + 4000, 8), 0);
	cr_assert_eq(memcmp(plan_bytes(&p, 4), memory + 200, 16), 0);
	cr_assert_eq(p.reads, 1);
	plan_release(&p);
}

Test(plan, what_is_put_together_is_one_segment_where_it_lies_together)
{
	static uint8_t memory[8192];
	struct remote r = own_process();
	struct plan p = {0};
	/* The first three are one; the fourth is far; the fifth lies by the first, but does not follow it. */
	uint32_t at[] = {1000, 1000 + 64 + PLAN_PUT_GAP, 900, 4000, 1100}, count = sizeof(at) / sizeof(at[0]);
	struct iovec pieces[sizeof(at) / sizeof(at[0])];
	int read;

	for (uint32_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 7 + i / 256);
	for (uint32_t i = 0; i < count; i++)
		pieces[i] = (struct iovec){.iov_base = memory + at[i], .iov_len = 64};
	for (enum plan_put put = PLAN_SINGLY; put <= PLAN_TOGETHER; put++) {
		plan_clear(&p);
		cr_assert(plan_reserve(&p, count * (64 + PLAN_PUT_GAP)));
		cr_assert_eq(plan_put(&p, &r, pieces, count, put, &read), 0);
		cr_assert_eq(read, put == PLAN_SINGLY ? 5 : 3);
		for (uint32_t i = 0; i < count; i++)
			cr_assert_eq(memcmp(plan_bytes(&p, i), memory + at[i], 64), 0);
	}
	pieces[3].iov_base = (void *)(uintptr_t)16;
	cr_assert_eq(plan_put(&p, &r, pieces, count, PLAN_TOGETHER, &read), count);
	cr_assert_eq(read, 1);
	for (uint32_t i = 0; i < count; i++)
		cr_assert_eq(plan_bytes(&p, count + i) != NULL, i < 3, "the rest lies behind what cannot be read");
	plan_release(&p);
}

Test(plan, a_look_is_a_copy_of_its_own)
{
	static uint8_t memory[256];
	struct remote r = own_process();
	struct plan p = {0};
	raddr_t from = (raddr_t)(uintptr_t)memory;

	memset(memory, 'x', sizeof(memory));
	for (uint32_t look = 0; look < 3; look++) {
		plan_begin_look(&p);
		cr_assert_eq(plan_add(&p, from, 100), 2 * look);
		cr_assert_eq(plan_add(&p, from + 100, 50), 2 * look + 1);
	}
	cr_assert_eq(p.segment_count, 3);
	cr_assert_eq(plan_read(&p, &r), 0);
	cr_assert_eq(p.reads, 1);
	for (uint32_t i = 0; i < 6; i++) {
		cr_assert_eq(plan_bytes(&p, i)[0], 'x');
		cr_assert(i < 2 || plan_bytes(&p, i) >= plan_bytes(&p, i - 2) + 100);
	}
	plan_clear(&p);
	cr_assert_eq(plan_add(&p, from, 100), 0);
	cr_assert_eq(plan_add(&p, from + 100, 50), 1);
	cr_assert_eq(p.segment_count, 1);
	plan_release(&p);
}

/* A page that is not there, between two pieces of one segment and as one of its own. */
Test(plan, what_cannot_be_read_does_not_take_the_rest_with_it)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	raddr_t from = (raddr_t)(uintptr_t)memory;
	struct remote r = own_process();
	struct plan p = {0};

	cr_assert_neq(memory, MAP_FAILED);
	memset(memory, 'x', 4 * page);
	cr_assert_eq(munmap(memory + page, page), 0);
	plan_add(&p, from + page - 16, 16);
	plan_add(&p, from + page + 16, 16); /* gone, in the segment of the piece before */
	plan_add(&p, from + 2 * page + 512, 16);
	cr_assert_eq(plan_read(&p, &r), 0);
	cr_assert_not_null(plan_bytes(&p, 0));
	cr_assert_null(plan_bytes(&p, 1));
	cr_assert_not_null(plan_bytes(&p, 2));
	cr_assert_eq(plan_bytes(&p, 0)[15], 'x');
	plan_release(&p);
	munmap(memory, page);
	munmap(memory + 2 * page, 2 * page);
}

/* With one chunk of a data stack, and nothing known yet outside it. The caller frees chunks and apart. */
static void make_thread(struct thread *t)
{
	t->tstate = 0x10000;
	t->chunk_count = 1;
	t->chunks = calloc(1, sizeof(*t->chunks));
	cr_assert_not_null(t->chunks);
	t->chunks[0] = (struct chunk){.base = 0x40000, .size_bytes = 16384, .copy_bytes = 2048};
	cr_assert_not_null(thread_apart(t));
}

/* A line of memory that was read stops the target for a moment when it next stores there. So the data stack, whose copy says where the
 * thread is, is read before anything else of it. */
Test(plan, the_data_stack_is_read_first)
{
	static struct thread t; /* large */
	struct plan p = {0};

	make_thread(&t);
	cr_assert(thread_plan(&t, pyabi_table(3, 12), &p, 1));
	cr_assert_lt(t.copy.chunks, t.copy.head);
	plan_release(&p);
	free(t.chunks);
	free(t.apart);
}

#define PAGE  4096u
#define READ  384u /* bytes */
#define ONES  UINT64_C(0x1111111111111111)
#define TWOS  UINT64_C(0x2222222222222222)

/* A process that stores one and the other in each word of two pages, over and over. */
static pid_t start_writer(volatile uint64_t *words)
{
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (uint64_t value = ONES; pid == 0; value ^= ONES ^ TWOS)
		for (uint32_t i = 0; i < 2 * PAGE / 8; i++)
			words[i] = value;
	return pid;
}

static uint32_t torn_words(const void *bytes, uint32_t count)
{
	uint32_t torn = 0;
	uint64_t word;

	for (uint32_t i = 0; i < count; i++) {
		memcpy(&word, (const uint8_t *)bytes + 8 * i, sizeof(word));
		torn += word != ONES && word != TWOS;
	}
	return torn;
}

/* What lies in its page `behind` bytes before `to` does in its own: that far a copy is taken to overlap. */
static raddr_t shortly_before(const uint64_t *words, const void *to, uint32_t behind)
{
	return (raddr_t)(uintptr_t)words + (((uintptr_t)to - behind) & (PAGE - 1) & ~7u);
}

Test(plan, a_word_is_read_whole_while_it_is_stored)
{
	uint64_t *words = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), word;
	struct remote r = own_process();
	struct plan p = {0};
	uint32_t torn = 0;

	cr_assert_neq(words, MAP_FAILED);
	for (uint32_t i = 0; i < 2 * PAGE / 8; i++)
		words[i] = ONES;
	r.pid = start_writer(words);
	cr_assert(plan_reserve(&p, 2 * READ));
	for (uint32_t i = 0; i < 30000; i++) {
		uint32_t behind = 8 + 8 * (i % 3);

		plan_clear(&p);
		cr_assert_eq(plan_add(&p, shortly_before(words, p.memory, behind), READ), 0);
		cr_assert_eq(plan_read(&p, &r), 0);
		torn += torn_words(plan_bytes(&p, 0), READ / 8);
		cr_assert_eq(remote_read(&r, shortly_before(words, &word, behind), &word, sizeof(word)), 0);
		torn += torn_words(&word, 1);
	}
	kill(r.pid, SIGKILL);
	waitpid(r.pid, NULL, 0);
	plan_release(&p);
	cr_assert_eq(torn, 0);
}
