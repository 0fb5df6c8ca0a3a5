/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/push_loop.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/error.h"
#include "daemon/notify.h"
#include "daemon/push_http.h"
#include "daemon/push_metrics.h"
#include "daemon/push_queue.h"
#include "daemon/signals.h"

#define SCAN_NS   (30 * NS_PER_S) /* though nothing was heard of the directory */
#define STATUS_NS (5 * NS_PER_S)

struct loop {
	const struct push_config *config;
	const struct push_loop_options *options;
	struct curl_library curl;
	CURLM *multi;
	struct push_queue queue;
	struct push_sender senders[PUSH_DESTINATIONS_MAX];
	size_t sender_count;
	struct push_metrics metrics;
	struct push_http *http; /* NULL: no metrics over TCP */
	struct push_log log;
	uint64_t dropped_files; /* as was said of them */
	int signal_fd, watch_fd;
	bool fed;      /* no more files come */
	bool stopping; /* the end was asked for */
	uint64_t scan_ns, status_ns, ping_ns, watchdog_ns;
};

static void fill_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
}

void push_loop_take_signals(void)
{
	sigset_t set;

	fill_signals(&set);
	signals_take(&set);
}

/* --- beginning and end --- */

static int open_descriptors(struct loop *l, struct fault *fault)
{
	sigset_t set;

	fill_signals(&set);
	l->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	l->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (l->signal_fd < 0)
		return fault_set(fault, -errno, "", "%s", strerror(errno));
	/* Where it cannot be watched, it is looked at from time to time. */
	if (l->watch_fd >= 0)
		(void)inotify_add_watch(l->watch_fd, l->config->spool, IN_MOVED_TO | IN_ONLYDIR);
	return 0;
}

static int open_senders(struct loop *l, struct fault *fault)
{
	l->multi = l->curl.multi_init();
	if (!l->multi)
		return fault_set(fault, -ENOMEM, "", "out of memory");
	for (unsigned i = 0; i < l->config->destination_count; i++) {
		if (push_sender_init(&l->senders[i], &l->curl, l->multi, &l->queue, i, l->options->give_up_ns))
			return fault_set(fault, -ENOMEM, "", "out of memory");
		l->senders[i].is_quiet = l->options->feed_fd >= 0; /* somebody waits for one word */
		l->sender_count++;
	}
	return 0;
}

static int open_metrics(struct loop *l, struct fault *fault)
{
	struct fault why = {0};
	int err;

	l->metrics = (struct push_metrics){.senders = l->senders,
	                                   .sender_count = l->sender_count,
	                                   .queue = &l->queue,
	                                   .control = l->config->control};
	if (!l->config->listen || l->options->once)
		return 0;
	err = push_http_new(&l->http, l->config->listen, &l->metrics, &why);
	return err ? fault_set(fault, err, why.hint, "cannot listen at %s: %s", l->config->listen, why.why) : 0;
}

static int open_all(struct loop *l, struct fault *fault)
{
	struct fault why = {0};
	int err = curl_library_load(&l->curl, fault);

	if (err)
		return err;
	err = push_queue_open(&l->queue, l->config, &why);
	if (err)
		return fault_set(fault, err, why.hint, "cannot use the spool %s: %s", l->config->spool, why.why);
	err = open_descriptors(l, fault);
	if (!err)
		err = open_senders(l, fault);
	return err ? err : open_metrics(l, fault);
}

static void close_all(struct loop *l)
{
	push_log_finish(&l->log);
	push_http_free(l->http);
	for (size_t i = 0; i < l->sender_count; i++)
		push_sender_release(&l->senders[i]);
	if (l->multi)
		l->curl.multi_cleanup(l->multi);
	if (l->queue.dir_fd >= 0)
		push_queue_close(&l->queue);
	if (l->signal_fd >= 0)
		close(l->signal_fd);
	if (l->watch_fd >= 0)
		close(l->watch_fd);
}

/* --- at work --- */

static void least(uint64_t *due_ns, uint64_t other_ns)
{
	*due_ns = other_ns < *due_ns ? other_ns : *due_ns;
}

static void scan(struct loop *l, uint64_t now_ns)
{
	int err = push_queue_scan(&l->queue);

	if (err)
		push_log(&l->log, PUSH_SAY_SPOOL, "cannot list the spool %s: %s", l->config->spool, strerror(-err));
	if (l->queue.dropped_files > l->dropped_files)
		push_log(&l->log, PUSH_SAY_SPOOL, "the spool is full: %" PRIu64 " files were removed unsent so far",
		         l->queue.dropped_files);
	l->dropped_files = l->queue.dropped_files;
	l->scan_ns = now_ns + SCAN_NS;
}

static void take_ended(struct loop *l)
{
	int running, left;
	CURLMsg *message;

	l->curl.multi_perform(l->multi, &running);
	while ((message = l->curl.multi_info_read(l->multi, &left))) {
		CURLcode code = message->data.result; /* before the handle is taken out, and the message with it */
		struct push_sender *sender = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		l->curl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &sender);
		push_sender_finished(sender, code);
	}
}

static void say_status(struct loop *l, uint64_t now_ns)
{
	uint64_t sent = 0, refused = 0;
	size_t failing = 0;
	char text[160];

	for (size_t i = 0; i < l->sender_count; i++) {
		sent += l->senders[i].counts.sent;
		refused += l->senders[i].counts.refused;
		failing += l->senders[i].is_failing;
	}
	snprintf(text, sizeof(text),
	         "STATUS=%" PRIu64 " profiles sent, %" PRIu64
	         " refused; %zu files wait; %zu of %zu destinations failing",
	         sent, refused, l->queue.count, failing, l->sender_count);
	notify_send(text);
	l->status_ns = now_ns + STATUS_NS;
}

/* Does what is due; returns when something is again. */
static uint64_t step(struct loop *l)
{
	uint64_t now_ns = clock_now_ns(), due_ns;

	take_ended(l);
	if (now_ns >= l->scan_ns)
		scan(l, now_ns);
	due_ns = l->scan_ns;
	for (size_t i = 0; i < l->sender_count; i++)
		least(&due_ns, push_sender_step(&l->senders[i]));
	if (l->http)
		least(&due_ns, push_http_step(l->http));
	if (now_ns >= l->status_ns && !l->options->once)
		say_status(l, now_ns);
	if (l->watchdog_ns && now_ns >= l->ping_ns) {
		notify_send("WATCHDOG=1");
		l->ping_ns = now_ns + l->watchdog_ns / 3;
	}
	if (l->watchdog_ns)
		least(&due_ns, l->ping_ns);
	if (!l->options->once)
		least(&due_ns, l->status_ns);
	return due_ns;
}

static void wait_for_events(struct loop *l, uint64_t due_ns)
{
	struct curl_waitfd events[] = {
		{.fd = l->signal_fd, .events = CURL_WAIT_POLLIN},
		{.fd = l->watch_fd, .events = CURL_WAIT_POLLIN},
		{.fd = l->http ? push_http_fd(l->http) : -1, .events = CURL_WAIT_POLLIN},
		{.fd = l->fed ? -1 : l->options->feed_fd, .events = CURL_WAIT_POLLIN},
	};
	struct curl_waitfd used[4];
	struct signalfd_siginfo signal;
	uint64_t now_ns = clock_now_ns(), wait_ms = 0;
	unsigned count = 0;
	char bytes[4096];
	int ready;

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (events[i].fd >= 0)
			used[count++] = events[i];
	if (due_ns > now_ns)
		wait_ms = (due_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
	l->curl.multi_poll(l->multi, used, count, wait_ms < 60000 ? (int)wait_ms : 60000, &ready);
	if (read(l->signal_fd, &signal, sizeof(signal)) > 0)
		l->stopping = true;
	while (l->watch_fd >= 0 && read(l->watch_fd, bytes, sizeof(bytes)) > 0)
		l->scan_ns = 0;
	/* Nothing is said over it: it ends when the last file is there. */
	if (!l->fed && l->options->feed_fd >= 0) {
		struct pollfd feed = {.fd = l->options->feed_fd, .events = POLLIN};

		if (poll(&feed, 1, 0) > 0 && read(feed.fd, bytes, sizeof(bytes)) == 0) {
			l->fed = true;
			l->scan_ns = 0;
		}
	}
}

static bool is_over(const struct loop *l)
{
	if (l->stopping)
		return true;
	if (!l->options->once || !l->fed || l->scan_ns == 0)
		return false;
	for (size_t i = 0; i < l->sender_count; i++)
		if (!push_sender_is_idle(&l->senders[i]))
			return false;
	return true;
}

static int result(const struct loop *l, struct push_counts *ret_counts)
{
	struct push_counts all = {0};
	bool failed = l->queue.count > 0 || l->queue.bad_files > 0 || l->queue.dropped_files > 0;

	for (size_t i = 0; i < l->sender_count; i++) {
		all.sent += l->senders[i].counts.sent;
		all.refused += l->senders[i].counts.refused;
		all.retries += l->senders[i].counts.retries;
		all.bytes += l->senders[i].counts.bytes;
		failed |= l->senders[i].gave_up;
	}
	if (ret_counts)
		*ret_counts = all;
	return l->options->once && (failed || all.refused > 0) ? -EIO : 0;
}

int push_loop(const struct push_config *config, const struct push_loop_options *options, struct push_counts *ret_counts,
              struct fault *fault)
{
	struct loop l = {.config = config,
	                 .options = options,
	                 .signal_fd = -1,
	                 .watch_fd = -1,
	                 .queue = {.dir_fd = -1},
	                 .fed = options->feed_fd < 0};
	int err = open_all(&l, fault);

	if (!err) {
		l.watchdog_ns = notify_watchdog_ns();
		notify_send("READY=1");
		while (!is_over(&l)) {
			uint64_t due_ns = step(&l);

			if (!is_over(&l))
				wait_for_events(&l, due_ns);
		}
		notify_send("STOPPING=1");
		err = result(&l, ret_counts);
	}
	close_all(&l);
	return err;
}
