/* SPDX-License-Identifier: Apache-2.0 */
/* What of the history is written when: on SIGUSR1, when a trigger fires, and at intervals for the spool. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/service_log.h"
#include "daemon/service_state.h"

/* Where so much up to now begins; 0: the beginning. */
static uint64_t begin_of(uint64_t last_ns)
{
	uint64_t now_ns = clock_now_ns();

	return last_ns && last_ns < now_ns ? now_ns - last_ns : 0;
}

/* One file a process, where the pattern names it. */
static bool is_by_process(const struct service *s)
{
	const char *name = s->config->dump.name;

	for (const char *at = strchr(name, '%'); at && at[1]; at = strchr(at + 2, '%'))
		if (at[1] == 'p' || at[1] == 'n')
			return true;
	return false;
}

void service_dump_all(struct service *s)
{
	struct dump_job job = {.target = DUMP_TO_FILES, .by_process = is_by_process(s)};

	if (dumper_has_waiting(s->dumper)) /* it will have all that was sampled up to now, too */
		return;
	job.query.from_ns = begin_of(s->config->dump.last_ns);
	job.mark = service_ask_mark(s);
	if (dumper_ask(s->dumper, &job))
		service_log("cannot dump: too many dumps are under way");
}

/* --- triggers --- */

struct share_question {
	struct service *service;
	struct history_query query;
};

static double ask_share(void *context, const char *function)
{
	const struct share_question *question = context;
	double share = 0;

	if (history_function_share(collector_lock(question->service->collector), &question->query, function, &share))
		share = -1;
	collector_unlock(question->service->collector);
	return share;
}

static void fire(void *context, const struct trigger_due *due)
{
	struct service *s = context;
	const struct config_trigger *trigger = &s->config->triggers[due->trigger];
	struct dump_job job = {.target = DUMP_TO_FILES,
	                       .mark = s->mark,
	                       .query = {.pid = due->pid, .start_time = due->start_time},
	                       .what = strdup(trigger->name)};

	job.query.from_ns = begin_of(due->last_ns);
	service_log("trigger %s: process %d reached %.1f %%", trigger->name, (int)due->pid, due->value * 100);
	if (dumper_ask(s->dumper, &job))
		service_log("cannot dump for trigger %s: too many dumps are under way", trigger->name);
}

static void tell_triggers(struct service *s, const struct watched *item, uint64_t to_ns)
{
	struct share_question question = {
		.service = s,
		.query = {.pid = item->pid, .start_time = item->start_time, .from_ns = s->slice_from_ns, .to_ns = to_ns}};
	uint64_t values[VALUE_COUNT], span_ns = to_ns - s->slice_from_ns;
	int err = history_sums(collector_lock(s->collector), &question.query, values);
	double held, waited;

	collector_unlock(s->collector);
	if (err || span_ns == 0)
		return;
	held = (double)values[VALUE_GIL];
	waited = (double)values[VALUE_GIL_WAIT];
	triggers_feed(s->triggers,
	              &(struct trigger_slice){.pid = item->pid,
	                                      .start_time = item->start_time,
	                                      .rule = item->rule,
	                                      .from_ns = s->slice_from_ns,
	                                      .to_ns = to_ns,
	                                      .cpu = (double)values[VALUE_ON_CPU] / (double)span_ns,
	                                      .gil_wait = held + waited > 0 ? waited / (held + waited) : 0,
	                                      .function_share = ask_share,
	                                      .context = &question},
	              fire, s);
}

/* --- the spool --- */

static int add_labels(struct dump_labels *to, const struct service *s, const struct watched *item)
{
	const struct config_rule *rule = &s->config->rules[item->rule];
	const char *service = item->about.unit[0] ? item->about.unit : item->about.name;
	char number[24], version[24];
	int err;

	snprintf(number, sizeof(number), "%d", (int)item->pid);
	snprintf(version, sizeof(version), "%u.%u.%u", item->version >> 16, item->version >> 8 & 0xff, item->version & 0xff);
	for (size_t i = 0; i < rule->label_count; i++)
		if (dump_labels_add(to, rule->labels[i].key, rule->labels[i].value))
			return -1;
	err = labels_value((struct labels){to->items, to->count}, "service_name")
	              ? 0
	              : dump_labels_add(to, "service_name", service);
	err = err ? err : dump_labels_add(to, "host", s->host);
	err = err ? err : dump_labels_add(to, "unit", item->about.unit);
	err = err ? err : dump_labels_add(to, "container", item->about.container);
	err = err ? err : dump_labels_add(to, "rule", rule->name);
	if (s->config->push.per == PER_RULE)
		return err;
	err = err ? err : dump_labels_add(to, "python", version);
	err = err ? err : dump_labels_add(to, "process", item->about.name);
	return err ? err : dump_labels_add(to, "pid", number);
}

static int add_rule_labels(struct dump_labels *to, const struct service *s, const struct config_rule *rule)
{
	for (size_t i = 0; i < rule->label_count; i++)
		if (dump_labels_add(to, rule->labels[i].key, rule->labels[i].value))
			return -1;
	if (!labels_value((struct labels){to->items, to->count}, "service_name") &&
	    dump_labels_add(to, "service_name", rule->name))
		return -1;
	return dump_labels_add(to, "host", s->host) || dump_labels_add(to, "rule", rule->name) ? -1 : 0;
}

static bool fill_targets(struct service *s, struct dump_job *job, const struct history_query *window)
{
	for (size_t i = 0; i < watch_count(s->watch); i++) {
		const struct watched *item = watch_at(s->watch, i);
		struct dump_labelled *part = &job->parts[job->part_count];

		if (item->state != WATCH_SAMPLED)
			continue;
		job->part_count++;
		part->query = *window;
		part->query.pid = item->pid;
		part->query.start_time = item->start_time;
		if (add_labels(&part->labels, s, item))
			return false;
	}
	return true;
}

static bool fill_rules(struct service *s, struct dump_job *job, const struct history_query *window)
{
	for (size_t i = 0; i < s->config->rule_count; i++) {
		const struct config_rule *rule = &s->config->rules[i];
		struct dump_labelled *part = &job->parts[job->part_count];

		if (rule->action != RULE_INCLUDE)
			continue;
		job->part_count++;
		part->query = *window;
		part->query.by_group = part->query.merge = true;
		part->query.group = service_group(s, rule);
		if (add_rule_labels(&part->labels, s, rule))
			return false;
	}
	return true;
}

void service_spool(struct service *s)
{
	const struct config_push *push = &s->config->push;
	size_t most = push->per == PER_TARGET ? watch_count(s->watch) : s->config->rule_count;
	struct dump_job job = {.target = DUMP_TO_SPOOL, .mark = s->mark};
	/* Whole slices, each once. */
	const struct history_query window = {.from_ns = s->spooled_ns, .to_ns = collector_closed_ns(s->collector)};
	bool filled;

	s->spooled_ns = window.to_ns;
	s->next_spool_ns = window.to_ns + push->interval_ns - s->config->history.slice_ns / 2;
	job.parts = calloc(most + 1, sizeof(*job.parts));
	filled = job.parts && (push->per == PER_TARGET ? fill_targets(s, &job, &window) : fill_rules(s, &job, &window));
	if (!filled)
		service_log("cannot spool all of it: out of memory");
	if (dumper_ask(s->dumper, &job))
		service_log("cannot spool: too many dumps are under way");
}

/* --- marks --- */

void service_take_mark(struct service *s)
{
	uint64_t closed_ns = collector_closed_ns(s->collector);

	dumper_mark(s->dumper, collector_mark(s->collector));
	if (closed_ns == s->slice_from_ns)
		return;
	for (size_t i = 0; s->config->trigger_count > 0 && i < watch_count(s->watch); i++)
		if (watch_at(s->watch, i)->state == WATCH_SAMPLED)
			tell_triggers(s, watch_at(s->watch, i), closed_ns);
	s->slice_from_ns = closed_ns;
	if (s->config->push.spool && closed_ns >= s->next_spool_ns)
		service_spool(s);
}
