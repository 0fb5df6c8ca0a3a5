/* SPDX-License-Identifier: Apache-2.0 */
/* One destination: which item it is at, the request that is under way, and what becomes of it. Destinations do not wait for one another: each has one
 * request at a time, in libcurl's multi interface, and its own pauses. One thread. */
#ifndef SAMPLED_DAEMON_PUSH_SEND_H
#define SAMPLED_DAEMON_PUSH_SEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/push_answer.h"
#include "daemon/push_config.h"
#include "daemon/push_log.h"
#include "daemon/push_queue.h"
#include "daemon/push_secret.h"
#include "daemon/spool_read.h"
#include "exporters/curl_library.h"
#include "exporters/push_request.h"

enum { PUSH_ANSWER_KEPT = 512 }; /* bytes of an answer, for messages */

struct push_counts {
	uint64_t sent, refused; /* items */
	uint64_t retries;       /* requests that are to be made again */
	uint64_t bytes;         /* of bodies that were taken */
	uint64_t last_s;        /* of the last success: CLOCK_REALTIME; 0: none yet */
};

struct push_sender {
	const struct push_destination *to;
	const struct curl_library *curl;
	struct push_queue *queue; /* not owned */
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers;
	struct push_secret bearer, password;
	unsigned index; /* in the configuration */
	/* Where it is. */
	bool reading; /* file is open in reader */
	char file[SPOOL_NAME_ROOM];
	struct spool_reader reader;
	struct spool_read_item item; /* that is to be sent now, while has_request */
	bool has_request;
	struct push_request request;
	bool active; /* it is under way */
	/* The answer. */
	char answer[PUSH_ANSWER_KEPT + 1];
	size_t answer_bytes, answer_kept;
	bool answer_cut; /* it was longer than anybody reads */
	char error[CURL_ERROR_SIZE];
	/* When it goes wrong. */
	unsigned failures;         /* in a row, whatever was sent */
	unsigned item_failures;    /* of this item, which it may be that the server stumbles over */
	uint64_t first_failure_ns; /* of those in a row */
	uint64_t due_ns;           /* not before */
	uint64_t give_up_ns;       /* how long it is tried; 0: for ever */
	bool gave_up;              /* no more is tried */
	struct push_log log;
	bool is_quiet;   /* only what is final is said */
	bool is_failing; /* … so that its end is said, too */
	struct push_counts counts;
};

/* 0 or -ENOMEM. */
int push_sender_init(struct push_sender *ret_sender, const struct curl_library *curl, CURLM *multi,
                     struct push_queue *queue, unsigned index, uint64_t give_up_ns);
void push_sender_release(struct push_sender *sender);

/* Starts a request where there is something to send and it is time. Returns when to be called again (CLOCK_MONOTONIC); UINT64_MAX: when
 * something has happened. */
uint64_t push_sender_step(struct push_sender *sender);
/* Its request has ended. */
void push_sender_finished(struct push_sender *sender, CURLcode code);
/* Nothing is left that could be sent. */
bool push_sender_is_idle(const struct push_sender *sender);

#endif
