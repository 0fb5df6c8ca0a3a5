/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a control, for its own files alone: control.c (socket, loop, clients' coming and going), control_client.c (one request),
 * control_reply.c (one reply). */
#ifndef SAMPLED_DAEMON_CONTROL_STATE_H
#define SAMPLED_DAEMON_CONTROL_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/clock.h"
#include "daemon/control.h"
#include "daemon/control_socket.h"

enum {
	CONTROL_CLIENTS_MAX = 64,
	CONTROL_CLIENTS_OTHERS_MAX = 48, /* of users other than root and the owner, together */
	CONTROL_CLIENTS_USER_MAX = 16,   /* of one of them */
	CONTROL_PIPES = 1 << 8,          /* this and a client's index: what epoll says of its passed pipe */
};

/* What is under way may stand still for so long. */
#define CONTROL_PATIENCE_NS (5 * NS_PER_S)
/* A request must be whole after this, and a reply must begin to come. */
#define CONTROL_REQUEST_NS (10 * NS_PER_S)
#define CONTROL_MAKING_NS  (30 * NS_PER_S)

/* A reply: filled by whoever answers, emptied by the loop. Everything but the counter is guarded by `lock`. */
struct control_reply {
	atomic_uint references;
	pthread_mutex_t lock;
	struct control
		*control;  /* its eventfd and its sum of bytes are used under the lock; NULL: the client is gone */
	struct buf out;    /* frames, or an HTTP answer */
	size_t sent_bytes; /* of out */
	size_t held_bytes; /* of out, as counted in the control's sum */
	bool http;
	bool closed; /* nothing more is taken from those who answer */
	bool ended;  /* out has its end in it */
	int status;  /* once closed */
	int file_fd; /* owned; output that comes before the end; -1: none */
	off_t file_at, file_bytes;
	int pass_fd; /* owned; where file_fd's content goes; -1: to the client */
	bool pass_is_pipe;
	uint64_t t_grown_ns; /* when somebody worked on it last */
};

struct control_client {
	int fd; /* -1: the place is free */
	pid_t pid;
	uid_t uid;
	bool may_all;
	bool reads_request; /* the request is not whole yet */
	char *request;      /* owned, while reads_request */
	size_t request_bytes;
	int pass_fd; /* owned, while reads_request; -1: none came */
	bool too_many_fds;
	struct control_reply *reply; /* once the request is whole */
	uint64_t t_connected_ns;
	uint64_t t_moved_ns; /* when bytes went either way last, or the request was whole */
	bool waits;          /* for whoever reads, with something to send */
	uint32_t events;     /* what is asked for of epoll */
	bool polls_pipe;     /* the reply's pass_fd is polled, too */
};

struct control {
	struct control_socket socket;
	int epoll_fd, wake_fd, timer_fd;
	bool listens; /* the socket is polled: there is room */
	bool ticks;   /* timer_fd runs: there are clients */
	uid_t owner;
	control_handler *handler;
	void *context;
	size_t client_count;
	struct control_client clients[CONTROL_CLIENTS_MAX];
	atomic_size_t held_bytes; /* in all replies; relaxed: a bound, which orders nothing */
};

/* Reads what is there of a request and answers it when it is whole. False: the client is to be dropped. */
bool control_client_read(struct control *control, struct control_client *client, uint64_t now_ns);
/* Sends what can be sent now. False: all is sent, or the client is gone: it is to be dropped. */
bool control_client_write(struct control *control, struct control_client *client, uint64_t now_ns);
/* False: it has kept still for too long, and is to be dropped. */
bool control_client_check(struct control_client *client, uint64_t now_ns);
/* Asks epoll for these events of the client's socket. False: it cannot. */
bool control_client_poll(struct control *control, struct control_client *client, uint32_t events);

/* Owns pass_fd, where that is not -1. NULL: no memory. */
struct control_reply *control_reply_new(struct control *control, bool http, int pass_fd, bool pass_is_pipe);
/* The client is gone: what is still written goes nowhere. Gives up the client's reference. */
void control_reply_drop(struct control_reply *reply);
/* The end, as an HTTP status says it: 404, 405. */
void control_reply_end_http(struct control_reply *reply, int http_status);
/* Under the lock: the file is through, or failed with err, and `out` is sent: the end. */
void control_reply_finish(struct control_reply *reply, int err);
/* An error, and the end with EXIT_FAILED, unless it has ended. */
void control_reply_fail(struct control_reply *reply, const char *why);

#endif
