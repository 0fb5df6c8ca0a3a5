/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with units from the command line. Pure functions; 0, or -EINVAL when the text is not what it should be. */
#ifndef SAMPLED_DAEMON_PARSE_H
#define SAMPLED_DAEMON_PARSE_H

#include <stdint.h>
#include <sys/types.h>

/* "1000", "1khz", "2.5khz", "10k", "max": the time between ticks; 0 stands for max, which is unthrottled. From
 * 0.001 Hz to 1 MHz. */
int parse_rate(const char *text, uint64_t *ret_interval_ns);
/* "2.5", "10s", "5m", "1h", "30d", "500ms"; above 0, at most ten years. */
int parse_duration(const char *text, uint64_t *ret_ns);
/* The same, or 0: a point in time, from a start. */
int parse_time(const char *text, uint64_t *ret_ns);
/* "4096", "500K", "64M", "1.5G", "2T", also with B or iB behind: powers of 1024. */
int parse_bytes(const char *text, uint64_t *ret_bytes);
/* "80%", "0.5%": a share, 1 for 100 %. */
int parse_share(const char *text, double *ret_share);
/* A decimal process id above 0. */
int parse_pid(const char *text, pid_t *ret_pid);
/* A decimal number. */
int parse_u64(const char *text, uint64_t *ret_value);

#endif
