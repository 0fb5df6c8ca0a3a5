/* SPDX-License-Identifier: Apache-2.0 */
/* A destination's request, as libcurl is told of it. */
#ifndef SAMPLED_DAEMON_PUSH_SETUP_H
#define SAMPLED_DAEMON_PUSH_SETUP_H

#include "base/fault.h"

struct push_sender;

/* sender->request into sender->easy. 0, or -errno with *fault filled: a credential that cannot be read. */
int push_setup(struct push_sender *sender, struct fault *fault);

#endif
