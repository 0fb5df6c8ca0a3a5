/* SPDX-License-Identifier: Apache-2.0 */
/* The client's side of the control socket: one request and its reply. */
#ifndef SAMPLED_DAEMON_CTL_TALK_H
#define SAMPLED_DAEMON_CTL_TALK_H

#include <stddef.h>

#include "exporters/writer.h"

/* Sends these words (each ended by a NUL) to the service at path, with pass_fd (-1: none), and puts the output that comes into `to`, whose errors stick in
 * it. Lines for standard error are printed, and so is what goes wrong: nobody answers, or the reply is cut short. Returns the exit status. */
int ctl_talk(const char *path, const char *words, size_t bytes, int pass_fd, struct writer *to);

#endif
