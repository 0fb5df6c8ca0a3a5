/* SPDX-License-Identifier: Apache-2.0 */
/* How soon the kernel lets a thread in when it wakes up. */
#ifndef SAMPLED_SAMPLER_TURNS_H
#define SAMPLED_SAMPLER_TURNS_H

#include <stdbool.h>

/* For the calling thread: exact sleeps, and, without real-time priority, short turns (EEVDF, Linux 6.12+; no privilege). Who has shorter ones than
 * what runs is let in at once. Else, on one CPU with a target that works a little and sleeps, a tick waits until the target sleeps, and sees that.
 * Earlier kernels take no notice. False: it is not let in at once. */
bool turns_begin(bool realtime);

#endif
