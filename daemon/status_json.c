/* SPDX-License-Identifier: Apache-2.0 */
/* `ctl status --json` and `ctl list --json`. */
#include <inttypes.h>

#include "base/clock.h"
#include "daemon/service_status.h"
#include "exporters/facts.h"
#include "exporters/writer.h"

static void add_number(struct buf *to, const char *before, const char *key, uint64_t value)
{
	buf_printf(to, "%s\"%s\":%" PRIu64, before, key, value);
}

static void add_text(struct buf *to, const char *key, const char *text)
{
	buf_printf(to, ",\"%s\":", key);
	if (text && *text)
		json_add_string(to, text);
	else
		buf_puts(to, "null");
}

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_S;
}

static void add_facts(struct buf *to, const struct rec_facts *facts)
{
	add_number(to, "{", "ticks", facts->ticks);
	add_number(to, ",", "ticks_late", facts->ticks_late);
	add_number(to, ",", "ticks_missed", facts->ticks_missed);
	add_number(to, ",", "attempts", facts->attempts);
	add_number(to, ",", "samples", facts->samples);
	add_number(to, ",", "truncated", facts->truncated);
	buf_printf(to, ",\"unsampled_s\":%.9f,\"lost\":", seconds(facts->unsampled_ns));
	for (int i = 0; i < LOSS_CAUSES; i++)
		add_number(to, i ? "," : "{", loss_names[i], facts->lost[i]);
	buf_puts(to, "}}");
}

static void add_target(struct buf *to, const struct target_status *target)
{
	char version[16];

	facts_version_text(version, sizeof(version), target->version);
	buf_printf(to, "{\"pid\":%d,\"start_time\":%" PRIu64 ",\"uid\":%" PRIu32 ",\"state\":\"%s\"", (int)target->pid,
	           target->start_time, (uint32_t)target->uid, target_state_names[target->state]);
	add_text(to, "name", target->name);
	add_text(to, "python", target->version ? version : NULL);
	add_text(to, "rule", target->rule);
	add_text(to, "unit", target->unit);
	add_text(to, "container", target->container);
	add_text(to, "why", target->why);
	buf_printf(to,
	           ",\"interval_asked_s\":%.9f,\"interval_now_s\":%.9f,\"parked\":", seconds(target->interval_asked_ns),
	           seconds(target->interval_now_ns));
	if (target->parked >= 0)
		buf_printf(to, "%.6f", target->parked);
	else
		buf_puts(to, "null");
	buf_puts(to, ",\"facts\":");
	add_facts(to, &target->facts);
	buf_putc(to, '}');
}

void status_print_list_json(const struct service_status *status, const struct status_view *view, struct buf *to)
{
	const char *before = "[";

	for (size_t i = 0; i < status->target_count; i++) {
		if (!view->all && status->targets[i].uid != view->uid)
			continue;
		buf_printf(to, "%s\n", before);
		add_target(to, &status->targets[i]);
		before = ",";
	}
	buf_puts(to, *before == '[' ? "[]\n" : "\n]\n");
}

static void add_states(const struct service_status *status, const struct status_view *view, struct buf *to)
{
	uint64_t counts[TARGET_STATES] = {0};

	for (size_t i = 0; i < status->target_count; i++)
		counts[status->targets[i].state] += view->all || status->targets[i].uid == view->uid;
	buf_puts(to, ",\"targets\":");
	for (int i = 0; i < TARGET_STATES; i++)
		add_number(to, i ? "," : "{", target_state_names[i], counts[i]);
	buf_putc(to, '}');
}

static void add_history(const struct service_status *status, struct buf *to)
{
	const struct history_stats *h = &status->history;
	bool holds = h->oldest_ns != 0 && h->oldest_ns < status->now_ns;

	add_number(to, ",\"history\":{", "bytes", h->used_bytes);
	add_number(to, ",", "bound_bytes", h->max_bytes);
	buf_printf(to, ",\"reach_s\":%.3f,\"slices\":", holds ? seconds(status->now_ns - h->oldest_ns) : 0.0);
	for (int i = 0; i < HISTORY_LEVELS; i++)
		add_number(to, i ? "," : "{", history_level_names[i], h->slices[i]);
	buf_puts(to, "},\"steps\":");
	for (int i = 0; i < HISTORY_STEPS; i++)
		add_number(to, i ? "," : "{", history_step_names[i], h->steps[i]);
	add_number(to, "},", "out_of_memory", h->out_of_memory);
	add_number(to, ",", "dropped", h->dropped);
	buf_putc(to, '}');
}

static void add_disk(const struct service_status *status, struct buf *to)
{
	add_number(to, ",\"disk\":{", "budget_bytes", status->disk_budget_bytes);
	add_number(to, ",", "dumps_written", status->dumps_written);
	add_number(to, ",", "dumps_removed", status->dumps_removed);
	add_number(to, ",", "dumps_failed", status->dumps_failed);
	add_number(to, ",", "dump_files", status->dump_files);
	add_number(to, ",", "dump_bytes", status->dump_bytes);
	add_number(to, ",", "spool_files", status->spool_files);
	add_number(to, ",", "spool_bytes", status->spool_bytes);
	add_number(to, ",", "spool_dropped", status->spool_dropped);
	buf_putc(to, '}');
}

static void add_triggers(const struct service_status *status, struct buf *to)
{
	buf_puts(to, ",\"triggers\":[");
	for (size_t i = 0; i < status->trigger_count; i++) {
		buf_puts(to, i ? ",{\"name\":" : "{\"name\":");
		json_add_string(to, status->triggers[i].name);
		add_number(to, ",", "fired", status->triggers[i].fired);
		add_number(to, ",", "suppressed", status->triggers[i].suppressed);
		buf_putc(to, '}');
	}
	buf_putc(to, ']');
}

void status_print_json(const struct service_status *status, const struct status_view *view, struct buf *to)
{
	buf_puts(to, "{\"version\":");
	json_add_string(to, status->version);
	buf_printf(to, ",\"started\":%.3f,\"uptime_s\":%.3f", seconds(status->started_realtime_ns),
	           seconds(status->now_ns - status->started_ns));
	add_states(status, view, to);
	add_number(to, ",", "processes", status->processes);
	add_number(to, ",", "not_python", status->not_python);
	add_number(to, ",\"descriptors\":{", "open", status->open_files);
	add_number(to, ",", "max", status->max_files);
	add_number(to, ",", "starved", status->starved);
	buf_putc(to, '}');
	buf_puts(to, ",\"total\":");
	add_facts(to, &status->total);
	add_number(to, ",", "ring_dropped", status->ring_dropped);
	buf_printf(to, ",\"cpu\":{\"budget\":%.6f,\"share\":%.6f,\"used_s\":%.3f,\"slowdown\":%" PRIu32 "}",
	           status->cpu_budget, status->cpu_share, seconds(status->cpu_ns), status->slowdown);
	add_number(to, ",\"memory\":{", "budget_bytes", status->memory_budget_bytes);
	add_number(to, ",", "resident_bytes", status->resident_bytes);
	buf_putc(to, '}');
	add_history(status, to);
	add_disk(status, to);
	add_triggers(status, to);
	add_number(to, ",", "triggers_unfollowed", status->triggers_unfollowed);
	add_number(to, ",", "reloads", status->reloads);
	add_number(to, ",", "reloads_failed", status->reloads_failed);
	add_number(to, ",", "log_suppressed", status->log_suppressed);
	buf_puts(to, "}\n");
}
