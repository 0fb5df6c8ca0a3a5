/* SPDX-License-Identifier: Apache-2.0 */
/* What the service says while it runs: lines on standard error, which the journal takes, bounded in number. Main thread, and the writer's. */
#ifndef SAMPLED_DAEMON_SERVICE_LOG_H
#define SAMPLED_DAEMON_SERVICE_LOG_H

#include <stdint.h>

/* "sampled: TEXT". Of each kind, which its text is: of more than 20 at once and one a second from then on, the rest is counted, and said to have been,
 * with the next one. */
__attribute__((format(printf, 1, 2))) void service_log(const char *text, ...);
/* Of each kind the latest line that was not printed, and how many there were. At the end. */
void service_log_finish(void);
/* Lines that were not printed. */
uint64_t service_log_suppressed(void);

#endif
