/* SPDX-License-Identifier: Apache-2.0 */
/* The service's event loop: signals, the second's tick (budget, sign of life, slices), targets that came back, marks, clients. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/limits.h"
#include "daemon/notify.h"
#include "daemon/service_log.h"
#include "daemon/service_state.h"

#define SWEEP_NS (60 * NS_PER_S)

enum { EVENTS = 64 };

/* The samples of what is under way are written, and the slice that is open ends if it is time. */
uint64_t service_ask_mark(struct service *s)
{
	sampler_ask_mark(s->sampler, ++s->mark);
	return s->mark;
}

static void ask_slice(struct service *s, uint64_t now_ns)
{
	if (now_ns < s->next_slice_ns)
		return;
	service_ask_mark(s);
	s->next_slice_ns += s->config->history.slice_ns;
	if (s->next_slice_ns <= now_ns) /* the machine slept */
		s->next_slice_ns = now_ns + s->config->history.slice_ns;
}

static size_t count_sampled(const struct service *s)
{
	size_t count = 0;

	for (size_t i = 0; i < watch_count(s->watch); i++)
		count += watch_at(s->watch, i)->state == WATCH_SAMPLED;
	return count;
}

static void keep_budget(struct service *s, uint64_t now_ns)
{
	if (!governor_look(&s->governor, now_ns, clock_read_ns(CLOCK_PROCESS_CPUTIME_ID), sampler_cpu_ns(s->sampler)))
		return;
	sampler_slow_down(s->sampler, s->governor.slowdown);
	if (s->governor.budget <= 0) {
		service_log("there is no CPU budget any more: every sample is taken from now on");
		return;
	}
	service_log("%.2f %% of a core used, of a budget of %.2f %%: one sample of %u is taken from now on",
	            s->governor.share * 100, s->governor.budget * 100, s->governor.slowdown);
}

/* A sign of life is one of the sampling loop: no more of them come when that stands. */
static void give_sign(struct service *s, uint64_t now_ns)
{
	uint64_t beats = sampler_beats(s->sampler);
	char state[160];

	if (!s->watchdog_ns || now_ns < s->next_watchdog_ns || beats == s->beats)
		return;
	s->beats = beats;
	s->next_watchdog_ns = now_ns + s->watchdog_ns / 3;
	snprintf(state, sizeof(state), "WATCHDOG=1\nSTATUS=%zu processes profiled, %.2f %% of a core used",
	         count_sampled(s), s->governor.share * 100);
	(void)notify_send(state);
}

static void take_tick(struct service *s)
{
	uint64_t now_ns = clock_now_ns(), expirations;

	if (read(s->tick_fd, &expirations, sizeof(expirations)) < 0)
		return;
	keep_budget(s, now_ns);
	give_sign(s, now_ns);
	ask_slice(s, now_ns);
	if (now_ns >= s->next_sweep_ns) {
		dumper_sweep(s->dumper);
		s->next_sweep_ns = now_ns + SWEEP_NS;
	}
}

static void say_mistake(void *context, const struct fault *fault)
{
	(void)context;
	service_log("%s%s%s%s", fault->why, fault->hint[0] ? " (" : "", fault->hint, fault->hint[0] ? ")" : "");
}

static void use_config(struct service *s, struct config *config, struct triggers *triggers)
{
	service_set_modes(s, config);
	watch_reconfigure(s->watch, config);
	collector_set_slice(s->collector, config->history.slice_ns);
	history_set_memory(collector_lock(s->collector), config->budget.memory_bytes);
	collector_unlock(s->collector);
	s->governor.budget = config->budget.cpu;
	triggers_carry_over(triggers, s->triggers);
	triggers_free(s->triggers);
	s->triggers = triggers;
	config_free(s->own_config);
	s->config = s->own_config = config;
	s->reloads++;
	service_log("configuration read again: %zu rules", config->rule_count);
}

int service_reload(struct service *s)
{
	struct triggers *triggers = NULL;
	struct config *config = NULL;
	struct fault fault = {0};
	char state[80];
	int err;

	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%llu",
	         (unsigned long long)(clock_now_ns() / NS_PER_US));
	(void)notify_send(state);
	err = config_read(&config, s->options->config_path, say_mistake, NULL);
	if (!err)
		err = triggers_new(&triggers, config);
	if (!err) {
		err = dumper_reconfigure(s->dumper, config, &fault);
		if (err)
			service_log("%s", fault.why);
	}
	if (err) {
		service_log("cannot use the configuration: the one before stays in force");
		triggers_free(triggers);
		config_free(config);
		s->reloads_failed++;
	} else {
		use_config(s, config, triggers);
	}
	(void)notify_send("READY=1");
	return err;
}

static void take_signals(struct service *s)
{
	struct signalfd_siginfo info;

	while (read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGHUP)
			(void)service_reload(s);
		else if (info.ssi_signo == SIGUSR1)
			service_dump_all(s);
		else
			s->stopping = true;
	}
}

static void take_event(struct service *s, uint64_t data)
{
	eventfd_t count;

	switch ((enum service_event)(data >> 32)) {
	case EVENT_SIGNAL:
		take_signals(s);
		break;
	case EVENT_TICK:
		take_tick(s);
		break;
	case EVENT_ENDED:
		watch_collect(s->watch);
		break;
	case EVENT_MARK:
		(void)eventfd_read(collector_event_fd(s->collector), &count);
		service_take_mark(s);
		break;
	case EVENT_CONTROL:
		limits_free_files();
		control_step(s->control);
		limits_keep_files();
		break;
	case EVENT_PROCESS:
		watch_exited(s->watch, (pid_t)(uint32_t)data);
		break;
	default:
		break;
	}
}

static int timeout_ms(uint64_t due_ns)
{
	uint64_t now_ns = clock_now_ns();

	return due_ns <= now_ns ? 0 : (int)((due_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS);
}

void service_serve(struct service *s)
{
	struct epoll_event events[EVENTS];

	limits_keep_files();
	while (!s->stopping) {
		uint64_t due_ns = watch_step(s->watch);
		int count = epoll_wait(s->epoll_fd, events, EVENTS, timeout_ms(due_ns));

		for (int i = 0; i < count; i++)
			take_event(s, events[i].data.u64);
	}
}
