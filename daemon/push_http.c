/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/push_http.h"

#include <assert.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/library.h"

enum { CONNECTIONS_MAX = 16, IDLE_S = 10, CONNECTION_BYTES = 32768 };

#define HTTP_FUNCTIONS(X)                                                                                              \
	X(start_daemon)                                                                                                \
	X(stop_daemon)                                                                                                 \
	X(run)                                                                                                         \
	X(get_timeout)                                                                                                 \
	X(get_daemon_info)                                                                                             \
	X(create_response_from_buffer)                                                                                 \
	X(add_response_header)                                                                                         \
	X(queue_response)                                                                                              \
	X(destroy_response)

struct http_library {
#define HTTP_MEMBER(function) __typeof__ (&MHD_##function)(function);
	HTTP_FUNCTIONS(HTTP_MEMBER)
#undef HTTP_MEMBER
};

struct push_http {
	struct http_library library;
	void *handle; /* of library_open() */
	struct MHD_Daemon *server;
	const struct push_metrics *metrics;
	int fd;
};

/* Not in the portable program, which does not push. */
static const struct library_function functions[] = {
#define HTTP_ROW(function) LIBRARY_FUNCTION_SHARED(struct http_library, function, MHD_##function),
	HTTP_FUNCTIONS(HTTP_ROW)
#undef HTTP_ROW
};

static int load(struct push_http *h, struct fault *fault)
{
	const char *why;

	if (library_open("libmicrohttpd.so.12", functions, sizeof(functions) / sizeof(functions[0]), &h->library,
	                 &h->handle, &why) < 0)
		return fault_set(fault, -ENOSYS, library_hint("install libmicrohttpd12"),
		                 "libmicrohttpd is not to be had: %s", why);
	return 0;
}

/* The text becomes the response's, which frees it. */
static enum MHD_Result respond(const struct push_http *h, struct MHD_Connection *connection, unsigned status,
                               struct buf *body, const char *mime)
{
	struct MHD_Response *response =
		body->err ? NULL
			  : h->library.create_response_from_buffer(body->bytes, body->data, MHD_RESPMEM_MUST_FREE);
	enum MHD_Result result;

	if (!response) {
		buf_release(body);
		return MHD_NO;
	}
	h->library.add_response_header(response, "Content-Type", mime);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		h->library.add_response_header(response, "Allow", "GET, HEAD");
	result = h->library.queue_response(connection, status, response);
	h->library.destroy_response(response);
	return result;
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *upload, size_t *upload_bytes, void **state)
{
	const struct push_http *h = context;
	bool is_get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
	struct buf body = {0};

	(void)version;
	(void)upload;
	(void)upload_bytes;
	(void)state;
	if (is_get && strcmp(url, "/metrics") == 0) {
		push_metrics_write(h->metrics, &body);
		return respond(h, connection, MHD_HTTP_OK, &body, PUSH_METRICS_MIME);
	}
	buf_puts(&body, is_get ? "not found: metrics are at /metrics\n" : "only GET and HEAD\n");
	return respond(h, connection, is_get ? MHD_HTTP_NOT_FOUND : MHD_HTTP_METHOD_NOT_ALLOWED, &body, "text/plain");
}

/* Numeric addresses only: no name is looked up to be listened at. 0 or -EINVAL. */
static int parse_listen(const char *text, struct addrinfo **ret_address)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
	                               .ai_socktype = SOCK_STREAM};
	const char *colon = strrchr(text, ':');
	bool bracket = colon && text[0] == '[' && colon[-1] == ']';
	char *host = colon ? strndup(text + bracket, (size_t)(colon - text) - 2u * bracket) : NULL;
	int err = -EINVAL;

	if (host && *host && getaddrinfo(host, colon + 1, &hints, ret_address) == 0)
		err = 0;
	free(host);
	return err;
}

static int start(struct push_http *h, const struct addrinfo *address)
{
	unsigned flags = MHD_USE_EPOLL;
	const union MHD_DaemonInfo *info;

	assert(h->library.start_daemon && h->library.get_daemon_info); /* load() */
	if (address->ai_family == AF_INET6)
		flags |= MHD_USE_IPv6;
	h->server = h->library.start_daemon(flags, 0, NULL, NULL, answer, h, MHD_OPTION_SOCK_ADDR, address->ai_addr,
	                                    MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
	                                    MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
	                                    MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
	                                    MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u, MHD_OPTION_END);
	if (!h->server)
		return errno ? -errno : -EADDRINUSE;
	info = h->library.get_daemon_info(h->server, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info)
		return -ENOSYS;
	h->fd = info->epoll_fd;
	return 0;
}

int push_http_new(struct push_http **ret_http, const char *listen, const struct push_metrics *metrics,
                  struct fault *fault)
{
	struct push_http *h = calloc(1, sizeof(*h));
	struct addrinfo *address;
	int err;

	if (!h)
		return fault_set(fault, -ENOMEM, "", "out of memory");
	h->metrics = metrics;
	err = parse_listen(listen, &address);
	if (err) {
		fault_set(fault, err, "such as 127.0.0.1:9464 or [::1]:9464", "%s: not an address and port", listen);
	} else {
		err = load(h, fault);
		errno = 0;
		if (!err && (err = start(h, address)) != 0)
			fault_set(fault, err, "", "%s", strerror(-err));
		freeaddrinfo(address);
	}
	if (err) {
		push_http_free(h);
		return err;
	}
	*ret_http = h;
	return 0;
}

void push_http_free(struct push_http *http)
{
	if (!http)
		return;
	if (http->server)
		http->library.stop_daemon(http->server);
	library_close(http->handle);
	free(http);
}

int push_http_fd(const struct push_http *http)
{
	return http->fd;
}

uint64_t push_http_step(struct push_http *http)
{
	MHD_UNSIGNED_LONG_LONG wait_ms;

	http->library.run(http->server);
	if (http->library.get_timeout(http->server, &wait_ms) != MHD_YES)
		return UINT64_MAX;
	return clock_now_ns() + (uint64_t)wait_ms * NS_PER_MS;
}
