/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/names_fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "exporters/curl_library.h"
#include "exporters/names_cache.h"
#include "exporters/names_child.h"
#include "exporters/sandbox.h"

#define BYTES_MAX  (UINT64_C(1) << 30)
#define RUN_MAX_NS (180 * NS_PER_S) /* of all downloads */
#define CONNECT_MS 5000L
#define FILE_MS    30000L

enum {
	FOUND = 200, /* of HTTP */
	NOT_FOUND = 404,
	FETCHES_MAX = 512, /* questions to servers in one run */
	URL_MAX = 1024,
};

struct fetcher {
	int socket_fd, cache_fd; /* -1: nothing is kept */
	const char *urls;
	uint64_t bytes_max, spent_ns;
	unsigned fetches;
	struct curl_library curl;
	bool has_curl;
	union wire_message message;
};

/* One download. */
struct download {
	int fd;
	uint64_t bytes, bytes_max;
};

static size_t take_bytes(char *bytes, size_t size, size_t count, void *context)
{
	struct download *d = context;
	size_t all = size * count, at = 0;

	d->bytes += all;
	if (d->bytes > d->bytes_max)
		return 0;
	while (at < all) {
		ssize_t done = write(d->fd, bytes + at, all - at);

		if (done <= 0)
			return at;
		at += (size_t)done;
	}
	return all;
}

/* *ret_none: the server answered, and has none. */
static bool get(struct fetcher *f, const char *url, struct download *d, bool *ret_none)
{
	CURL *easy = f->curl.easy_init();
	long status = 0;
	bool whole;

	if (!easy)
		return false;
	f->curl.easy_setopt(easy, CURLOPT_URL, url);
	f->curl.easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	f->curl.easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
	f->curl.easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
	f->curl.easy_setopt(easy, CURLOPT_MAXREDIRS, 4L);
	f->curl.easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
	f->curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	f->curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	f->curl.easy_setopt(easy, CURLOPT_TIMEOUT_MS, FILE_MS);
	f->curl.easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)d->bytes_max);
	f->curl.easy_setopt(easy, CURLOPT_USERAGENT, "sampled");
	f->curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_bytes);
	f->curl.easy_setopt(easy, CURLOPT_WRITEDATA, d);
	whole = f->curl.easy_perform(easy) == CURLE_OK &&
	        f->curl.easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK && status == FOUND;
	*ret_none = f->curl.easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK && status == NOT_FOUND;
	f->curl.easy_cleanup(easy);
	return whole && d->bytes > 0;
}

/* Asks one server after another. A descriptor, or -1; *ret_none: each of them said that it has none. */
static int download(struct fetcher *f, const char *key, const char *build_id, const char *kind, bool *ret_none)
{
	const char *at = f->urls;
	uint64_t start_ns = clock_now_ns();
	char url[URL_MAX];
	int fd = -1;

	*ret_none = true;
	while (*at && fd < 0 && f->fetches < FETCHES_MAX && f->spent_ns < RUN_MAX_NS) {
		size_t bytes = strcspn(at, " \t\n"), own = bytes;
		struct download d = {.bytes_max = f->bytes_max};
		bool none = false;

		while (own > 0 && at[own - 1] == '/')
			own--;
		if (own > 0 && own < URL_MAX / 2) {
			snprintf(url, sizeof(url), "%.*s/buildid/%s/%s", (int)own, at, build_id, kind);
			f->fetches++;
			d.fd = cache_begin(f->cache_fd, key);
			if (d.fd >= 0)
				fd = cache_end(f->cache_fd, key, d.fd, get(f, url, &d, &none));
			*ret_none &= none;
		}
		at += bytes;
		at += strspn(at, " \t\n");
	}
	*ret_none &= *at == '\0';
	f->spent_ns += clock_now_ns() - start_ns;
	return fd;
}

static int find(struct fetcher *f, const struct wire_fetch *ask)
{
	const char *kind = ask->kind == DEBUG_DATA ? "debuginfo" : "executable";
	char build_id[2 * BUILD_ID_MAX + 1] = "", key[2 * BUILD_ID_MAX + 32];
	bool missing, none;
	int fd;

	for (uint32_t i = 0; i < ask->build_id_bytes; i++)
		sprintf(build_id + 2 * (size_t)i, "%02x", ask->build_id[i]);
	snprintf(key, sizeof(key), "%s.%s", build_id, kind);
	fd = cache_find(f->cache_fd, key, &missing);
	if (fd >= 0 || missing || !f->has_curl)
		return fd;
	fd = download(f, key, build_id, kind, &none);
	if (fd < 0 && none)
		cache_note_missing(f->cache_fd, key);
	return fd;
}

static void serve(struct fetcher *f)
{
	int fds[WIRE_FDS];
	long got;

	while ((got = wire_receive(f->socket_fd, &f->message, fds, true)) > 0) {
		struct wire_fetch answer;
		int found[WIRE_FDS] = {-1, -1, -1};

		if (!wire_is_sound(&f->message, (size_t)got) || f->message.head.type != WIRE_FETCH ||
		    f->message.fetch.build_id_bytes < 2)
			return;
		answer = f->message.fetch;
		answer.head.type = WIRE_FETCHED;
		found[0] = find(f, &answer);
		if (wire_send(f->socket_fd, &answer, sizeof(answer), found, true))
			return;
		if (found[0] >= 0)
			close(found[0]);
	}
}

_Noreturn void names_fetch(int socket_fd, const char *urls, uint64_t bytes_max)
{
	struct fetcher f = {
		.socket_fd = socket_fd, .cache_fd = -1, .urls = urls, .bytes_max = bytes_max ? bytes_max : BYTES_MAX};
	struct fault fault;
	sigset_t none;
	int err;

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_NAME, "sampled-fetch");
	names_close_others(socket_fd, -1);
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	/* It stays its owner's process, as who its cache belongs to. */
	f.cache_fd = cache_open();
	f.has_curl = curl_library_load(&f.curl, &fault) == 0;
	err = sandbox_pusher(&fault);
	if (!err || err == -ENOPKG)
		serve(&f);
	_exit(0);
}
