/* SPDX-License-Identifier: Apache-2.0 */
/* What a tick reads of its target: all threads that may have moved, in one go, and the lists of interpreters and threads when they changed. */
#include <errno.h>

#include "base/clock.h"
#include "sampler/collector.h"
#include "sampler/host.h"
#include "sampler/still.h"
#include "sampler/target.h"

#define WATCH_NS    (500 * NS_PER_US) /* thread lists are read no more often than this */
#define CHECK_NS    (10 * NS_PER_MS)  /* a program that is executed finds its addresses where the one before had them, without ASLR */
#define RELIST_NS   (1 * NS_PER_S)
#define SEEK_NS     (2 * NS_PER_MS) /* while no thread's number is known: TIDS_SOUGHT_MAX */
#define RELISTS     6  /* reads of the lists after the first, while they change */
#define BLIND_TICKS 50 /* looks at the lists that made no sense, before the target is given up; … */
#define BLIND_LOOKS 5  /* … or so many, if they took a while: what execs is another process, and to be found soon */
#define BLIND_NS    (200 * NS_PER_MS)

/* Builds and reads the plan of the whole process. */
static int read_all(struct target *target, bool watch, uint64_t now_ns)
{
	const struct pyabi *abi = &target->proc.abi;
	int err = still_list_awake(target);

	if (err)
		return err;
	plan_clear(&target->plan);
	if (!target->exact)
		still_plan(target);
	target->piece_gil = PLAN_FULL;
	if (abi->gil != GIL_INTERPRETER && target->proc.gil_current)
		target->piece_gil = plan_add(&target->plan, target->proc.gil_current, 8);
	for (uint32_t i = 0; !target->exact && i < target->awake_count; i++)
		if (!thread_plan(target->awake[i], abi, &target->plan, target->tick))
			return -ENOMEM;
	for (uint32_t i = 0; target->exact && watch && i < target->awake_count; i++)
		thread_plan_state(target->awake[i], abi, &target->plan);
	for (uint32_t i = 0; i < target->interp_count; i++) {
		struct interp *interp = &target->interps[i];

		interp->piece_threads =
			watch ? plan_add(&target->plan, interp->addr + (uint64_t)abi->interp.threads, 8) : PLAN_FULL;
		collector_plan(target, interp, &target->plan);
	}
	for (uint32_t i = 0; i < target->interp_count; i++)
		target->interps[i].piece_generation =
			target_plan_generation(target, target->interps[i].addr, &target->plan, now_ns);
	err = plan_read(&target->plan, &target->remote);
	for (uint32_t i = 0; !err && i < target->interp_count; i++)
		target_take_generation(target, target->interps[i].addr, &target->plan,
		                       target->interps[i].piece_generation, now_ns);
	return err;
}

/* Whether its lists have made no sense for so long that it is not what it was. */
static bool is_blind(struct target *target, bool failed, uint64_t now_ns)
{
	if (!failed || target->blind_ticks == 0)
		target->t_seen_ns = now_ns;
	target->blind_ticks = failed ? target->blind_ticks + 1 : 0;
	return target->blind_ticks > BLIND_TICKS ||
	       (target->blind_ticks >= BLIND_LOOKS && now_ns - target->t_seen_ns >= BLIND_NS);
}

/* Reads the process, and once more with the threads that this showed to have moved, until it shows no others. */
static int read_moved(struct target *target, bool watch, uint64_t now_ns)
{
	int err = read_all(target, watch, now_ns);

	for (bool all = false; !err && !target->exact && still_wake_moved(target, now_ns, all); all = true)
		err = read_all(target, watch, now_ns);
	return err;
}

static bool lists_are_due(const struct target *target, uint64_t now_ns)
{
	return now_ns - target->t_watched_ns >= WATCH_NS;
}

static bool listing_is_due(const struct target *target, uint64_t now_ns)
{
	bool seeks = !target->tids_known && target->tids_sought < TIDS_SOUGHT_MAX;

	return now_ns - target->t_listed_ns >= (seeks ? SEEK_NS : RELIST_NS);
}

int target_read(struct target *target, uint64_t now_ns)
{
	bool watch = lists_are_due(target, now_ns);
	int err = read_moved(target, watch, now_ns);

	if (err || !watch)
		return err;
	target->t_watched_ns = now_ns;
	if (now_ns - target->t_checked_ns >= CHECK_NS) {
		target->t_checked_ns = now_ns;
		err = remote_check(&target->remote, target->interp_count > 0 ? target->interps[0].addr : 0);
		if (err)
			return err;
	}
	if (target_list_changed(target) || listing_is_due(target, now_ns)) {
		if (!host_of(&target->remote)->is_same(&target->remote, target->proc.start_time))
			return -ESRCH;
		err = target_list(target, now_ns);
		for (int i = 0; err == -EAGAIN && i < RELISTS; i++)
			err = target_list(target, now_ns);
		if (err == -ESRCH)
			return err;
		if (is_blind(target, err != 0, now_ns))
			return -ESTALE;
		err = read_moved(target, true, now_ns);
	}
	return err;
}
