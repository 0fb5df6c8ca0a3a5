/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/push_metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/tempfile.h"

#define DAEMON_WAIT_NS NS_PER_S
enum { DAEMON_MAX_BYTES = 4 << 20 };

/* --- the daemon's --- */

static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return -1;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* All that comes until the end, in time. False: it did not end. */
static bool read_all(int fd, struct buf *to)
{
	uint64_t end_ns = clock_now_ns() + DAEMON_WAIT_NS;

	while (to->bytes < DAEMON_MAX_BYTES) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		uint64_t now_ns = clock_now_ns();
		char *room = buf_reserve(to, 65536);
		ssize_t got;

		if (!room || now_ns >= end_ns || poll(&ready, 1, (int)((end_ns - now_ns) / NS_PER_MS) + 1) <= 0)
			return false;
		got = read(fd, room, 65536);
		if (got == 0)
			return true;
		if (got < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		to->bytes += got > 0 ? (size_t)got : 0;
	}
	return false;
}

/* Appends the body of what it answers. False: it did not answer as it should, and nothing is appended. */
static bool add_daemon(const char *path, struct buf *to)
{
	static const char request[] = "GET /metrics HTTP/1.0\r\n\r\n", good[] = " 200 ";
	struct buf answer = {0};
	const char *text, *status, *body = NULL;
	int fd = connect_to(path);

	if (fd < 0)
		return false;
	if (write_all(fd, request, sizeof(request) - 1) == 0 && read_all(fd, &answer)) {
		text = buf_text(&answer);
		status = strncmp(text, "HTTP/1.", 7) == 0 ? strchr(text, ' ') : NULL;
		if (status && strncmp(status, good, sizeof(good) - 1) == 0)
			body = strstr(text, "\r\n\r\n");
		if (body)
			buf_add(to, body + 4, answer.bytes - (size_t)(body + 4 - text));
		if (body && to->bytes > 0 && to->data[to->bytes - 1] != '\n')
			buf_putc(to, '\n');
	}
	close(fd);
	buf_release(&answer);
	return body != NULL;
}

/* --- ours --- */

static void head(struct buf *to, const char *name, const char *type, const char *help)
{
	buf_printf(to, "# HELP sampled_push_%s %s\n# TYPE sampled_push_%s %s\n", name, help, name, type);
}

static void add_number(struct buf *to, const char *name, const char *type, const char *help, double value)
{
	head(to, name, type, help);
	buf_printf(to, "sampled_push_%s %.17g\n", name, value);
}

/* One of struct push_counts, by destination. */
static void add_counts(const struct push_metrics *m, struct buf *to, const char *name, const char *type,
                       const char *help, size_t off)
{
	head(to, name, type, help);
	for (size_t i = 0; i < m->sender_count; i++) {
		uint64_t value;

		memcpy(&value, (const char *)&m->senders[i].counts + off, sizeof(value));
		buf_printf(to, "sampled_push_%s{destination=\"%s\"} %" PRIu64 "\n", name, m->senders[i].to->name,
		           value);
	}
}

static void add_items(const struct push_metrics *m, struct buf *to)
{
	head(to, "items_total", "counter", "Profiles that a destination took, or refused.");
	for (size_t i = 0; i < m->sender_count; i++) {
		const struct push_sender *s = &m->senders[i];

		buf_printf(to, "sampled_push_items_total{destination=\"%s\",result=\"sent\"} %" PRIu64 "\n",
		           s->to->name, s->counts.sent);
		buf_printf(to, "sampled_push_items_total{destination=\"%s\",result=\"refused\"} %" PRIu64 "\n",
		           s->to->name, s->counts.refused);
	}
}

static double own_cpu_seconds(void)
{
	return (double)clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) / (double)NS_PER_S;
}

static double own_memory_bytes(void)
{
	unsigned long size, resident = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (file) {
		if (fscanf(file, "%lu %lu", &size, &resident) != 2)
			resident = 0;
		fclose(file);
	}
	return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

void push_metrics_write(const struct push_metrics *metrics, struct buf *to)
{
	const struct push_metrics *m = metrics;
	const struct push_queue *q = m->queue;
	struct buf daemon = {0};
	bool up = m->control && add_daemon(m->control, &daemon);

	add_items(m, to);
	add_counts(m, to, "retries_total", "counter", "Requests that failed and are made again.",
	           offsetof(struct push_counts, retries));
	add_counts(m, to, "sent_bytes_total", "counter", "Bodies of requests that were taken.",
	           offsetof(struct push_counts, bytes));
	add_counts(m, to, "last_success_timestamp_seconds", "gauge", "When a profile was last taken; 0 for never.",
	           offsetof(struct push_counts, last_s));
	add_number(to, "spool_files", "gauge", "Files that wait in the spool.", (double)q->count);
	add_number(to, "spool_bytes", "gauge", "What they take on disk.", (double)q->bytes);
	add_number(to, "spool_limit_bytes", "gauge", "What they may take.", (double)q->max_bytes);
	add_number(to, "spool_dropped_files_total", "counter", "Files that were removed unsent, for want of room.",
	           (double)q->dropped_files);
	add_number(to, "spool_dropped_bytes_total", "counter", "What these took on disk.", (double)q->dropped_bytes);
	add_number(to, "spool_malformed_files_total", "counter", "Files that made no sense and were removed.",
	           (double)q->bad_files);
	add_number(to, "refused_files", "gauge", "Files that are kept of what was refused.", (double)q->refused.files);
	add_number(to, "refused_bytes", "gauge", "Their bytes.", (double)q->refused.bytes);
	add_number(to, "refused_dropped_files_total", "counter",
	           "Files of what was refused that were removed for want of room.", (double)q->refused.dropped_files);
	add_number(to, "cpu_seconds_total", "counter", "CPU time of the sender.", own_cpu_seconds());
	add_number(to, "resident_memory_bytes", "gauge", "Memory of the sender.", own_memory_bytes());
	if (m->control)
		add_number(to, "daemon_up", "gauge", "Whether the daemon said its own metrics, which follow.", up);
	buf_add(to, daemon.data, daemon.bytes);
	buf_release(&daemon);
}
