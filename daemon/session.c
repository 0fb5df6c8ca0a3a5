/* SPDX-License-Identifier: Apache-2.0 */
/* One event loop, and what becomes of each event (which is why it is above 400 lines). */
#include "daemon/session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/children.h"
#include "daemon/error.h"
#include "daemon/signals.h"
#include "daemon/summary.h"
#include "daemon/terminal.h"
#include "exporters/facts.h"

/* All of it is touched in time. Unthrottled, one sixth of it was in use at most where both threads share a CPU. */
#define RING_BYTES      (UINT64_C(2) << 20)
#define TREES_MAX_BYTES (UINT64_C(1) << 30)
#define PROGRESS_NS     (250 * NS_PER_MS)

static void fill_signals(sigset_t *set, bool stops)
{
	struct sigaction hangup;

	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGUSR1);
	sigaddset(set, SIGCHLD);
	/* nohup's wish stands. Otherwise a terminal that goes away must not take the profile with it. */
	if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
		sigaddset(set, SIGHUP);
	if (stops) { /* Ctrl-Z must not find a thread of a target held */
		signals_add_stops(set);
		sigaddset(set, SIGCONT);
	}
}

bool session_stops(const struct options *options)
{
	return sampler_stops(&(struct sampler_options){.native = options->native, .blocking = options->blocking});
}

void session_take_signals(const struct options *options)
{
	sigset_t set;

	fill_signals(&set, session_stops(options));
	signals_take(&set);
}

static void take_record(void *session, const struct rec_head *record, const struct record_fate *fate)
{
	struct session *s = session;

	thread_watch_take(&s->threads, record);
	outputs_take(&s->outputs, record, fate);
}

static int make_pipeline(struct session *s)
{
	const struct options *o = s->options;
	struct sampler_options sampling = {.interval_ns = o->interval_ns,
	                                   .jitter = o->jitter,
	                                   .gc = o->gc,
	                                   .visit_budget_ppm = (uint32_t)(o->visit_budget * 1e6),
	                                   .realtime = o->realtime,
	                                   .native = o->native,
	                                   .blocking = o->blocking,
	                                   .opcodes = o->opcodes,
	                                   .cpu_time = true,
	                                   /* what is to leave the host is never had */
	                                   .command_line = o->push ? COMMAND_LINE_PROGRAM : COMMAND_LINE_FULL,
	                                   .exceptions = o->mode == MODE_EXCEPTION};
	struct aggregator_options aggregation = {
		.mode = o->mode,
		.idle = o->idle,
		.omit = pattern_regex(&o->omit),
		.stop = pattern_regex(&o->stop),
		.threads = o->threads.count ? o->threads.items : NULL,
		.thread_filter_count = o->threads.count,
		.interval_ns = o->interval_ns,
		.memory_max_bytes = TREES_MAX_BYTES,
		.on_record = s->outputs.naming || outputs_record(&s->outputs) || o->threads.count ? take_record : NULL,
		.on_record_context = s,
	};
	int err = ring_new(&s->ring, RING_BYTES);

	if (!err)
		err = sampler_new(&s->sampler, &sampling, s->ring);
	if (!err)
		err = aggregator_new(&s->aggregator, &aggregation);
	if (!err)
		err = places_new(&s->places);
	if (!err)
		s->outputs.options.sources = places_access(s->places);
	return err;
}

int session_open(struct session *ret_session, const struct options *options, struct outputs *outputs)
{
	struct session *s = ret_session;
	sigset_t signals;
	int err;

	*s = (struct session){.options = options, .outputs = *outputs, .signal_fd = -1, .timer_fd = -1};
	fill_signals(&signals, session_stops(options));
	thread_watch_init(&s->threads, &options->threads);
	outputs_start_naming(&s->outputs, options);
	err = make_pipeline(s);
	if (!err)
		s->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (!err && s->signal_fd >= 0)
		s->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (!err && s->timer_fd < 0)
		err = -errno;
	if (err) {
		error_note("cannot start: %s", strerror(-err));
		session_release(s);
		return err;
	}
	targets_init(&s->targets, s->sampler, s->places, options->subprocesses, options->verbose);
	s->targets.stops = session_stops(options);
	s->targets.marks = options->native == NATIVE_MARKS;
	return 0;
}

void session_release(struct session *session)
{
	publisher_free(session->publisher);
	targets_release(&session->targets);
	aggregator_free(session->aggregator);
	sampler_free(session->sampler);
	ring_free(session->ring);
	thread_watch_release(&session->threads);
	outputs_release(&session->outputs);
	places_free(session->places);
	if (session->signal_fd >= 0)
		close(session->signal_fd);
	if (session->timer_fd >= 0)
		close(session->timer_fd);
}

/* The threads start with the first target, so that where none can be attached nothing is written. */
static int start(struct session *s)
{
	struct itimerspec end = {.it_value = clock_to_timespec(s->options->duration_ns)};
	struct fault fault = {0};
	int err;

	if (outputs_record(&s->outputs) && recorder_start(&s->outputs.recorder, s->aggregator, s->options))
		return -EIO;
	err = publisher_new(&s->publisher, s->sampler, s->aggregator, &s->outputs);
	if (err) {
		error_note("cannot start: %s", strerror(-err));
		return err;
	}
	err = aggregator_start(s->aggregator, s->ring, publisher_snapshot, s->publisher);
	if (!err)
		err = sampler_start(s->sampler, &fault);
	if (err) {
		/* No thread of ours may go on behind a main thread that leaves. */
		error_note("cannot start: %s", fault.why[0] ? fault.why : strerror(-err));
		exit(EXIT_FAILED);
	}
	s->start_ns = clock_now_ns();
	if (!s->options->quiet)
		thread_watch_start(&s->threads, s->start_ns);
	if (s->options->duration_ns)
		timerfd_settime(s->timer_fd, 0, &end, NULL);
	if (s->options->realtime && !sampler_is_realtime(s->sampler))
		error_note("--realtime: not permitted, going on without it (CAP_SYS_NICE or a limit on real-time "
		           "priority is needed)");
	return 0;
}

static void stop(struct session *s)
{
	if (s->stopping)
		return;
	s->stopping = true;
	if (!s->targets.follow_children)
		children_note_missed(&s->targets);
	if (!s->publisher)
		return;
	if (s->again)
		sampler_ask_mark(s->sampler, ++s->snapshots);
	publisher_finish(s->publisher);
}

/* Standard signals of one kind that are pending count once: so those that come while a snapshot is being written
 * make one more. */
static void snapshot(struct session *s)
{
	if (!s->publisher || s->stopping)
		return;
	if (publisher_snapshots(s->publisher) < s->snapshots)
		s->again = true;
	else
		sampler_ask_mark(s->sampler, ++s->snapshots);
}

static void give_up(struct session *s, const char *why)
{
	error_note("%s: gave up writing", why);
	outputs_give_up(&s->outputs);
	_exit(EXIT_GIVEN_UP);
}

/* While a command runs, Ctrl-C is its business: it has got the signal from the terminal, as we have. Others are
 * passed on. */
static bool is_for_command(struct session *s, uint32_t signal)
{
	if (!s->command || s->command_ended)
		return false;
	if (signal == SIGINT)
		s->interrupts = 1;
	else
		kill(s->command, (int)signal);
	return true;
}

static void reap_command(struct session *s)
{
	siginfo_t info = {0};
	int status;

	if (!s->command || s->command_ended)
		return;
	/* Its stops are the sampler's to hear of, which may have stopped it (--blocking): they are only looked at, until it ended. */
	if (waitid(P_PID, (id_t)s->command, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
	    (info.si_code != CLD_EXITED && info.si_code != CLD_KILLED && info.si_code != CLD_DUMPED))
		return;
	if (waitpid(s->command, &status, WNOHANG) == s->command) {
		s->command_ended = true;
		s->command_status = status;
		if (!s->targets.command)
			stop(s);
		/* With what it left behind it goes on, as strace -f does, which is found now or never. */
		targets_look_again(&s->targets);
	}
}

static void take_signal(struct session *s, uint32_t signal)
{
	switch (signal) {
	case SIGUSR1:
		snapshot(s);
		return;
	case SIGCHLD:
		reap_command(s);
		return;
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU: /* the command has got its own from the terminal */
		sampler_stop_process(s->sampler, (int)signal);
		return;
	case SIGCONT:
		sampler_stop_process(s->sampler, 0);
		return;
	default:
		break;
	}
	if (is_for_command(s, signal))
		return;
	/* Without a reader there may never be an end, so the first signal is enough. */
	if (s->stopping && signal != SIGHUP && outputs_wait_for_reader(&s->outputs))
		give_up(s, "nobody reads the FIFO");
	if (signal == SIGINT && ++s->interrupts > 1 && s->stopping)
		give_up(s, "interrupted a second time");
	stop(s);
}

static void take_signals(struct session *s)
{
	struct signalfd_siginfo info;

	while (read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		take_signal(s, info.ssi_signo);
}

static void take_written(struct session *s)
{
	eventfd_t count;

	(void)eventfd_read(publisher_event_fd(s->publisher), &count);
	if (s->again && !s->stopping && publisher_snapshots(s->publisher) >= s->snapshots) {
		s->again = false;
		snapshot(s);
	}
}

static void show_progress(const struct session *s)
{
	uint64_t ns = clock_now_ns() - s->start_ns, samples = aggregator_samples(s->aggregator), end_ns = s->options->duration_ns;
	char left[32] = "", of[40] = "", text[200];

	if (end_ns && !s->stopping)
		snprintf(left, sizeof(left), ", %.1f s left", ns < end_ns ? (double)(end_ns - ns) / (double)NS_PER_S : 0.0);
	if (s->targets.sampled != 1)
		snprintf(of, sizeof(of), " of %zu processes", s->targets.sampled);
	snprintf(text, sizeof(text), "sampled: %.1f s%s; %llu samples%s, %.0f/s%s", (double)ns / (double)NS_PER_S, left,
	         (unsigned long long)samples, of, ns ? (double)samples * (double)NS_PER_S / (double)ns : 0.0,
	         s->stopping ? ", writing" : "; Ctrl-C stops and writes");
	terminal_progress(text);
}

static bool is_over(const struct session *s)
{
	return (!s->publisher || publisher_ended(s->publisher)) && (!s->command || s->command_ended);
}

/* Milliseconds until due_ns, rounded up, for poll(). */
static int timeout_ms(uint64_t due_ns)
{
	uint64_t now_ns = clock_now_ns();

	if (due_ns == UINT64_MAX)
		return -1;
	return due_ns <= now_ns ? 0 : (int)((due_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS);
}

/* Looks after the targets; returns when to do so again. */
static uint64_t tend_targets(struct session *s)
{
	uint64_t due_ns, note_ns;

	if (s->stopping)
		return UINT64_MAX;
	due_ns = targets_step(&s->targets);
	if (s->targets.attached > 0 && !s->publisher && start(s))
		exit(EXIT_FAILED);
	note_ns = thread_watch_step(&s->threads, clock_now_ns());
	due_ns = note_ns < due_ns ? note_ns : due_ns;
	if (s->command && !s->command_ended)
		return due_ns;
	if (!targets_alive(&s->targets))
		stop(s);
	else if (s->targets.command && !s->options->quiet)
		children_say_left_behind(&s->targets);
	return due_ns;
}

static void wait_for_events(struct session *s, uint64_t due_ns)
{
	struct pollfd events[] = {
		{.fd = s->signal_fd, .events = POLLIN},
		{.fd = s->timer_fd, .events = POLLIN},
		{.fd = sampler_event_fd(s->sampler), .events = POLLIN},
		{.fd = s->publisher ? publisher_event_fd(s->publisher) : -1, .events = POLLIN},
	};
	eventfd_t count;
	uint64_t expirations;

	if (poll(events, sizeof(events) / sizeof(events[0]), timeout_ms(due_ns)) <= 0)
		return;
	if (events[2].revents) {
		(void)eventfd_read(events[2].fd, &count);
		targets_collect(&s->targets);
	}
	if (events[3].revents)
		take_written(s);
	if (events[0].revents)
		take_signals(s);
	if (events[1].revents && read(s->timer_fd, &expirations, sizeof(expirations)) > 0)
		stop(s);
}

/* Why a profile is empty: nothing was sampled, or nothing is left of it. */
static void note_empty(const struct profile *profile)
{
	struct rec_facts facts;
	char taken[32];

	profile_facts(profile, &facts);
	if (facts.samples == 0) {
		error_note("no sample was taken: the profile is empty");
		return;
	}
	facts_count_text(taken, sizeof(taken), facts.samples);
	error_note("the profile is empty: %s samples were taken, and options leave out all (--mode %s)", taken,
	           profile->mode ? profile->mode : "wall");
}

static void print_summary(const struct session *s, const struct profile *profile)
{
	struct summary_options options = {
		.figures = s->options->verbose || s->options->stats, .stats = s->options->stats, .ring = s->ring};

	if (terminal_is_live() && s->outputs.count > 0 && s->outputs.items[0].path) {
		options.open_with = output_open_with(s->outputs.items[0].format);
		options.opened = s->outputs.items[0].path;
	}
	summary_print(profile, &options);
}

/* After -d, where nothing else tells why we are still here. */
static void note_waiting(struct session *s)
{
	if (!s->command || s->command_ended || !s->publisher || !publisher_ended(s->publisher) || s->waiting_noted)
		return;
	s->waiting_noted = true;
	if (!s->options->quiet)
		error_note("sampling has ended, and the command goes on: waiting for its end (Ctrl-C reaches it)");
}

static enum exit_status close_up(struct session *s)
{
	const struct profile *profile;
	int err;

	terminal_progress("");
	if (!s->publisher) {
		if (s->command)
			error_note("no profile written: the command ended without running Python");
		else if (s->targets.worst == EXIT_DONE)
			error_note("nothing was written: stopped before a process could be attached");
		return s->command ? s->targets.worst : error_worse(s->targets.worst, EXIT_FAILED);
	}
	profile = publisher_final(s->publisher, &err);
	if (profile && !s->options->quiet)
		print_summary(s, profile);
	if (!profile || thread_watch_check(&s->threads))
		return error_worse(s->targets.worst, EXIT_FAILED);
	if (s->targets.missed_children > 0 && !s->options->quiet)
		children_say_missed(s->targets.missed_parent, s->targets.missed_children);
	if (profile_sum(profile, VALUE_SAMPLES) == 0)
		note_empty(profile);
	return error_worse(s->targets.worst, err ? EXIT_FAILED : EXIT_DONE);
}

enum exit_status session_run(struct session *session)
{
	struct session *s = session;
	bool live = terminal_is_live() && !s->options->quiet && !s->command;

	do {
		uint64_t due_ns = tend_targets(s);

		if (s->stopping && is_over(s))
			break;
		note_waiting(s);
		if (live && s->publisher) {
			uint64_t progress_ns = clock_now_ns() + PROGRESS_NS;

			show_progress(s);
			due_ns = progress_ns < due_ns ? progress_ns : due_ns;
		}
		wait_for_events(s, due_ns);
	} while (!s->stopping || !is_over(s));
	return close_up(s);
}
