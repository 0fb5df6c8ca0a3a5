/* SPDX-License-Identifier: Apache-2.0 */
/* A control socket that tests ask things of: both ends are in one process, and the server is stepped by hand. Its handler knows the commands echo,
 * metrics, refuse, file BYTES, later (which keeps the reply), flood, and gives any other up. */
#ifndef SAMPLED_TESTS_UNIT_SERVED_H
#define SAMPLED_TESTS_UNIT_SERVED_H

#include "daemon/control.h"

extern char served_folder[]; /* where it is; empty but for it, and empty when it stops */
extern char path[64];        /* of the socket */
extern struct control *control;
extern struct control_reply *kept; /* by "later" */
/* What the handler saw: how many requests, and of the latest. */
extern uint64_t requests;
extern uid_t seen_uid;
extern bool seen_may_all;
extern int seen_fd;

struct reply {
	char output[1 << 17];
	size_t bytes;
	char errors[512];
	int status;    /* -1: no end came */
	bool is_whole; /* the connection ended behind it */
};

void served_start(void);
void served_stop(void);

struct control_options options_of(const char *of);
/* A file without a name that holds so many bytes, each unlike its neighbours; whether these are such. */
int make_file(size_t bytes);
bool is_of_file(const char *data, size_t bytes);

/* Steps until there is nothing to do. */
void settle(void);
int connect_client(void);
/* A request as it is sent, of words divided by blanks; its bytes. */
size_t pack(char *to, const char *words);
void send_words(int fd, const char *words);
void send_words_with(int fd, const char *words, const int *fds, size_t count);
/* All that comes, with the server stepped whenever nothing does. Valid until the next. */
const struct reply *read_reply(int fd);
/* Asks by a connection of its own. */
const struct reply *ask(const char *words);
void expect_reply(const struct reply *reply, const char *output, const char *errors, int status);

#endif
