/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the service manager how we are (sd_notify(3), "Standalone implementations"). */
#ifndef SAMPLED_DAEMON_NOTIFY_H
#define SAMPLED_DAEMON_NOTIFY_H

#include <stdint.h>

/* Lines of VARIABLE=VALUE, such as "READY=1\nSTATUS=…". Nothing happens where no service manager asked for it ($NOTIFY_SOCKET). Any thread.
 * 0 or -errno. */
int notify_send(const char *state);
/* How often it wants to hear WATCHDOG=1, in nanoseconds; 0: never, or not from us. */
uint64_t notify_watchdog_ns(void);

#endif
