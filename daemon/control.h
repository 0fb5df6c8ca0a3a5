/* SPDX-License-Identifier: Apache-2.0 */
/* The server's side of the control socket (control_protocol.h says what goes over it).
 *
 * It belongs to the thread of the service's event loop, which polls control_fd(); nothing here waits. Clients are few (64, of which a user
 * other than root has 16 at most and the last 16 are root's), and one that neither sends nor reads for a while is dropped, so that nobody
 * keeps others out. Replies alone may be written from other threads.
 *
 * Who asks is what the kernel says of the socket's other end (SO_PEERCRED), at the time it connected. */
#ifndef SAMPLED_DAEMON_CONTROL_H
#define SAMPLED_DAEMON_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fault.h"

struct control;
struct control_reply;

/* Valid while the handler runs. */
struct control_request {
	uid_t uid;
	pid_t pid;    /* 0: in a pid namespace that we do not see */
	bool may_all; /* root, or whom struct control_options names */
	bool http;    /* asked for by HTTP: {"metrics"}; its output is the answer's body */
	int argc;
	char **argv; /* the command and its words, and a NULL: hostile text. May be permuted, as getopt does */
	int fd; /* where output is to go instead, -1: to the client. The reply's own: control_reply_take_file() writes to it */
};

/* Answers a request: at once, or later and from another thread, which takes a reference with control_reply_ref() for it. A reply that nobody
 * has a reference to, and that has not ended, is ended as failed. */
typedef void control_handler(void *context, const struct control_request *request, struct control_reply *reply);

struct control_options {
	const char *path; /* of the socket */
	int inherited_fd; /* one that listens already, which becomes the control's, and stays when it ends; -1: none */
	uid_t owner;      /* who may do all besides root; 0: nobody */
	control_handler *handler;
	void *context;
};

/* 0 or -errno with *fault filled: -EADDRINUSE another service answers there, -EEXIST something else is there. */
int control_open(struct control **ret_control, const struct control_options *options, struct fault *fault);
/* Drops all clients, takes the socket's name away (unless it was inherited or is another's by now), and closes. Replies that others still hold
 * may be written to, in vain. */
void control_free(struct control *control);

/* Readable when control_step() has something to do. */
int control_fd(const struct control *control);
/* Does what is to do now, calling the handler for each request that is whole. */
void control_step(struct control *control);
/* How many clients are connected: 0 is the time to end. */
size_t control_clients(const struct control *control);

/* Whether who asks may see and steer a process of target_uid (the owner of /proc/PID, which is root's for one that has changed its user):
 * root and the owner all, others their own. */
bool control_may(const struct control_request *request, uid_t target_uid);

/* Replies: from any thread. */
struct control_reply *control_reply_ref(struct control_reply *reply);
void control_reply_unref(struct control_reply *reply); /* NULL is fine */

/* Output. 0; -EPIPE the client is gone, or the reply has ended, and nobody will read it; -ENOBUFS it is longer than CONTROL_REPLY_BYTES_MAX
 * and was ended as failed; -ENOMEM. Nothing needs be done about any of these. */
int control_reply_write(struct control_reply *reply, const void *data, size_t bytes);
/* A line for standard error, "sampled: " before it. */
__attribute__((format(printf, 2, 3))) int control_reply_error(struct control_reply *reply, const char *text, ...);
/* The end, with the exit status (error.h). Later writes and ends do nothing. */
void control_reply_end(struct control_reply *reply, int status);
/* The output is all of this file, which is the reply's from here on, whatever is returned; the reply ends with `status` behind it. Where the
 * client passed a regular file it is written by this call, which may wait for its disk. 0 or -errno. */
int control_reply_take_file(struct control_reply *reply, int fd, int status);

/* What a reply holds in memory at most, and all of them. */
#define CONTROL_REPLY_BYTES_MAX   ((size_t)2 << 20)
#define CONTROL_REPLIES_BYTES_MAX ((size_t)16 << 20)

#endif
