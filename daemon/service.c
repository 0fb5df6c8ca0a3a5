/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/service.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/control_protocol.h"
#include "daemon/error.h"
#include "daemon/notify.h"
#include "exporters/sandbox.h"
#include "daemon/service_log.h"
#include "daemon/service_state.h"
#include "daemon/signals.h"

#define RING_BYTES (UINT64_C(2) << 20)
#define LOOK_NS    (1 * NS_PER_S) /* at the budget, and for the sign of life */
enum { MMAP_BYTES = 32 * 1024, TRIM_BYTES = 256 * 1024 };

uint32_t service_group(void *service, const struct config_rule *rule)
{
	struct groups *groups = &((struct service *)service)->groups;
	char **names;

	for (uint32_t i = 0; i < groups->count; i++)
		if (strcmp(groups->names[i], rule->name) == 0)
			return i + 1;
	names = realloc(groups->names, (groups->count + 1) * sizeof(*names));
	if (!names)
		return 0;
	groups->names = names;
	names[groups->count] = strdup(rule->name);
	if (!names[groups->count])
		return 0;
	return ++groups->count;
}

/* The history counts what the rules say. */
void service_set_modes(struct service *s, const struct config *config)
{
	for (size_t i = 0; i < config->rule_count; i++) {
		const struct config_rule *rule = &config->rules[i];
		uint32_t group = service_group(s, rule);

		if (history_set_mode(collector_lock(s->collector), group, rule->mode))
			service_log("rule %s: out of memory for its mode", rule->name);
		collector_unlock(s->collector);
	}
}

static int add_event(struct service *s, int fd, enum service_event event)
{
	struct epoll_event want = {.events = EPOLLIN, .data.u64 = EVENT_DATA(event)};

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &want) == 0 ? 0 : -errno;
}

static void fill_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGUSR1);
}

/* Everything that has a descriptor. */
static int open_events(struct service *s)
{
	struct itimerspec every = {.it_value = clock_to_timespec(LOOK_NS), .it_interval = clock_to_timespec(LOOK_NS)};
	sigset_t signals;
	int err = 0;

	fill_signals(&signals);
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	s->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	s->tick_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->epoll_fd < 0 || s->signal_fd < 0 || s->tick_fd < 0 || timerfd_settime(s->tick_fd, 0, &every, NULL) != 0)
		return -errno;
	err = add_event(s, s->signal_fd, EVENT_SIGNAL);
	if (!err)
		err = add_event(s, s->tick_fd, EVENT_TICK);
	return err;
}

static int start(struct service *s, struct fault *fault)
{
	const struct config *c = s->config;
	const struct sampler_options sampling = {.interval_ns = c->service.interval_ns,
	                                         .jitter = c->service.jitter,
	                                         .gc = c->service.gc,
	                                         .visit_budget_ppm = (uint32_t)(c->budget.visits * 1e6),
	                                         .exceptions = true,
	                                         .cpu_time = true};
	const struct history_options history = {.memory_max_bytes = c->budget.memory_bytes};
	struct watch_options watching = {.config = c,
	                                 .epoll_fd = s->epoll_fd,
	                                 .epoll_tag = EVENT_DATA(EVENT_PROCESS),
	                                 .verbose = s->options->verbose,
	                                 .group = service_group,
	                                 .ended = service_note_ended,
	                                 .context = s};
	const struct control_options asking = {.path = s->options->socket ? s->options->socket : CONTROL_PATH,
	                                       .inherited_fd = -1,
	                                       .owner = geteuid(),
	                                       .handler = service_answer,
	                                       .context = s};
	int err = ring_new(&s->ring, RING_BYTES);

	if (!err)
		err = sampler_new(&s->sampler, &sampling, s->ring);
	if (!err)
		err = history_new(&s->history, &history);
	watching.sampler = s->sampler;
	if (!err)
		err = watch_new(&s->watch, &watching);
	if (!err)
		err = triggers_new(&s->triggers, c);
	if (!err)
		err = control_open(&s->control, &asking, fault);
	if (!err)
		err = collector_start(&s->collector, s->ring, s->history, c->history.slice_ns);
	if (!err)
		service_set_modes(s, c);
	if (!err)
		err = dumper_start(&s->dumper, c, s->collector, fault);
	if (!err)
		err = sampler_start(s->sampler, fault);
	if (!err)
		err = add_event(s, sampler_event_fd(s->sampler), EVENT_ENDED);
	if (!err)
		err = add_event(s, collector_event_fd(s->collector), EVENT_MARK);
	if (!err)
		err = add_event(s, control_fd(s->control), EVENT_CONTROL);
	return err;
}

/* What was sampled is taken in to its end, what was asked for is written, what is to be sent is spooled. */
static void drain(struct service *s)
{
	if (s->sampler)
		sampler_stop(s->sampler);
	if (s->ring)
		ring_close(s->ring); /* as the sampler does, if it has run */
	if (s->collector)
		collector_join(s->collector);
	if (s->dumper && s->config->push.spool)
		service_spool(s);
	dumper_free(s->dumper);
	if (s->control)
		control_step(s->control); /* answers that are ready */
}

static void stop(struct service *s)
{
	drain(s);
	control_free(s->control);
	collector_free(s->collector);
	watch_free(s->watch);
	triggers_free(s->triggers);
	sampler_free(s->sampler);
	ring_free(s->ring);
	history_free(s->history);
	service_forget_ended(s);
	for (uint32_t i = 0; i < s->groups.count; i++)
		free(s->groups.names[i]);
	free(s->groups.names);
	config_free(s->own_config);
	if (s->tick_fd >= 0)
		close(s->tick_fd);
	if (s->signal_fd >= 0)
		close(s->signal_fd);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
}

/* Before there are threads, and before anything of a target is read. */
static int confine(void)
{
	struct fault fault = {0};
	int err = sandbox_reader(false, &fault);

	if (err == -ENOPKG)
		service_log("%s (%s)", fault.why, fault.hint);
	else if (err)
		error_fault(&fault, "cannot confine the service");
	return err == -ENOPKG ? 0 : err;
}

int service_run(const struct config *config, const struct service_options *options)
{
	struct service s = {.options = options, .config = config, .epoll_fd = -1, .signal_fd = -1, .tick_fd = -1};
	struct fault fault = {0};
	sigset_t signals;
	int err;

	fill_signals(&signals);
	signals_take(&signals);
	if (confine())
		return EXIT_FAILED;
	/* What a target holds is large and mostly untouched: pages of its own, which come when they are needed and go with it. */
	mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);
	mallopt(M_TRIM_THRESHOLD, TRIM_BYTES);
	mallopt(M_ARENA_MAX, 2);
	prctl(PR_SET_TIMERSLACK, NS_PER_MS); /* of this thread, and of those that set none of their own */
	s.started_ns = clock_now_ns();
	s.started_realtime_ns = clock_read_ns(CLOCK_REALTIME);
	s.next_slice_ns = s.started_ns + config->history.slice_ns;
	governor_init(&s.governor, config->budget.cpu);
	s.watchdog_ns = notify_watchdog_ns();
	if (gethostname(s.host, sizeof(s.host) - 1) != 0)
		s.host[0] = '\0';
	err = open_events(&s);
	if (!err)
		err = start(&s, &fault);
	if (err && !fault.why[0])
		fault_set(&fault, err, "", "%s", strerror(-err));
	if (err) {
		error_fault(&fault, "cannot start");
	} else {
		s.slice_from_ns = s.spooled_ns = collector_closed_ns(s.collector);
		(void)notify_send("READY=1\nSTATUS=looking for Python processes");
		service_serve(&s);
		(void)notify_send("STOPPING=1");
	}
	stop(&s);
	service_log_finish();
	return err ? EXIT_FAILED : EXIT_DONE;
}
