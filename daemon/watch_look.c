/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of one process. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/limits.h"
#include "daemon/opening.h"
#include "daemon/service_log.h"
#include "daemon/watch_state.h"
#include "sampler/procfs.h"

#define PAUSE_FIRST_NS    (1 * NS_PER_S)
#define PAUSE_MOST_NS     (30 * NS_PER_S)
#define PAUSE_STARTING_NS (10 * NS_PER_MS)
#define PATIENCE_NS       (5 * NS_PER_S)  /* a Python gets to be ready */
#define STEADY_NS         (10 * NS_PER_S) /* one that was sampled for so long is looked at again at once */
#define STARVED_SAID_NS   (60 * NS_PER_S)
#define KERNEL_THREAD     0x00200000u /* PF_KTHREAD, include/linux/sched.h */

enum {
	OPENING_FILES = 6
}; /* that must be left when a process is opened: some for the moment, some for as long as it is sampled */

void watched_close(struct watched *item)
{
	if (item->pidfd >= 0)
		close(item->pidfd); /* leaves the epoll set with it */
	item->pidfd = -1;
}

static void forget_about(struct watched *item)
{
	free(item->about.name);
	free(item->about.unit);
	free(item->about.container);
	item->about = (struct watched_about){0};
}

void watched_release(struct watched *item)
{
	watched_close(item);
	forget_about(item);
	free(item->why);
	item->why = NULL;
}

void watch_look_soon(struct watched *item)
{
	uint64_t now_ns = clock_now_ns();

	item->next_ns = now_ns;
	item->patience_ns = now_ns + PATIENCE_NS;
	if (item->state != WATCH_SAMPLED)
		item->pause_ns = PAUSE_FIRST_NS;
}

/* Waits twice as long as the last time. */
static void wait_longer(struct watched *item, enum watch_state state)
{
	item->state = state;
	item->next_ns = clock_now_ns() + item->pause_ns;
	item->pause_ns = item->pause_ns * 2 < PAUSE_MOST_NS ? item->pause_ns * 2 : PAUSE_MOST_NS;
}

static void set_failed(struct watched *item, const char *why, bool starved)
{
	free(item->why);
	item->why = strdup(why);
	item->starved = starved;
	wait_longer(item, WATCH_FAILED);
}

static void fail(struct watched *item, const struct fault *fault)
{
	char why[sizeof(fault->why) + sizeof(fault->hint) + 4];

	snprintf(why, sizeof(why), fault->hint[0] ? "%s (%s)" : "%s", fault->why, fault->hint);
	/* Said once, and again when the reason is another. */
	if (!item->why || strcmp(item->why, why) != 0)
		service_log("cannot profile process %d: %s", (int)item->pid, why);
	set_failed(item, why, false);
}

static bool is_short_of_files(int err)
{
	return err == -EMFILE || err == -ENFILE;
}

/* It may be a Python or not: it cannot be looked at now, and is not forgotten. */
static int starve(struct watch *w, struct watched *item)
{
	static const char why[] = "too few file descriptors are left to look at it (raise LimitNOFILE=, or ulimit -n)";
	uint64_t now_ns = clock_now_ns();

	if (item->state == WATCH_SAMPLED) { /* it was only asked whether it is the same */
		item->next_ns = now_ns + PAUSE_FIRST_NS;
		return 0;
	}
	if (!w->starved_said_ns || now_ns - w->starved_said_ns >= STARVED_SAID_NS) {
		service_log("cannot profile process %d, and maybe others: %s", (int)item->pid, why);
		w->starved_said_ns = now_ns;
	}
	set_failed(item, why, true);
	return 0;
}

/* Another process has its number: nothing of the one before is left, least of all whose it was. */
static void become(struct watch *w, struct watched *item, const struct proc_stat *stat)
{
	if (item->state == WATCH_SAMPLED) {
		if (w->options.ended)
			w->options.ended(w->options.context, item);
		/* Its pidfd, which would tell, is closed here. */
		(void)sampler_detach(w->options.sampler, item->pid, item->start_time);
	}
	watched_release(item);
	item->start_time = stat->start_time;
	item->uid = UID_UNKNOWN;
	item->state = stat->flags & KERNEL_THREAD ? WATCH_KERNEL : WATCH_LOOKED;
	item->forced = item->detached = item->rematch = false;
	item->rule = 0;
	item->version = 0;
	item->interval_ns = item->sampled_ns = 0;
	watch_look_soon(item);
}

/* Whether it is still there; it may be another one with its number by now. 0, -ESRCH, or that it cannot be asked. */
static int check_identity(struct watch *w, struct watched *item)
{
	struct proc_stat stat;
	int err = proc_stat_read(&stat, item->pid, 0);

	if (is_short_of_files(err)) {
		limits_free_files(); /* for the moment */
		err = proc_stat_read(&stat, item->pid, 0);
		limits_keep_files();
	}
	if (is_short_of_files(err))
		return err;
	if (err || stat.state == 'Z' || stat.state == 'X')
		return -ESRCH;
	if (item->start_time != stat.start_time)
		become(w, item, &stat);
	return 0;
}

/* A descriptor that tells of its end. Without one, the sampler or the next scan does. */
static void hold(struct watch *w, struct watched *item)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = w->options.epoll_tag | (uint32_t)item->pid};

	watched_close(item);
	item->pidfd = (int)syscall(SYS_pidfd_open, item->pid, 0);
	if (item->pidfd >= 0 && epoll_ctl(w->options.epoll_fd, EPOLL_CTL_ADD, item->pidfd, &event) != 0)
		watched_close(item);
}

static void note_about(struct watched *item, const struct candidate *candidate)
{
	forget_about(item);
	item->uid = candidate->uid;
	item->about.name = strdup(candidate->comm);
	item->about.unit = strdup(candidate->unit);
	item->about.container = strdup(candidate->container);
}

/* Hands it to the sampler. */
static void sample(struct watch *w, struct watched *item, struct target *target, const struct candidate *candidate,
                   int rule)
{
	const struct config_rule *by = &w->options.config->rules[rule];

	hold(w, item);
	note_about(item, candidate);
	free(item->why);
	item->why = NULL;
	item->rule = (size_t)rule;
	item->interval_ns = by->interval_ns;
	item->version = target_proc(target)->version;
	item->state = WATCH_SAMPLED;
	item->next_ns = UINT64_MAX;
	item->sampled_ns = clock_now_ns();
	if (w->options.verbose)
		service_log("profiling process %d (%s), Python %s, by rule %s", (int)item->pid, candidate->comm,
		            target_proc(target)->version_text, by->name);
	item->command_line = w->options.config->service.command_line;
	target_configure(target, by->interval_ns, w->options.group(w->options.context, by), item->command_line);
	sampler_add(w->options.sampler, target);
}

/* Which rule includes it; below 0: none, or it is to be opened first. */
static int match(const struct watch *w, const struct watched *item, const struct candidate *candidate)
{
	int rule = rules_match(w->options.config, candidate);

	if (!item->forced || rule >= 0 || rule == RULES_NEEDS_VERSION)
		return rule;
	for (size_t i = 0; i < w->options.config->rule_count; i++) /* the first that includes anything */
		if (w->options.config->rules[i].action == RULE_INCLUDE)
			return (int)i;
	return rule;
}

/* It could not be opened. */
static int put_off(struct watched *item, int err, const struct fault *fault)
{
	if (err == -ESRCH)
		return -ESRCH;
	if (err == -ENOEXEC) {
		wait_longer(item, WATCH_LOOKED);
	} else if (opening_is_early(err) && clock_now_ns() < item->patience_ns) {
		item->state = WATCH_STARTING;
		item->next_ns = clock_now_ns() + PAUSE_STARTING_NS;
	} else {
		fail(item, fault);
	}
	return 0;
}

static int open_it(struct watch *w, struct watched *item, struct candidate *candidate, int rule)
{
	struct target *target;
	struct fault fault;
	int err = limits_have_files(OPENING_FILES) ? opening_try(&target, item->pid, &fault) : -EMFILE;

	if (is_short_of_files(err)) {
		note_about(item, candidate);
		return starve(w, item);
	}
	if (err && err != -ESRCH && err != -ENOEXEC)
		note_about(item, candidate); /* it is shown, to whom it belongs */
	if (err)
		return put_off(item, err, &fault);
	if (target_proc(target)->start_time != item->start_time) {
		target_free(target);
		watch_look_soon(item);
		return 0;
	}
	candidate->version = target_proc(target)->version >> 8;
	if (rule == RULES_NEEDS_VERSION)
		rule = match(w, item, candidate);
	if (rule < 0 || item->detached) {
		note_about(item, candidate);
		target_free(target);
		wait_longer(item, WATCH_EXCLUDED);
		return 0;
	}
	sample(w, item, target, candidate, rule);
	return 0;
}

int watch_look(struct watch *w, struct watched *item)
{
	struct candidate candidate;
	int rule, err = check_identity(w, item);

	if (err)
		return is_short_of_files(err) ? starve(w, item) : -ESRCH;
	if (item->state == WATCH_SAMPLED) { /* it was only asked whether it is the same */
		item->next_ns = UINT64_MAX;
		return 0;
	}
	if (item->state == WATCH_KERNEL || item->detached) {
		item->next_ns = UINT64_MAX;
		return 0;
	}
	err = candidate_read(item->pid, &candidate);
	if (is_short_of_files(err)) {
		limits_free_files();
		err = candidate_read(item->pid, &candidate);
		limits_keep_files();
	}
	if (err)
		return is_short_of_files(err) ? starve(w, item) : -ESRCH;
	item->uid = candidate.uid;
	rule = match(w, item, &candidate);
	if (rule == RULES_EXCLUDED)
		note_about(item, &candidate);
	if (rule == RULES_NONE || rule == RULES_EXCLUDED) {
		wait_longer(item, rule == RULES_EXCLUDED ? WATCH_EXCLUDED : WATCH_LOOKED);
		return 0;
	}
	return open_it(w, item, &candidate, rule);
}

void watch_look_again(struct watch *w, struct watched *item, bool execed)
{
	bool steady = clock_now_ns() - item->sampled_ns >= STEADY_NS;
	uint64_t pause_ns = item->pause_ns;

	(void)w;
	item->state = item->detached ? WATCH_EXCLUDED : WATCH_LOOKED;
	watch_look_soon(item);
	/* What cannot be read for long is not tried for ever at once. */
	if (!execed && !steady && !item->rematch) {
		item->pause_ns = pause_ns;
		wait_longer(item, item->state);
	}
	item->rematch = false;
}

/* What it is sampled as is another rule's, or the rule says another rate, or its command line is shown in another way: it is given back, and comes
 * again at once. */
void watch_match_anew(struct watch *w, struct watched *item, const struct config *before)
{
	const struct config_rule *was = item->state == WATCH_SAMPLED ? &before->rules[item->rule] : NULL;
	struct candidate candidate;
	int rule = RULES_NONE;

	if (!was) {
		watch_look_soon(item);
		return;
	}
	if (candidate_read(item->pid, &candidate) == 0) { /* else its end is on its way, it seems */
		candidate.version = item->version >> 8;
		rule = match(w, item, &candidate);
	}
	if (rule >= 0 && strcmp(w->options.config->rules[rule].name, was->name) == 0 &&
	    w->options.config->rules[rule].interval_ns == item->interval_ns &&
	    w->options.config->service.command_line == item->command_line) {
		item->rule = (size_t)rule;
		return;
	}
	if (w->options.ended) /* while its rule is still to be had */
		w->options.ended(w->options.context, item);
	item->rule = rule >= 0 ? (size_t)rule : 0; /* until it comes back: `was` goes with its configuration */
	item->rematch = sampler_detach(w->options.sampler, item->pid, item->start_time) == 0;
}

int watch_attach(struct watch *w, pid_t pid, struct fault *fault)
{
	struct watched *item = watch_find_own(w, pid);

	if (!item || item->state == WATCH_KERNEL)
		return fault_set(fault, -ESRCH, "", "no such process");
	item->forced = true;
	item->detached = false;
	if (item->state == WATCH_SAMPLED)
		return 0;
	watch_look_soon(item);
	if (watch_look(w, item) == -ESRCH)
		return fault_set(fault, -ESRCH, "", "no such process");
	if (item->state == WATCH_FAILED)
		return fault_set(fault, -EPERM, "", "%s", item->why ? item->why : "it cannot be read");
	if (item->state != WATCH_SAMPLED && item->state != WATCH_STARTING) {
		item->forced = false;
		return fault_set(fault, -ENOEXEC, "", "it is not a Python");
	}
	return 0;
}

int watch_detach(struct watch *w, pid_t pid, struct fault *fault)
{
	struct watched *item = watch_find_own(w, pid);

	if (!item || item->state == WATCH_KERNEL)
		return fault_set(fault, -ESRCH, "", "no such process");
	item->forced = false;
	item->detached = true;
	if (item->state == WATCH_SAMPLED)
		return sampler_detach(w->options.sampler, item->pid, item->start_time);
	item->state = WATCH_EXCLUDED;
	item->next_ns = UINT64_MAX;
	return 0;
}
