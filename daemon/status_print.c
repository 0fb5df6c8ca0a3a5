/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "daemon/service_status.h"
#include "exporters/facts.h"

enum { REASONS_MAX = 6, NAME_COLUMNS = 16, RULE_COLUMNS = 14, REST_COLUMNS = 200 };

const char *const target_state_names[TARGET_STATES] = {
	[TARGET_SAMPLED] = "sampled",
	[TARGET_WAITING] = "waiting",
	[TARGET_FAILED] = "failed",
	[TARGET_EXCLUDED] = "excluded",
};

const char *const loss_names[LOSS_CAUSES] = {
	[LOSS_TORN] = "torn", [LOSS_UNREADABLE] = "unreadable", [LOSS_INVALID] = "invalid",
	[LOSS_GONE] = "gone", [LOSS_DROPPED] = "dropped",
};

static bool is_shown(const struct target_status *target, const struct status_view *view)
{
	return view->all || target->uid == view->uid;
}

/* "label      text": a line of the status. */
__attribute__((format(printf, 3, 4))) static void line(struct buf *to, const char *label, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	buf_printf(to, "%-12s%s\n", label, text);
}

/* One of several numbers in turn, each in its own room. */
static const char *count_text(uint64_t count)
{
	static _Thread_local char texts[8][32];
	static _Thread_local unsigned next;
	char *text = texts[next++ % 8];

	facts_count_text(text, sizeof(texts[0]), count);
	return text;
}

static const char *mib_text(uint64_t bytes)
{
	static _Thread_local char texts[8][32];
	static _Thread_local unsigned next;
	char *text = texts[next++ % 8];

	snprintf(text, sizeof(texts[0]), "%.1f MiB", (double)bytes / (1 << 20));
	return text;
}

static void count_states(const struct service_status *status, const struct status_view *view,
                         uint64_t counts[TARGET_STATES])
{
	memset(counts, 0, TARGET_STATES * sizeof(counts[0]));
	for (size_t i = 0; i < status->target_count; i++)
		if (is_shown(&status->targets[i], view))
			counts[status->targets[i].state]++;
}

static void print_losses(const struct service_status *status, struct buf *to)
{
	struct buf text = {0};
	uint64_t lost = 0;
	char share[16];

	for (int i = 0; i < LOSS_CAUSES; i++) {
		lost += status->total.lost[i];
		if (status->total.lost[i])
			buf_printf(&text, ", %s %s", loss_names[i], count_text(status->total.lost[i]));
	}
	facts_percent_text(share, sizeof(share), lost, status->total.attempts);
	line(to, "lost", "%s (%s)%s", count_text(lost), share, buf_text(&text));
	buf_release(&text);
	if (status->ring_dropped)
		line(to, "", "%s records found the ring full", count_text(status->ring_dropped));
}

static void print_history(const struct service_status *status, struct buf *to)
{
	const struct history_stats *h = &status->history;
	char reach[32];
	struct buf steps = {0};

	facts_time_text(reach, sizeof(reach),
	                h->oldest_ns && h->oldest_ns < status->now_ns ? status->now_ns - h->oldest_ns : 0);
	line(to, "history", "%s of %s, back to %s ago", mib_text(h->used_bytes),
	     h->max_bytes ? mib_text(h->max_bytes) : "no bound", reach);
	line(to, "", "slices: %s fine, %s of a minute, %s of ten, %s by function", count_text(h->slices[HISTORY_FINE]),
	     count_text(h->slices[HISTORY_MINUTE]), count_text(h->slices[HISTORY_TEN_MINUTES]),
	     count_text(h->slices[HISTORY_FOLDED]));
	for (int i = 0; i < HISTORY_STEPS; i++)
		if (h->steps[i])
			buf_printf(&steps, "%s%s %s", steps.bytes ? ", " : "", history_step_names[i],
			           count_text(h->steps[i]));
	if (steps.bytes)
		line(to, "", "to stay within its bound: %s", buf_text(&steps));
	if (h->out_of_memory)
		line(to, "", "%s samples found no memory", count_text(h->out_of_memory));
	buf_release(&steps);
}

static void print_triggers(const struct service_status *status, struct buf *to)
{
	for (size_t i = 0; i < status->trigger_count; i++) {
		const struct trigger_status *trigger = &status->triggers[i];

		buf_printf(to, "%-12s", i ? "" : "triggers");
		utf8_fit(to, trigger->name, REST_COLUMNS, false);
		buf_printf(to, ": fired %s, held back %s\n", count_text(trigger->fired),
		           count_text(trigger->suppressed));
	}
	if (status->triggers_unfollowed)
		line(to, "", "%s slices above a bound were not followed: too many processes at a time",
		     count_text(status->triggers_unfollowed));
}

static void print_cost(const struct service_status *status, struct buf *to)
{
	char budget[32] = "no budget";

	if (status->cpu_budget > 0)
		snprintf(budget, sizeof(budget), "budget %.3g %%", 100 * status->cpu_budget);
	line(to, "CPU", "%.2f %% of a core over the last 10 s, %s", 100 * status->cpu_share, budget);
	if (status->slowdown > 1)
		line(to, "", "over it: one tick in %u is taken", status->slowdown);
	line(to, "memory", "%s resident, budget %s", mib_text(status->resident_bytes),
	     status->memory_budget_bytes ? mib_text(status->memory_budget_bytes) : "none");
}

/* Why what failed is not sampled, each reason once. */
static void print_failures(const struct service_status *status, const struct status_view *view, struct buf *to)
{
	struct {
		const char *why;
		uint64_t count;
	} reasons[REASONS_MAX] = {{0}};
	size_t count = 0;
	uint64_t others = 0;

	for (size_t i = 0; i < status->target_count; i++) {
		const struct target_status *target = &status->targets[i];
		size_t r = 0;

		if (target->state != TARGET_FAILED || !is_shown(target, view) || !target->why)
			continue;
		while (r < count && strcmp(reasons[r].why, target->why) != 0)
			r++;
		if (r == REASONS_MAX) {
			others++;
			continue;
		}
		reasons[r].why = target->why;
		reasons[r].count++;
		count = r == count ? count + 1 : count;
	}
	for (size_t r = 0; r < count; r++) {
		buf_printf(to, "%-12s%s: ", r ? "" : "not sampled", count_text(reasons[r].count));
		utf8_fit(to, reasons[r].why, REST_COLUMNS, false);
		buf_putc(to, '\n');
	}
	if (others)
		line(to, "", "%s: other reasons (sampled ctl list)", count_text(others));
}

void status_print(const struct service_status *status, const struct status_view *view, struct buf *to)
{
	uint64_t counts[TARGET_STATES], seen = 0;
	char up[32];

	count_states(status, view, counts);
	for (int i = 0; i < TARGET_STATES; i++)
		seen += counts[i];
	facts_time_text(up, sizeof(up), status->now_ns - status->started_ns);
	line(to, "sampled", "%s, up %s", status->version, up);
	line(to, "targets", "%s sampled, %s waiting, %s failed, %s excluded%s", count_text(counts[TARGET_SAMPLED]),
	     count_text(counts[TARGET_WAITING]), count_text(counts[TARGET_FAILED]), count_text(counts[TARGET_EXCLUDED]),
	     seen < status->target_count ? " (those of others are not shown)" : "");
	line(to, "processes", "%s, of which %s no Python", count_text(status->processes),
	     count_text(status->not_python));
	print_failures(status, view, to);
	if (status->max_files)
		line(to, "descriptors", "%s of %s", count_text(status->open_files), count_text(status->max_files));
	if (status->starved)
		line(to, "", "%s processes are not looked at for want of them (raise LimitNOFILE=, or ulimit -n)",
		     count_text(status->starved));
	line(to, "samples", "%s", count_text(status->total.samples));
	print_losses(status, to);
	print_cost(status, to);
	print_history(status, to);
	line(to, "dumps", "%s written, %s removed, %s failed; %s files, %s of %s", count_text(status->dumps_written),
	     count_text(status->dumps_removed), count_text(status->dumps_failed), count_text(status->dump_files),
	     mib_text(status->dump_bytes),
	     status->disk_budget_bytes ? mib_text(status->disk_budget_bytes) : "no bound");
	line(to, "spool", "%s files, %s; %s dropped", count_text(status->spool_files), mib_text(status->spool_bytes),
	     count_text(status->spool_dropped));
	print_triggers(status, to);
	line(to, "reloads", "%s, %s failed", count_text(status->reloads), count_text(status->reloads_failed));
	if (status->log_suppressed)
		line(to, "log", "%s lines held back", count_text(status->log_suppressed));
}

static double hz_of(uint64_t interval_ns)
{
	return interval_ns ? (double)NS_PER_S / (double)interval_ns : 0;
}

static void add_column(struct buf *to, const char *text, unsigned columns)
{
	unsigned used = utf8_fit(to, text && *text ? text : "-", columns, false);

	buf_printf(to, "%*s", (int)(columns - used) + 1, "");
}

static void print_target(const struct target_status *target, struct buf *to)
{
	char version[16], rate[32] = "-", parked[16] = "-";
	const char *where = target->container && *target->container ? target->container : target->unit;

	facts_version_text(version, sizeof(version), target->version);
	if (target->state == TARGET_SAMPLED) {
		facts_rate_text(rate, sizeof(rate), hz_of(target->interval_now_ns));
		if (target->parked >= 0)
			snprintf(parked, sizeof(parked), "%.0f %%", 100 * target->parked);
	}
	buf_printf(to, "%7d %-8s %-9s ", (int)target->pid, version, target_state_names[target->state]);
	add_column(to, target->name, NAME_COLUMNS);
	add_column(to, target->rule, RULE_COLUMNS);
	buf_printf(to, "%9s %7s %12s  ", rate, parked, count_text(target->facts.samples));
	utf8_fit(to, target->why && *target->why ? target->why : where && *where ? where : "-", REST_COLUMNS, false);
	buf_putc(to, '\n');
}

/* What rules exclude is never opened, so that it may be no Python at all: it would drown the rest. */
void status_print_list(const struct service_status *status, const struct status_view *view, struct buf *to)
{
	uint64_t excluded = 0;

	buf_printf(to, "%7s %-8s %-9s %-*s %-*s %9s %7s %12s  %s\n", "PID", "PYTHON", "STATE", NAME_COLUMNS, "NAME",
	           RULE_COLUMNS, "RULE", "RATE", "PARKED", "SAMPLES", "WHERE");
	for (size_t i = 0; i < status->target_count; i++) {
		const struct target_status *target = &status->targets[i];

		if (!is_shown(target, view))
			continue;
		excluded += target->state == TARGET_EXCLUDED;
		if (target->state != TARGET_EXCLUDED)
			print_target(target, to);
	}
	if (excluded)
		buf_printf(to, "and %s that rules exclude, Pythons or not (--json lists them)\n", count_text(excluded));
}
