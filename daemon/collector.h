/* SPDX-License-Identifier: Apache-2.0 */
/* The service's consumer of the ring: a thread that feeds the history, and closes its slices at marks. Others ask the history through it,
 * under its lock. */
#ifndef SAMPLED_DAEMON_COLLECTOR_H
#define SAMPLED_DAEMON_COLLECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/history.h"
#include "sampler/ring.h"

struct collector;

/* History and ring stay the caller's and must outlive it. A mark ends the slice that is open if that is as old as slice_ns, but for a tenth.
 * 0 or -errno. */
int collector_start(struct collector **ret_collector, struct ring *ring, struct history *history, uint64_t slice_ns);
/* Waits for the thread's end: the ring was closed; the slice that is open ends then. The history may still be asked. */
void collector_join(struct collector *collector);
/* After collector_join(). NULL is fine. */
void collector_free(struct collector *collector);

/* Readable (an eventfd) when a mark has come by. */
int collector_event_fd(const struct collector *collector);
/* Sequence of the latest mark, and when the latest slice was closed (before the first, when it began to collect). Any thread. */
uint64_t collector_mark(const struct collector *collector);
uint64_t collector_closed_ns(const struct collector *collector);
void collector_set_slice(struct collector *collector, uint64_t slice_ns);

/* The history, for as long as until collector_unlock(): some milliseconds, or the ring runs full. Any thread. */
struct history *collector_lock(struct collector *collector);
void collector_unlock(struct collector *collector);

#endif
