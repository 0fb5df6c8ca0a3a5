/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "daemon/service_status.h"

/* So many rules and triggers have lines of their own; what is counted by rule is summed up under "" behind them. */
enum { LABELS_MAX = 200 };

static void add_head(struct buf *to, const char *name, const char *type, const char *help)
{
	buf_printf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void add_counter(struct buf *to, const char *name, const char *help, uint64_t value)
{
	add_head(to, name, "counter", help);
	buf_printf(to, "%s %" PRIu64 "\n", name, value);
}

static void add_gauge(struct buf *to, const char *name, const char *help, uint64_t value)
{
	add_head(to, name, "gauge", help);
	buf_printf(to, "%s %" PRIu64 "\n", name, value);
}

static void add_real(struct buf *to, const char *name, const char *type, const char *help, double value)
{
	add_head(to, name, type, help);
	buf_printf(to, "%s %.9g\n", name, value);
}

/* A label's value: UTF-8, with the three escapes there are. */
static void add_label(struct buf *to, const char *text)
{
	struct buf valid = {0};

	utf8_add_valid(&valid, text, strlen(text));
	for (const char *c = buf_text(&valid); *c; c++) {
		if (*c == '\\' || *c == '"')
			buf_putc(to, '\\');
		if (*c == '\n')
			buf_puts(to, "\\n");
		else
			buf_putc(to, *c);
	}
	buf_release(&valid);
}

static void add_labelled(struct buf *to, const char *name, const char *label, const char *of, uint64_t value)
{
	buf_printf(to, "%s{%s=\"", name, label);
	add_label(to, of);
	buf_printf(to, "\"} %" PRIu64 "\n", value);
}

static void print_sampling(const struct service_status *status, struct buf *to)
{
	const struct rec_facts *total = &status->total;

	add_counter(to, "sampled_samples_total", "Samples taken: one thread seen at one tick.", total->samples);
	add_head(to, "sampled_lost_samples_total", "counter", "Samples tried and not had, by cause.");
	for (int i = 0; i < LOSS_CAUSES; i++)
		add_labelled(to, "sampled_lost_samples_total", "cause", loss_names[i], total->lost[i]);
	add_counter(to, "sampled_truncated_samples_total", "Samples whose stack was cut.", total->truncated);
	add_counter(to, "sampled_ticks_total", "Ticks, of each process.", total->ticks);
	add_counter(to, "sampled_late_ticks_total", "Ticks that came over half an interval late.", total->ticks_late);
	add_counter(to, "sampled_missed_ticks_total", "Deadlines that passed without a tick.", total->ticks_missed);
	add_real(to, "sampled_unsampled_seconds_total", "counter", "Thread time that no sample stands for.",
	         (double)total->unsampled_ns / (double)NS_PER_S);
	add_counter(to, "sampled_ring_dropped_records_total", "Records that found the ring full.",
	            status->ring_dropped);
}

/* How many targets a rule has, and the ticks a second asked for of them and now. */
static void print_targets(const struct service_status *status, struct buf *to)
{
	uint64_t states[TARGET_STATES] = {0}, rules[LABELS_MAX + 1] = {0};
	size_t rule_count = status->rule_count < LABELS_MAX ? status->rule_count : LABELS_MAX;
	double asked_hz = 0, now_hz = 0;

	for (size_t i = 0; i < status->target_count; i++) {
		const struct target_status *target = &status->targets[i];
		size_t rule = 0;

		states[target->state]++;
		if (target->state != TARGET_SAMPLED)
			continue;
		asked_hz += target->interval_asked_ns ? (double)NS_PER_S / (double)target->interval_asked_ns : 0;
		now_hz += target->interval_now_ns ? (double)NS_PER_S / (double)target->interval_now_ns : 0;
		while (rule < rule_count && strcmp(status->rules[rule], target->rule ? target->rule : "") != 0)
			rule++;
		rules[rule]++;
	}
	add_head(to, "sampled_targets", "gauge", "Python processes, by state.");
	for (int i = 0; i < TARGET_STATES; i++)
		add_labelled(to, "sampled_targets", "state", target_state_names[i], states[i]);
	add_head(to, "sampled_rule_targets", "gauge",
	         "Processes sampled, by rule; without one: by none, or by further ones.");
	for (size_t i = 0; i < rule_count; i++)
		add_labelled(to, "sampled_rule_targets", "rule", status->rules[i], rules[i]);
	add_labelled(to, "sampled_rule_targets", "rule", "", rules[rule_count]);
	add_real(to, "sampled_asked_rate_hertz", "gauge", "Ticks a second asked for, of all processes.", asked_hz);
	add_real(to, "sampled_rate_hertz", "gauge", "Ticks a second now, of all processes.", now_hz);
	add_gauge(to, "sampled_processes", "Processes of the host that are known.", status->processes);
	add_gauge(to, "sampled_other_processes", "Processes known to be no Python.", status->not_python);
	add_gauge(to, "sampled_open_files", "File descriptors of the service.", status->open_files);
	add_gauge(to, "sampled_max_files", "How many it may have.", status->max_files);
	add_gauge(to, "sampled_starved_processes", "Processes that are not looked at, for want of file descriptors.",
	          status->starved);
}

static void print_cost(const struct service_status *status, struct buf *to)
{
	add_real(to, "process_cpu_seconds_total", "counter", "CPU time of the service.",
	         (double)status->cpu_ns / (double)NS_PER_S);
	add_gauge(to, "process_resident_memory_bytes", "Resident memory of the service.", status->resident_bytes);
	add_real(to, "process_start_time_seconds", "gauge", "Start of the service, in seconds since 1970.",
	         (double)status->started_realtime_ns / (double)NS_PER_S);
	add_real(to, "sampled_cpu_budget_cores", "gauge", "CPU budget; 0: none.", status->cpu_budget);
	add_real(to, "sampled_cpu_cores", "gauge", "CPU used over the last 10 s.", status->cpu_share);
	add_gauge(to, "sampled_slowdown_ratio", "One tick in so many is taken, to stay within the CPU budget.",
	          status->slowdown);
	add_gauge(to, "sampled_memory_budget_bytes", "Memory budget; 0: none.", status->memory_budget_bytes);
}

static void print_history(const struct service_status *status, struct buf *to)
{
	const struct history_stats *h = &status->history;
	bool holds = h->oldest_ns != 0 && h->oldest_ns < status->now_ns;

	add_gauge(to, "sampled_history_bytes", "Memory of the history.", h->used_bytes);
	add_gauge(to, "sampled_history_bound_bytes", "Bound of that; 0: none.", h->max_bytes);
	add_real(to, "sampled_history_reach_seconds", "gauge", "Age of the oldest slice.",
	         holds ? (double)(status->now_ns - h->oldest_ns) / (double)NS_PER_S : 0);
	add_head(to, "sampled_history_slices", "gauge", "Slices of history, by detail.");
	for (int i = 0; i < HISTORY_LEVELS; i++)
		add_labelled(to, "sampled_history_slices", "level", history_level_names[i], h->slices[i]);
	add_head(to, "sampled_history_steps_total", "counter", "What was done to stay within the bound.");
	for (int i = 0; i < HISTORY_STEPS; i++)
		add_labelled(to, "sampled_history_steps_total", "step", history_step_names[i], h->steps[i]);
	add_counter(to, "sampled_history_unkept_samples_total", "Samples that found no memory.", h->out_of_memory);
}

static void print_disk(const struct service_status *status, struct buf *to)
{
	static const char dumps[] = "sampled_dumps_total";

	add_head(to, dumps, "counter", "Dumps written, removed to make room, and failed.");
	add_labelled(to, dumps, "result", "written", status->dumps_written);
	add_labelled(to, dumps, "result", "removed", status->dumps_removed);
	add_labelled(to, dumps, "result", "failed", status->dumps_failed);
	add_gauge(to, "sampled_dump_files", "Dumps there are.", status->dump_files);
	add_gauge(to, "sampled_dump_bytes", "Disk space of them.", status->dump_bytes);
	add_gauge(to, "sampled_disk_budget_bytes", "Disk budget; 0: none.", status->disk_budget_bytes);
	add_gauge(to, "sampled_spool_files", "Files that wait to be pushed.", status->spool_files);
	add_gauge(to, "sampled_spool_bytes", "Disk space of them.", status->spool_bytes);
	add_counter(to, "sampled_spool_dropped_files_total", "Files that were removed unpushed, for room.",
	            status->spool_dropped);
}

static void print_triggers(const struct service_status *status, struct buf *to)
{
	size_t count = status->trigger_count < LABELS_MAX ? status->trigger_count : LABELS_MAX;

	if (count == 0)
		return;
	add_head(to, "sampled_trigger_fired_total", "counter", "Dumps that a trigger asked for.");
	for (size_t i = 0; i < count; i++)
		add_labelled(to, "sampled_trigger_fired_total", "trigger", status->triggers[i].name,
		             status->triggers[i].fired);
	add_head(to, "sampled_trigger_suppressed_total", "counter",
	         "Dumps held back, since there was one a moment ago.");
	for (size_t i = 0; i < count; i++)
		add_labelled(to, "sampled_trigger_suppressed_total", "trigger", status->triggers[i].name,
		             status->triggers[i].suppressed);
	add_counter(to, "sampled_trigger_unfollowed_total",
	            "Slices above a trigger's bound that were not followed, for their number.",
	            status->triggers_unfollowed);
}

void metrics_print(const struct service_status *status, struct buf *to)
{
	add_head(to, "sampled_build_info", "gauge", "The version.");
	add_labelled(to, "sampled_build_info", "version", status->version, 1);
	print_sampling(status, to);
	print_targets(status, to);
	print_cost(status, to);
	print_history(status, to);
	print_disk(status, to);
	print_triggers(status, to);
	add_counter(to, "sampled_reloads_total", "Configurations read since the start.", status->reloads);
	add_counter(to, "sampled_failed_reloads_total", "Configurations that had faults, and were not taken.",
	            status->reloads_failed);
	add_counter(to, "sampled_suppressed_log_lines_total", "Lines that the log did not take, for their number.",
	            status->log_suppressed);
}
