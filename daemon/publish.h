/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that writes profiles out, so that the main thread can go on answering signals meanwhile. */
#ifndef SAMPLED_DAEMON_PUBLISH_H
#define SAMPLED_DAEMON_PUBLISH_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/aggregator.h"
#include "daemon/output.h"
#include "sampler/sampler.h"

struct publisher;

/* Sampler, aggregator and outputs stay the caller's and must outlive the publisher. 0 or -errno. */
int publisher_new(struct publisher **ret_publisher, struct sampler *sampler, struct aggregator *aggregator,
                  struct outputs *outputs);
/* After publisher_finish() only: waits for the thread. */
void publisher_free(struct publisher *publisher);

/* Hands over a snapshot, which the publisher then owns; NULL: there was no memory for it. Any thread; returns at once. Fits aggregator_start()'s
 * on_mark, with the publisher as its context. */
void publisher_snapshot(void *publisher, uint64_t sequence, struct profile *profile);
/* Stops the sampler, lets the aggregator take in all that it saw, writes snapshots that are still due, then the
 * final profile. Returns at once. */
void publisher_finish(struct publisher *publisher);

/* A descriptor that becomes readable when something was written (an eventfd). */
int publisher_event_fd(const struct publisher *publisher);
/* How many snapshots were dealt with so far. Any thread. */
uint64_t publisher_snapshots(struct publisher *publisher);
/* The final profile, once it is written (else NULL); *ret_err: the first error of all writing. Stays the
 * publisher's. */
const struct profile *publisher_final(struct publisher *publisher, int *ret_err);
/* It has ended: with a final profile, or, without memory for one, with none. */
bool publisher_ended(struct publisher *publisher);

#endif
