/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a destination: a line a minute at most, for a server may be down for a day. */
#ifndef SAMPLED_DAEMON_PUSH_LOG_H
#define SAMPLED_DAEMON_PUSH_LOG_H

struct push_sender;

/* "sampled: push to NAME: TEXT", where nothing was said in the last minute; with how much was not. */
__attribute__((format(printf, 2, 3))) void push_log(struct push_sender *sender, const char *text, ...);
/* In any case. */
__attribute__((format(printf, 2, 3))) void push_log_always(struct push_sender *sender, const char *text, ...);

#endif
