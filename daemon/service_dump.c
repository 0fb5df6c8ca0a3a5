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

enum { ENDED_MAX = 65536 }; /* that ended between two times of spooling */

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
	                                      .cpu = (double)values[VALUE_CPU] / (double)span_ns,
	                                      .gil_wait = held + waited > 0 ? waited / (held + waited) : 0,
	                                      .function_share = ask_share,
	                                      .context = &question},
	              fire, s);
}

/* --- the spool --- */

static int add_labels(struct dump_labels *to, const struct service *s, const struct watched *item)
{
	const struct config_rule *rule = &s->config->rules[item->rule];
	const char *service = item->about.unit && item->about.unit[0] ? item->about.unit : item->about.name;
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

/* Whether the process is one of the parts already. */
static bool has_part(const struct dump_labelled *parts, size_t count, const struct history_query *query)
{
	for (size_t i = 0; i < count; i++)
		if (parts[i].query.pid == query->pid && parts[i].query.start_time == query->start_time)
			return true;
	return false;
}

/* One that is noted already has ended again: it takes part in two more. */
static bool note_again(struct service *s, const struct watched *item)
{
	for (size_t i = 0; i < s->ended_count; i++) {
		if (s->ended[i].pid != item->pid || s->ended[i].start_time != item->start_time)
			continue;
		s->ended[i].spooled = false;
		return true;
	}
	return false;
}

void service_note_ended(void *service, const struct watched *item)
{
	struct ended_target ended = {.pid = item->pid, .start_time = item->start_time};
	struct service *s = service;

	if (!s->config->push.spool || s->config->push.per != PER_TARGET || note_again(s, item))
		return;
	if (s->ended_count == s->ended_room) {
		size_t room = s->ended_room ? 2 * s->ended_room : 16;
		struct ended_target *larger = room <= ENDED_MAX ? realloc(s->ended, room * sizeof(*larger)) : NULL;

		if (!larger) {
			service_log("process %d ended, and what it did last is not spooled: too many did", (int)item->pid);
			return;
		}
		s->ended = larger;
		s->ended_room = room;
	}
	if (add_labels(&ended.labels, s, item))
		dump_labels_release(&ended.labels);
	else
		s->ended[s->ended_count++] = ended;
}

void service_forget_ended(struct service *s)
{
	for (size_t i = 0; i < s->ended_count; i++)
		dump_labels_release(&s->ended[i].labels);
	free(s->ended);
	s->ended = NULL;
	s->ended_count = s->ended_room = 0;
}

/* Those that ended, but for one that goes on as another program; what took part twice is forgotten. */
static bool fill_ended(struct service *s, struct dump_job *job, const struct history_query *window)
{
	size_t kept = 0;
	bool filled = true;

	for (size_t i = 0; i < s->ended_count; i++) {
		struct ended_target *ended = &s->ended[i];
		struct dump_labelled *part = &job->parts[job->part_count];

		part->query = *window;
		part->query.pid = ended->pid;
		part->query.start_time = ended->start_time;
		if (!has_part(job->parts, job->part_count, &part->query)) {
			for (size_t k = 0; k < ended->labels.count && filled; k++)
				filled = dump_labels_add(&part->labels, ended->labels.items[k].name,
				                         ended->labels.items[k].value) == 0;
			job->part_count++;
		}
		if (ended->spooled) {
			dump_labels_release(&ended->labels);
			continue;
		}
		ended->spooled = true;
		s->ended[kept++] = *ended;
	}
	s->ended_count = kept;
	return filled;
}

static bool fill_targets(struct service *s, struct dump_job *job, const struct history_query *window)
{
	for (size_t i = 0; i < watch_count(s->watch); i++) {
		const struct watched *item = watch_at(s->watch, i);
		struct dump_labelled *part = &job->parts[job->part_count];

		if (item->state != WATCH_SAMPLED)
			continue;
		part->query = *window;
		part->query.pid = item->pid;
		part->query.start_time = item->start_time;
		job->part_count++;
		if (add_labels(&part->labels, s, item))
			return false;
	}
	return fill_ended(s, job, window);
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
	size_t most = push->per == PER_TARGET ? watch_count(s->watch) + s->ended_count : s->config->rule_count;
	struct dump_job job = {.target = DUMP_TO_SPOOL, .mark = s->mark};
	/* Whole slices, each once. */
	const struct history_query window = {.from_ns = s->spooled_ns, .to_ns = collector_closed_ns(s->collector)};
	bool filled;

	s->next_spool_ns = window.to_ns + push->interval_ns - s->config->history.slice_ns / 2;
	job.parts = calloc(most + 1, sizeof(*job.parts));
	filled = job.parts && (push->per == PER_TARGET ? fill_targets(s, &job, &window) : fill_rules(s, &job, &window));
	if (!filled)
		service_log("cannot spool all of it: out of memory");
	if (dumper_ask(s->dumper, &job) == 0) {
		s->spooled_ns = window.to_ns;
		return;
	}
	service_log("cannot spool now, but with the next interval: too many dumps are under way");
	for (size_t i = 0; i < s->ended_count; i++)
		s->ended[i].spooled = false;
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
	if (!s->config->push.spool) /* if a reload names one, it begins with what comes then */
		s->spooled_ns = closed_ns;
	else if (closed_ns >= s->next_spool_ns)
		service_spool(s);
}
