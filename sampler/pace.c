/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/pace.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "sampler/exact.h"
#include "sampler/procfs.h"
#include "sampler/still.h"
#include "sampler/target.h"

#define PARKED_TICKS  2 /* of the scheduler, that an interval takes at least where processes are parked */
#define PARK_AFTER_NS (500 * NS_PER_MS)
#define SKIP_PART     128 /* of the ticks that it has been parked for, the clock is not read */
#define SKIP_MOST     8
#define PARKED_RUN_NS                                                                                                  \
	(10 * NS_PER_S) /* what is credited is written after this time, so that the consumer hears of it */
#define TICK_MOST_NS (100 * NS_PER_MS) /* no kernel ticks more seldom */

uint64_t pace_scheduler_tick_ns(void)
{
	struct timespec tick;
	struct buf tickless = {0};
	bool all_tick = proc_read_file("/sys/devices/system/cpu/nohz_full", &tickless, 4096) != 0 ||
	                buf_text(&tickless)[0] == '\n' || buf_text(&tickless)[0] == '(' ||
	                buf_text(&tickless)[0] == '\0';
	uint64_t ns;

	buf_release(&tickless);
	if (!all_tick || clock_getres(CLOCK_MONOTONIC_COARSE, &tick) != 0)
		return 0;
	ns = (uint64_t)tick.tv_sec * NS_PER_S + (uint64_t)tick.tv_nsec;
	return ns <= TICK_MOST_NS ? ns : 0;
}

int pace_add(struct pace *pace, struct target *target)
{
	struct seat seat = {.target = target};

	if (pace->count == pace->room) {
		uint32_t room = pace->room ? 2 * pace->room : 4;
		struct seat *seats = realloc(pace->seats, room * sizeof(*seats));

		if (!seats)
			return -ENOMEM;
		pace->seats = seats;
		pace->room = room;
	}
	seat.has_clock = clock_getcpuclockid(target->proc.pid, &seat.clock) == 0;
	pace->seats[pace->count++] = seat;
	return 0;
}

/* Brings the target up to date with what its seat counted. */
static void account(struct seat *seat, uint64_t ran_ns)
{
	struct target *target = seat->target;

	target->facts.ticks_late += seat->late;
	target->facts.ticks_missed += seat->missed;
	target->facts.ticks_saved += seat->saved;
	still_credit(target, seat->ticks, seat->t_ns, seat->base_ns, ran_ns);
	seat->ticks = seat->late = seat->missed = seat->saved = 0;
}

/* Takes one out, with all accounts written. */
static struct target *pace_remove(struct pace *pace, uint32_t index)
{
	struct target *target = pace->seats[index].target;

	account(&pace->seats[index], 0);
	pace->seats[index] = pace->seats[--pace->count];
	return target;
}

/* The next deadline that its clock is read at. */
static void set_skip(struct seat *seat)
{
	uint32_t skip = seat->parked_ticks / SKIP_PART;

	seat->skip = (uint8_t)(skip < SKIP_MOST ? skip : SKIP_MOST - 1);
}

/* A tick of a parked process goes by. */
static void credit(struct seat *seat, uint64_t step_ns, uint64_t base_ns, uint64_t now_ns)
{
	seat->parked_ticks++;
	seat->ticks++;
	seat->t_ns = now_ns;
	seat->base_ns = base_ns;
	if (seat->ticks * step_ns >= PARKED_RUN_NS) {
		account(seat, 0);
		runs_close_all(seat->target);
		target_write_facts(seat->target);
	}
}

static void unpark(struct seat *seat, uint64_t ran_ns)
{
	account(seat, ran_ns);
	still_unpark(seat->target);
	seat->parked = false;
}

/* Whether the process has not run since it was last read, so that this tick of it is credited. */
static bool is_parked(struct seat *seat, bool parking, uint64_t now_ns)
{
	uint64_t before_ns = seat->cpu_ns;

	if (seat->parked && seat->skip > 0 && parking) {
		seat->skip--;
		return true;
	}
	seat->cpu_ns = parking && seat->has_clock ? clock_read_ns(seat->clock) : 0;
	if (seat->cpu_ns == 0 || seat->cpu_ns != before_ns) {
		seat->t_moved_ns = now_ns;
		if (seat->parked)
			unpark(seat, seat->cpu_ns > before_ns ? seat->cpu_ns - before_ns : 0);
		return false;
	}
	if (!seat->parked) {
		if (now_ns - seat->t_moved_ns < PARK_AFTER_NS || !still_can_park(seat->target))
			return false;
		account(seat, 0);
		still_park(seat->target);
		target_slim(seat->target);
		seat->parked = true;
		seat->parked_ticks = 0;
	}
	set_skip(seat);
	return true;
}

void pace_tick(struct pace *pace, const struct pace_tick *tick, uint64_t now_ns)
{
	uint64_t step_ns = pace->interval_ns * tick->slowdown, missed = 0;
	bool late = step_ns && now_ns > pace->due_ns + step_ns / 2;
	bool parking = tick->scheduler_tick_ns && step_ns >= PARKED_TICKS * tick->scheduler_tick_ns;

	if (step_ns && now_ns - pace->base_ns >= 2 * step_ns) {
		missed = (now_ns - pace->base_ns) / step_ns - 1;
		pace->base_ns += missed * step_ns;
	}
	if (step_ns && pace->count > 0)
		near_woke(pace->seats[0].target, now_ns - pace->due_ns, now_ns);
	for (uint32_t i = 0; i < pace->count;) {
		struct seat *seat = &pace->seats[i];
		int err;

		seat->late += late;
		if (seat->t_ns || seat->target->facts.ticks > 0) {
			seat->missed += missed;
			seat->saved += tick->slowdown - 1;
		}
		if (is_parked(seat, parking, now_ns)) {
			credit(seat, step_ns, pace->base_ns, now_ns);
			i++;
			continue;
		}
		account(seat, 0);
		seat->target->interval_ns = step_ns;
		err = target_tick(seat->target, now_ns, step_ns ? pace->base_ns : now_ns);
		if (err == 0 || err == -ENOMEM)
			i++;
		else
			tick->ended(tick->context, pace_remove(pace, i), err);
		if (i < pace->count)
			now_ns = clock_now_ns();
	}
	pace->step_ns = step_ns;
	pace->base_ns += step_ns;
}

/* Writes everything that is in progress, with the facts. */
static void pace_flush(struct pace *pace)
{
	for (uint32_t i = 0; i < pace->count; i++) {
		account(&pace->seats[i], 0);
		runs_settle(pace->seats[i].target);
		target_write_facts(pace->seats[i].target);
	}
}

struct pace *paces_find(struct paces *paces, uint64_t interval_ns)
{
	for (uint32_t i = 0; i < paces->count; i++)
		if (paces->items[i].interval_ns == interval_ns)
			return &paces->items[i];
	if (paces->count == paces->room) {
		uint32_t room = paces->room ? 2 * paces->room : 4;
		struct pace *items = realloc(paces->items, room * sizeof(*items));

		if (!items)
			return NULL;
		paces->items = items;
		paces->room = room;
	}
	paces->items[paces->count] = (struct pace){.interval_ns = interval_ns, .step_ns = interval_ns};
	return &paces->items[paces->count++];
}

static uint64_t next_random(struct paces *paces)
{
	/* xorshift64: G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8 (2003) */
	paces->random ^= paces->random << 13;
	paces->random ^= paces->random >> 7;
	paces->random ^= paces->random << 17;
	return paces->random;
}

void paces_set_due(struct paces *paces, struct pace *pace, bool jitter)
{
	pace->due_ns = pace->base_ns + (jitter ? next_random(paces) % (pace->step_ns + 1) : 0);
}

struct pace *paces_next(struct paces *paces)
{
	struct pace *next = &paces->items[0];

	for (uint32_t i = 1; i < paces->count; i++)
		if (paces->items[i].due_ns < next->due_ns)
			next = &paces->items[i];
	return next;
}

void paces_drop_empty(struct paces *paces)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < paces->count; i++) {
		if (paces->items[i].count > 0)
			paces->items[kept++] = paces->items[i];
		else
			free(paces->items[i].seats);
	}
	paces->count = kept;
}

struct target *paces_remove(struct paces *paces, pid_t pid, uint64_t start_time)
{
	for (uint32_t i = 0; i < paces->count; i++) {
		for (uint32_t k = 0; k < paces->items[i].count; k++) {
			const struct pyproc *proc = &paces->items[i].seats[k].target->proc;

			if (proc->pid == pid && proc->start_time == start_time)
				return pace_remove(&paces->items[i], k);
		}
	}
	return NULL;
}

bool paces_take_late(struct paces *paces, struct stop *stop)
{
	for (uint32_t i = 0; i < paces->count; i++) {
		for (uint32_t k = 0; k < paces->items[i].count; k++) {
			struct target *target = paces->items[i].seats[k].target;

			if (target->exact && exact_take_late(target, stop))
				return true;
		}
	}
	return false;
}

void paces_flush(struct paces *paces)
{
	for (uint32_t i = 0; i < paces->count; i++)
		pace_flush(&paces->items[i]);
}

void paces_finish(struct paces *paces)
{
	paces_flush(paces);
	for (uint32_t i = 0; i < paces->count; i++) {
		for (uint32_t k = 0; k < paces->items[i].count; k++) {
			struct target *target = paces->items[i].seats[k].target;

			near_leave(target);
			target_finish(target, clock_now_ns(), TARGET_DETACHED);
		}
	}
}

void paces_release(struct paces *paces)
{
	for (uint32_t i = 0; i < paces->count; i++) {
		for (uint32_t k = 0; k < paces->items[i].count; k++)
			target_free(paces->items[i].seats[k].target);
		free(paces->items[i].seats);
	}
	free(paces->items);
	*paces = (struct paces){0};
}
