/* SPDX-License-Identifier: Apache-2.0 */
/* GET /metrics over TCP, by libmicrohttpd, loaded where it is asked for. Driven by the caller's event loop: no thread. */
#ifndef SAMPLED_DAEMON_PUSH_HTTP_H
#define SAMPLED_DAEMON_PUSH_HTTP_H

#include <stdint.h>

#include "base/fault.h"
#include "daemon/push_metrics.h"

struct push_http;

/* listen: "ADDRESS:PORT", "[ADDRESS]:PORT". metrics stays the caller's and must outlive it. 0 or -errno with *fault filled. */
int push_http_new(struct push_http **ret_http, const char *listen, const struct push_metrics *metrics,
                  struct fault *fault);
void push_http_free(struct push_http *http);

/* Becomes readable when push_http_step() has something to do. */
int push_http_fd(const struct push_http *http);
/* Answers what there is. Returns when to be called again (CLOCK_MONOTONIC); UINT64_MAX: when the descriptor is readable. */
uint64_t push_http_step(struct push_http *http);

#endif
