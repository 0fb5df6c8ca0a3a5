/* SPDX-License-Identifier: Apache-2.0 */
/* What clients ask of the service, and what it says of itself. Main thread. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "daemon/control_options.h"
#include "daemon/error.h"
#include "daemon/help.h"
#include "daemon/limits.h"
#include "daemon/parse.h"
#include "daemon/service_log.h"
#include "daemon/service_state.h"
#include "daemon/service_status.h"
#include "sampler/procfs.h"

/* --- what there is to say --- */

static uint64_t resident_bytes(void)
{
	struct buf text = {0};
	unsigned long long size, resident = 0;

	if (proc_read_file("/proc/self/statm", &text, 4096) != 0 ||
	    sscanf(buf_text(&text), "%llu %llu", &size, &resident) != 2)
		resident = 0;
	buf_release(&text);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool is_shown(enum watch_state state)
{
	return state == WATCH_SAMPLED || state == WATCH_STARTING || state == WATCH_FAILED || state == WATCH_EXCLUDED;
}

static enum target_state state_of(const struct watched *item)
{
	switch (item->state) {
	case WATCH_SAMPLED:
		return TARGET_SAMPLED;
	case WATCH_FAILED:
		return TARGET_FAILED;
	case WATCH_EXCLUDED:
		return TARGET_EXCLUDED;
	default:
		return TARGET_WAITING;
	}
}

struct gathering {
	struct service *service;
	struct target_status *targets;
	size_t count;
	uint32_t *places; /* of each in the table of processes: its target, + 1; 0: it is not shown */
};

/* The facts of a process go to its target. */
static int add_facts(void *context, const struct history_process *process)
{
	struct gathering *g = context;
	const struct watched *item = watch_find(g->service->watch, process->pid);
	uint32_t place = item ? g->places[item - watch_at(g->service->watch, 0)] : 0;
	struct target_status *target = place ? &g->targets[place - 1] : NULL;

	if (!target || target->start_time != process->start_time)
		return 0;
	target->facts = process->facts;
	if (process->facts.ticks > 0)
		target->parked = (double)process->facts.ticks_credited / (double)process->facts.ticks;
	return 0;
}

static size_t count_shown(const struct watch *watch)
{
	size_t count = 0;

	for (size_t i = 0; i < watch_count(watch); i++)
		count += is_shown(watch_at(watch, i)->state);
	return count;
}

static void gather_targets(struct gathering *g)
{
	const struct service *s = g->service;

	for (size_t i = 0; i < watch_count(s->watch); i++) {
		const struct watched *item = watch_at(s->watch, i);
		bool sampled = item->state == WATCH_SAMPLED;

		if (!is_shown(item->state))
			continue;
		g->places[i] = (uint32_t)g->count + 1;
		g->targets[g->count++] = (struct target_status){
			.pid = item->pid,
			.start_time = item->start_time,
			.uid = item->uid,
			.name = item->about.name ? item->about.name : "",
			.unit = item->about.unit,
			.container = item->about.container,
			.rule = sampled ? s->config->rules[item->rule].name : "",
			.version = item->version,
			.state = state_of(item),
			.why = item->why,
			.interval_asked_ns = item->interval_ns,
			.interval_now_ns = item->interval_ns * s->governor.slowdown,
			.parked = -1,
		};
	}
}

static void fill_counts(struct service *s, struct service_status *status)
{
	const struct history *history = collector_lock(s->collector);
	struct dumper_counts dumps;

	history_stats(history, &status->history);
	history_total(history, &status->total);
	collector_unlock(s->collector);
	dumper_counts(s->dumper, &dumps);
	status->dumps_written = dumps.written;
	status->dumps_removed = dumps.removed;
	status->dumps_failed = dumps.failed;
	status->dump_files = dumps.files;
	status->dump_bytes = dumps.bytes;
	status->spool_files = dumps.spool.files;
	status->spool_bytes = dumps.spool.bytes;
	status->spool_dropped = dumps.spool.dropped_files;
	status->ring_dropped = status->total.lost[LOSS_DROPPED];
}

/* What goes with it is freed by release_status(). 0 or -ENOMEM. */
static int make_status(struct service *s, struct service_status *ret_status)
{
	const struct config *c = s->config;
	struct gathering g = {.service = s,
	                      .targets = calloc(count_shown(s->watch) + 1, sizeof(*g.targets)),
	                      .places = calloc(watch_count(s->watch) + 1, sizeof(*g.places))};
	const char **rules = calloc(c->rule_count + 1, sizeof(char *));
	struct trigger_status *triggers = calloc(c->trigger_count + 1, sizeof(*triggers));
	struct service_status status = {
		.version = SAMPLED_VERSION,
		.started_realtime_ns = s->started_realtime_ns,
		.started_ns = s->started_ns,
		.now_ns = clock_now_ns(),
		.targets = g.targets,
		.rules = rules,
		.rule_count = c->rule_count,
		.processes = watch_count(s->watch),
		.cpu_budget = s->governor.budget,
		.cpu_share = s->governor.share,
		.cpu_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID),
		.slowdown = s->governor.slowdown,
		.memory_budget_bytes = c->budget.memory_bytes,
		.resident_bytes = resident_bytes(),
		.disk_budget_bytes = c->budget.disk_bytes,
		.triggers = triggers,
		.trigger_count = c->trigger_count,
		.reloads = s->reloads,
		.reloads_failed = s->reloads_failed,
		.triggers_unfollowed = triggers_unfollowed(s->triggers),
		.log_suppressed = service_log_suppressed(),
	};

	if (!g.targets || !g.places || !rules || !triggers) {
		free(g.targets);
		free(g.places);
		free(rules);
		free(triggers);
		return -ENOMEM;
	}
	gather_targets(&g);
	status.target_count = g.count;
	(void)history_each_process(collector_lock(s->collector), add_facts, &g);
	collector_unlock(s->collector);
	free(g.places);
	limits_count_files(&status.open_files, &status.max_files);
	for (size_t i = 0; i < watch_count(s->watch); i++)
		status.starved += watch_at(s->watch, i)->state == WATCH_FAILED && watch_at(s->watch, i)->starved;
	for (size_t i = 0; i < watch_count(s->watch); i++)
		status.not_python +=
			watch_at(s->watch, i)->state == WATCH_LOOKED || watch_at(s->watch, i)->state == WATCH_KERNEL;
	for (size_t i = 0; i < c->rule_count; i++)
		rules[i] = c->rules[i].name;
	for (size_t i = 0; i < c->trigger_count; i++) {
		struct trigger_counts counts = triggers_counts(s->triggers, i);

		triggers[i] = (struct trigger_status){
			.name = c->triggers[i].name, .fired = counts.fired, .suppressed = counts.suppressed};
	}
	fill_counts(s, &status);
	*ret_status = status;
	return 0;
}

static void release_status(struct service_status *status)
{
	free((void *)status->targets);
	free((void *)status->rules);
	free((void *)status->triggers);
}

static void answer_status(struct service *s, const struct control_request *request, struct control_reply *reply)
{
	const struct status_view view = {.all = request->may_all, .uid = request->uid};
	bool json = request->argc > 1 && strcmp(request->argv[request->argc - 1], "--json") == 0;
	bool list = strcmp(request->argv[0], "list") == 0;
	struct service_status status;
	struct buf text = {0};
	int err = make_status(s, &status);

	if (!err) {
		if (request->http || strcmp(request->argv[0], "metrics") == 0)
			metrics_print(&status, &text);
		else if (list)
			(json ? status_print_list_json : status_print_list)(&status, &view, &text);
		else
			(json ? status_print_json : status_print)(&status, &view, &text);
		release_status(&status);
		err = text.err;
	}
	if (err)
		control_reply_error(reply, "cannot answer: %s", strerror(-err));
	else
		control_reply_write(reply, text.data, text.bytes);
	control_reply_end(reply, err ? EXIT_FAILED : EXIT_DONE);
	buf_release(&text);
}

/* --- what is to be done --- */

static void refuse(struct control_reply *reply, const char *what)
{
	control_reply_error(reply, "cannot %s: not permitted (users may see and steer their own processes, root all)",
	                    what);
	control_reply_end(reply, EXIT_NOT_PERMITTED);
}

/* Whether who asks may see and steer a process: it is his, as the kernel says (of one that has changed its user, /proc/PID is root's).
 * *ret_start_time tells it from others that had its number; 0 for who may all: whichever had it. */
static bool may_pid(const struct control_request *request, pid_t pid, uint64_t *ret_start_time)
{
	struct proc_stat process;
	struct stat folder;
	char path[32];

	*ret_start_time = 0;
	if (request->may_all)
		return true;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (proc_stat_read(&process, pid, 0) != 0 || stat(path, &folder) != 0 || !control_may(request, folder.st_uid))
		return false;
	*ret_start_time = process.start_time;
	/* His may have got the number of another's in between. */
	return proc_stat_read(&process, pid, 0) == 0 && process.start_time == *ret_start_time;
}

static void answer_pid(struct service *s, const struct control_request *request, struct control_reply *reply)
{
	bool attach = strcmp(request->argv[0], "attach") == 0;
	struct fault fault = {0};
	uint64_t start_time;
	pid_t pid;
	int err;

	if (request->argc != 2 || parse_pid(request->argv[1], &pid)) {
		control_reply_error(reply, "%s: wants one process id", request->argv[0]);
		control_reply_end(reply, EXIT_USAGE);
		return;
	}
	if (!may_pid(request, pid, &start_time)) {
		refuse(reply, request->argv[0]);
		return;
	}
	err = attach ? watch_attach(s->watch, pid, &fault) : watch_detach(s->watch, pid, &fault);
	if (err)
		control_reply_error(reply, "cannot %s process %d: %s%s%s%s", request->argv[0], (int)pid, fault.why,
		                    fault.hint[0] ? " (" : "", fault.hint, fault.hint[0] ? ")" : "");
	control_reply_end(reply, err ? (int)error_status(err) : EXIT_DONE);
}

/* A moment of the wall clock in the time of everything inside; 0 stays 0. */
static uint64_t to_monotonic(uint64_t realtime_ns)
{
	uint64_t offset_ns = clock_read_ns(CLOCK_REALTIME) - clock_now_ns();

	if (realtime_ns == 0)
		return 0;
	return realtime_ns > offset_ns ? realtime_ns - offset_ns : 1;
}

/* 0, or -ENOENT: there was never such a rule. */
static int fill_query(const struct service *s, const struct dump_request *request, struct history_query *ret_query)
{
	struct history_query query = {.pid = request->pid,
	                              .merge = request->merge,
	                              .from_ns = to_monotonic(request->from_ns),
	                              .to_ns = to_monotonic(request->to_ns)};

	if (request->last_ns)
		query.from_ns = clock_now_ns() > request->last_ns ? clock_now_ns() - request->last_ns : 1;
	if (request->rule[0]) {
		query.by_group = true;
		for (uint32_t i = 0; i < s->groups.count; i++)
			if (strcmp(s->groups.names[i], request->rule) == 0)
				query.group = i + 1;
		if (query.group == 0)
			return -ENOENT;
	}
	*ret_query = query;
	return 0;
}

static void answer_dump(struct service *s, const struct control_request *request, struct control_reply *reply)
{
	struct dump_job job = {.target = DUMP_TO_CLIENT};
	struct dump_request dump;
	uint64_t start_time = 0;
	struct fault fault;

	if (dump_request_parse(&dump, request->argc, request->argv, clock_read_ns(CLOCK_REALTIME), &fault)) {
		control_reply_error(reply, "%s", fault.why);
		control_reply_end(reply, EXIT_USAGE);
		return;
	}
	if (dump.pid ? !may_pid(request, dump.pid, &start_time) : !request->may_all) {
		refuse(reply, dump.pid ? "dump that process" : "dump the processes of others");
		return;
	}
	if (fill_query(s, &dump, &job.query)) {
		control_reply_error(reply, "cannot dump: no process was profiled by a rule %s", dump.rule);
		control_reply_end(reply, EXIT_USAGE);
		return;
	}
	job.query.start_time = start_time;
	job.format = dump.format;
	job.reply = control_reply_ref(reply);
	job.mark = service_ask_mark(s);
	(void)dumper_ask(s->dumper, &job); /* it tells the client, if it cannot */
}

static void answer_reload(struct service *s, const struct control_request *request, struct control_reply *reply)
{
	if (!request->may_all) {
		refuse(reply, "reload");
		return;
	}
	if (service_reload(s)) {
		control_reply_error(reply,
		                    "cannot reload: the configuration has mistakes, the one before stays in force "
		                    "(sampled daemon --check)");
		control_reply_end(reply, EXIT_FAILED);
		return;
	}
	control_reply_end(reply, EXIT_DONE);
}

void service_answer(void *context, const struct control_request *request, struct control_reply *reply)
{
	static const struct {
		const char *name;
		void (*answer)(struct service *s, const struct control_request *request, struct control_reply *reply);
	} commands[] = {
		{"status", answer_status}, {"list", answer_status}, {"metrics", answer_status}, {"attach", answer_pid},
		{"detach", answer_pid},    {"dump", answer_dump},   {"reload", answer_reload},
	};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(request->argv[0], commands[i].name) == 0) {
			commands[i].answer(context, request, reply);
			return;
		}
	}
	control_reply_error(reply, "%.64s: the service knows no such command", request->argv[0]);
	control_reply_end(reply, EXIT_USAGE);
}
