/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/targets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/children.h"
#include "daemon/opening.h"
#include "sampler/procfs.h"

enum {
	MEMBERS_MAX = 4096,
	PAUSE_FIRST_MS = 1,
	PAUSE_COMMAND_MAX_MS = 20, /* a program on its way to exec Python: pyenv's shims take a while */
	PAUSE_CHILD_MAX_MS = 500,
	PATIENCE_MS = 2000,
	SCAN_MS = 50,
	SCAN_THOROUGH_MS = 1000, /* for children of all threads of processes that have many */
	SCAN_REST = 10,          /* times as long as a scan took: it gets a tenth of one CPU at most */
	LOOK_MS = 1000,          /* at places: rights given up are given up here within this time */
	LOOKS_MAX = 64,          /* at one time, some 40 µs each */
};

void targets_init(struct targets *targets, struct sampler *sampler, struct places *places, bool follow_children,
                  bool verbose)
{
	*targets = (struct targets){
		.sampler = sampler, .places = places, .follow_children = follow_children, .verbose = verbose};
}

void targets_release(struct targets *targets)
{
	free(targets->members);
	targets->members = NULL;
	targets->count = targets->room = 0;
}

static struct member *find(const struct targets *t, pid_t pid, uint64_t start_time)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->members[i].pid == pid && t->members[i].start_time == start_time)
			return &t->members[i];
	return NULL;
}

static int make_room(struct targets *t)
{
	struct member *members;
	size_t room = t->room ? t->room * 2 : 16;

	if (t->count < t->room)
		return 0;
	if (t->room >= MEMBERS_MAX)
		return -ENOSPC;
	members = realloc(t->members, room * sizeof(*members));
	if (!members)
		return -ENOMEM;
	t->members = members;
	t->room = room;
	return 0;
}

static void refuse(struct targets *t, struct member *m, int err, const struct fault *fault)
{
	/* An end can look like anything else but this. */
	if (m->was && (err == -EPERM || err == -EACCES) && !m->reported) {
		error_fault(fault, "cannot go on with process %d", (int)m->pid);
		t->worst = error_worse(t->worst, error_status(err));
	} else if (m->origin == MEMBER_CHILD) {
		if (t->verbose && !m->reported)
			error_fault(fault, "passing over process %d", (int)m->pid);
	} else if (!m->reported) {
		error_fault(fault, "cannot attach to process %d", (int)m->pid);
		t->worst = error_worse(t->worst, error_status(err));
	}
	m->reported = true;
	/* A named one had its chance; the command and children may exec something else yet. */
	m->gone = m->origin == MEMBER_NAMED;
}

/* Whether the process is still there and no zombie. 0, or -ESRCH with *fault filled. */
static int check_alive(pid_t pid, uint64_t *start_time, struct fault *fault)
{
	struct proc_stat stat;
	int err = proc_stat_read(&stat, pid, 0);

	if (!err && (stat.state == 'Z' || stat.state == 'X'))
		return fault_set(fault, -ESRCH, "its parent has not asked for its exit status yet", "it has ended");
	if (err == -ENOENT || err == -ESRCH || (!err && *start_time && stat.start_time != *start_time))
		return fault_set(fault, -ESRCH, "", "no such process");
	if (err)
		return fault_set(fault, err, "", "%s", strerror(-err));
	*start_time = stat.start_time;
	return 0;
}

/* Starts to look at a process from now on, quickly at first. */
static void wait_anew(struct member *m)
{
	uint64_t now_ns = clock_now_ns();

	m->sampled = false;
	m->reported = false;
	m->pause_ns = PAUSE_FIRST_MS * NS_PER_MS;
	m->next_try_ns = now_ns;
	m->patience_ns = now_ns + PATIENCE_MS * NS_PER_MS;
}

int targets_add(struct targets *targets, pid_t pid, enum member_origin origin)
{
	struct member m = {.pid = pid, .origin = origin};
	struct fault fault;
	int err = check_alive(pid, &m.start_time, &fault);

	if (err) {
		/* That the command has ended is for its parent, us, to see elsewhere. */
		if (origin != MEMBER_COMMAND)
			refuse(targets, &m, err, &fault);
		return err;
	}
	if (find(targets, pid, m.start_time))
		return 0;
	err = make_room(targets);
	if (err) {
		if (!targets->full_reported)
			error_note("more than %d processes: the rest is left out", MEMBERS_MAX);
		targets->full_reported = true;
		return err;
	}
	wait_anew(&m);
	if (origin == MEMBER_NAMED)
		m.patience_ns -= PATIENCE_MS * NS_PER_MS / 2;
	targets->members[targets->count++] = m;
	return 0;
}

static void note_attached(struct targets *t, const struct target *target)
{
	const struct pyproc *proc = target_proc(target);

	if (t->verbose)
		error_note("attached to process %d: Python %s, found by %s", (int)proc->pid, proc->version_text,
		           proc->found_by);
	if (t->marks && proc->abi.frames == FRAMES_HEAP) {
		error_note("Python %s does not tell where C calls Python: no <native> marks (3.11 and later have them)",
		           proc->version_text);
		t->marks = false;
	}
}

static void try_member(struct targets *t, struct member *m)
{
	uint64_t most_ns = (m->origin == MEMBER_COMMAND ? PAUSE_COMMAND_MAX_MS : PAUSE_CHILD_MAX_MS) * NS_PER_MS;
	struct target *target;
	struct fault fault;
	int err = check_alive(m->pid, &m->start_time, &fault);

	if (!err && t->stops)
		err = opening_check_stops(m->pid, &fault);
	if (!err)
		err = opening_try(&target, m->pid, &fault);
	if (!err && target_proc(target)->start_time != m->start_time) {
		/* The pid has gone to another process since. */
		target_free(target);
		err = fault_set(&fault, -ESRCH, "", "no such process");
	}
	if (!err) {
		note_attached(t, target);
		m->sampled = true;
		t->sampled++;
		t->attached++;
		sampler_add(t->sampler, target);
		places_note(t->places, m->pid, m->start_time);
		return;
	}
	if (err == -ESRCH) {
		if (m->origin == MEMBER_NAMED)
			refuse(t, m, err, &fault);
		m->gone = true;
		return;
	}
	/* The command is expected to become a Python; a process that exec'd may be on its way to be one again. */
	if (!opening_is_early(err) && !(err == -ENOEXEC && m->origin == MEMBER_COMMAND))
		refuse(t, m, err, &fault);
	else if (clock_now_ns() > m->patience_ns && err != -ENOEXEC)
		refuse(t, m, err, &fault);
	/* A Python that starts is worth a look every millisecond; anything else ever more seldom. */
	m->next_try_ns = clock_now_ns() + m->pause_ns;
	if (!opening_is_early(err) || clock_now_ns() > m->patience_ns)
		m->pause_ns = m->pause_ns * 2 < most_ns ? m->pause_ns * 2 : most_ns;
}

static void drop_gone(struct targets *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->count; i++)
		if (!t->members[i].gone)
			t->members[kept++] = t->members[i];
	t->count = kept;
}

/* Some of the members, the others at the next times. */
static void look_at_places(struct targets *t)
{
	for (size_t i = 0; i < LOOKS_MAX && i < t->count; i++) {
		const struct member *m = &t->members[t->next_place++ % t->count];

		if (m->sampled)
			places_note(t->places, m->pid, m->start_time);
	}
}

/* Looks for children. However many processes and threads there are, and where the kernel has no lists of children so that
 * all of /proc is read, it keeps to its share of the time. */
static void scan_children(struct targets *t, uint64_t now_ns)
{
	bool thorough = now_ns >= t->next_thorough_ns;
	uint64_t rest_ns;

	children_scan(t, thorough);
	rest_ns = (clock_now_ns() - now_ns) * SCAN_REST;
	if (rest_ns < SCAN_MS * NS_PER_MS)
		rest_ns = SCAN_MS * NS_PER_MS;
	t->next_scan_ns = now_ns + rest_ns;
	if (thorough)
		t->next_thorough_ns = now_ns + SCAN_THOROUGH_MS * NS_PER_MS;
}

uint64_t targets_step(struct targets *targets)
{
	uint64_t now_ns = clock_now_ns(), due_ns = UINT64_MAX;

	if (targets->follow_children && now_ns >= targets->next_scan_ns)
		scan_children(targets, now_ns);
	for (size_t i = 0; i < targets->count; i++) {
		struct member *m = &targets->members[i];

		if (!m->sampled && !m->gone && m->next_try_ns <= now_ns)
			try_member(targets, m);
	}
	drop_gone(targets);
	if (targets->sampled > 0 && now_ns >= targets->next_look_ns) {
		look_at_places(targets);
		if (!targets->follow_children && targets->missed_children == 0)
			children_note_missed(targets);
		targets->next_look_ns = now_ns + LOOK_MS * NS_PER_MS;
	}
	if (targets->sampled > 0)
		due_ns = targets->next_look_ns;
	for (size_t i = 0; i < targets->count; i++)
		if (!targets->members[i].sampled && targets->members[i].next_try_ns < due_ns)
			due_ns = targets->members[i].next_try_ns;
	if (targets->follow_children && targets->next_scan_ns < due_ns)
		due_ns = targets->next_scan_ns;
	return due_ns;
}

void targets_look_again(struct targets *targets)
{
	targets->next_scan_ns = targets->next_thorough_ns = 0;
}

void targets_collect(struct targets *targets)
{
	struct target *target;

	while ((target = sampler_take_ended(targets->sampler))) {
		const struct pyproc *proc = target_proc(target);
		struct member *m = find(targets, proc->pid, proc->start_time);

		if (m && m->sampled) {
			targets->sampled--;
			/* While it waits to be reaped it tells whose it was at its end. */
			if (!target_is_execed(target))
				places_note(targets->places, m->pid, m->start_time);
			/* Same process, new program: it may be a Python too. */
			if (check_alive(m->pid, &m->start_time, NULL) == 0)
				wait_anew(m);
			else
				m->gone = true;
			if (m->gone && targets->verbose)
				error_note("process %d has ended", (int)m->pid);
			m->was = !target_is_execed(target);
			/* What it became after an exec was not asked for by number: it is passed over like a
			 * child. */
			if (m->origin == MEMBER_NAMED)
				m->origin = MEMBER_CHILD;
		}
		target_free(target);
	}
	drop_gone(targets);
}

bool targets_alive(const struct targets *targets)
{
	uint64_t now_ns = clock_now_ns();

	if (targets->sampled > 0)
		return true;
	for (size_t i = 0; i < targets->count; i++) {
		const struct member *m = &targets->members[i];

		/* A process that is no Python and shows no sign of becoming one keeps nobody waiting. */
		if (m->origin != MEMBER_CHILD || now_ns < m->patience_ns)
			return true;
	}
	return false;
}
