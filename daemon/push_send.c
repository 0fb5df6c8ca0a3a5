/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/push_send.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "daemon/error.h"
#include "daemon/push_log.h"
#include "daemon/push_setup.h"

#define PAUSE_FIRST_NS (NS_PER_S)
#define PAUSE_MAX_NS   (5 * 60 * NS_PER_S)
#define AFTER_MAX_NS   (3600 * NS_PER_S) /* however long a server asks to be left alone */

/* An item at which a server stumbles so often in a row lets others go first. */
enum { ITEM_FAILURES_MAX = 3 };

int push_sender_init(struct push_sender *ret_sender, const struct curl_library *curl, CURLM *multi,
                     struct push_queue *queue, unsigned index, uint64_t give_up_ns)
{
	*ret_sender = (struct push_sender){.to = &queue->config->destinations[index],
	                                   .curl = curl,
	                                   .multi = multi,
	                                   .queue = queue,
	                                   .index = index,
	                                   .give_up_ns = give_up_ns,
	                                   .log.name = queue->config->destinations[index].name};
	ret_sender->easy = curl->easy_init();
	return ret_sender->easy ? 0 : -ENOMEM;
}

static void drop_request(struct push_sender *s)
{
	if (s->has_request)
		push_request_release(&s->request);
	s->has_request = false;
	s->item_failures = 0;
}

static void stop_reading(struct push_sender *s)
{
	if (s->reading)
		spool_reader_close(&s->reader);
	s->reading = false;
}

void push_sender_release(struct push_sender *sender)
{
	push_log_finish(&sender->log);
	if (sender->active)
		sender->curl->multi_remove_handle(sender->multi, sender->easy);
	if (sender->easy)
		sender->curl->easy_cleanup(sender->easy);
	sender->curl->slist_free_all(sender->headers);
	push_secret_release(&sender->bearer);
	push_secret_release(&sender->password);
	drop_request(sender);
	stop_reading(sender);
}

/* --- what comes next --- */

static void give_up_file(struct push_sender *s, const struct fault *fault)
{
	push_log(&s->log, PUSH_SAY_SPOOL, "%s is left out and removed: %s", s->file, fault->why);
	push_queue_bad(s->queue, s->file);
	stop_reading(s);
}

/* Opens the oldest file and passes over what was sent of it. False: there is none, or it was bad. */
static bool open_next(struct push_sender *s)
{
	struct push_entry *entry = push_queue_oldest(s->queue, s->index);
	struct spool_read_item item;
	struct fault fault = {0};
	int err;

	if (!entry)
		return false;
	memcpy(s->file, entry->name.text, sizeof(s->file));
	err = spool_reader_open(&s->reader, s->queue->dir_fd, s->file, &fault);
	s->reading = err == 0;
	for (uint32_t i = 0; err >= 0 && i < entry->sent[s->index]; i++) {
		err = spool_reader_next(&s->reader, &item, &fault);
		if (err == 0)
			break;
	}
	if (err < 0)
		give_up_file(s, &fault);
	return err >= 0;
}

/* The profile's labels under those of the destination, of which an empty one takes the profile's away. */
static size_t join_labels(struct label *to, struct labels from, const struct push_destination *d)
{
	size_t count = 0;

	for (size_t i = 0; i < from.count; i++)
		if (!labels_value((struct labels){d->labels, d->label_count}, from.items[i].name))
			to[count++] = from.items[i];
	for (size_t i = 0; i < d->label_count; i++)
		if (d->labels[i].value[0] != '\0')
			to[count++] = d->labels[i];
	return count;
}

/* It will not be taken, ever: said, counted, and kept where somebody can look at it. */
static void refuse_item(struct push_sender *s, const char *why)
{
	struct fault fault = {0};

	s->counts.refused++;
	push_log(&s->log, PUSH_SAY_REFUSED, "a profile was refused: %s", why);
	if (push_refused_keep(&s->queue->refused, s->queue->dir_fd, s->to, &s->item, why, &fault))
		push_log(&s->log, PUSH_SAY_SPOOL, "%s", fault.why);
	push_queue_sent(s->queue, s->file, s->index);
}

static void make_request(struct push_sender *s)
{
	struct label labels[SPOOL_LABELS_MAX + PUSH_LABELS_MAX];
	struct push_profile profile = {.labels = {labels, join_labels(labels, s->item.labels, s->to)},
	                               .from_ns = s->item.from_ns,
	                               .until_ns = s->item.until_ns,
	                               .packed = s->item.packed,
	                               .packed_bytes = s->item.packed_bytes};
	struct fault fault = {0};

	if (push_request_make(&s->request, s->to->type, s->to->url, &profile, &fault) == 0)
		s->has_request = true;
	else
		refuse_item(s, fault.why);
}

/* Makes the request for the next item, whatever files have to be opened for it. */
static void find_request(struct push_sender *s)
{
	while (!s->has_request) {
		struct fault fault = {0};
		int got;

		if (!s->reading && !open_next(s)) {
			if (push_queue_has(s->queue, s->index))
				continue; /* a bad one is gone */
			return;
		}
		got = spool_reader_next(&s->reader, &s->item, &fault);
		if (got < 0) {
			give_up_file(s, &fault);
		} else if (got == 0) {
			stop_reading(s);
			push_queue_done(s->queue, s->file, s->index);
		} else {
			make_request(s);
		}
	}
}

/* --- how it went --- */

/* Between a half and the whole of it, so that a thousand hosts do not come back at once. */
static uint64_t jitter(uint64_t ns)
{
	uint64_t half = ns / 2;
	uint32_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
		random = (uint32_t)clock_now_ns();
	return half + (uint64_t)((double)half * ((double)random / UINT32_MAX));
}

static uint64_t pause_ns(struct push_sender *s)
{
	unsigned doublings = s->failures < 16 ? s->failures : 16;
	uint64_t pause = PAUSE_FIRST_NS << doublings, asked_ns;
	curl_off_t after = 0;

	pause = jitter(pause < PAUSE_MAX_NS ? pause : PAUSE_MAX_NS);
	/* Seconds, or a date that libcurl turns into such. */
	s->curl->easy_getinfo(s->easy, CURLINFO_RETRY_AFTER, &after);
	if (after <= 0)
		return pause;
	asked_ns = (uint64_t)after < AFTER_MAX_NS / NS_PER_S ? (uint64_t)after * NS_PER_S : AFTER_MAX_NS;
	return asked_ns + jitter(asked_ns / 10 + 1);
}

/* In words: what the server said, or why it could not be asked. */
static void describe(struct push_sender *s, CURLcode code, long status, char *to, size_t room)
{
	const char *redirect = NULL;

	s->curl->easy_getinfo(s->easy, CURLINFO_REDIRECT_URL, &redirect);
	if (code != CURLE_OK)
		snprintf(to, room, "%s", s->error[0] ? s->error : s->curl->easy_strerror(code));
	else if (redirect)
		snprintf(to, room, "it answered %ld, which leads to %s and is not followed", status, redirect);
	else
		snprintf(to, room, "it answered %ld%s%s", status, s->answer_kept ? ": " : "", s->answer);
}

static bool is_over(const struct push_sender *s, const struct push_verdict *verdict)
{
	/* Who waits for us is not to wait for what will not mend itself. */
	return s->give_up_ns && (verdict->needs_somebody || s->due_ns > s->first_failure_ns + s->give_up_ns);
}

/* The server may stumble over this profile alone: others go first, those of its file, too. */
static void let_others_pass(struct push_sender *s)
{
	bool is_alone = s->reader.at >= s->reader.size && push_queue_sent_items(s->queue, s->file, s->index) == 0;

	if (!is_alone && push_queue_part(s->queue, s->file, s->index, &s->item) == 0) {
		drop_request(s);
		return;
	}
	push_queue_put_aside(s->queue, s->file, s->index);
	drop_request(s);
	stop_reading(s);
}

static void retry(struct push_sender *s, const struct push_verdict *verdict, const char *why)
{
	uint64_t now_ns = clock_now_ns();

	if (s->failures == 0)
		s->first_failure_ns = now_ns;
	s->due_ns = now_ns + pause_ns(s);
	s->failures++;
	s->counts.retries++;
	s->is_failing = true;
	s->gave_up = is_over(s, verdict);
	if (s->gave_up)
		push_log(&s->log, PUSH_SAY_ALWAYS, "%s: gave up", why);
	else if (!s->is_quiet)
		push_log(&s->log, verdict->kind, "%s: trying again in %.0f s", why,
		         (double)(s->due_ns - now_ns) / (double)NS_PER_S);
	if (verdict->may_be_profiles && ++s->item_failures >= ITEM_FAILURES_MAX)
		let_others_pass(s);
}

static void done_with(struct push_sender *s)
{
	s->failures = 0;
	drop_request(s);
}

static void succeeded(struct push_sender *s)
{
	uint64_t rejected = push_answer_rejected(s->to->type, s->answer, s->answer_kept);
	char why[80];

	s->counts.bytes += s->request.body.bytes;
	s->counts.last_s = clock_read_ns(CLOCK_REALTIME) / NS_PER_S;
	if (rejected) {
		snprintf(why, sizeof(why), "it took the request, and refused %" PRIu64 " profiles in it", rejected);
		refuse_item(s, why);
	} else {
		s->counts.sent++;
		if (s->is_failing && !s->is_quiet)
			push_log(&s->log, PUSH_SAY_ALWAYS, "it takes profiles again");
		s->is_failing = false;
		push_queue_sent(s->queue, s->file, s->index);
	}
	done_with(s);
}

void push_sender_finished(struct push_sender *sender, CURLcode code)
{
	struct push_sender *s = sender;
	struct push_verdict verdict;
	char why[1024];
	long status = 0;

	s->active = false;
	s->curl->multi_remove_handle(s->multi, s->easy);
	s->curl->easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
	if (code == CURLE_WRITE_ERROR && s->answer_cut)
		code = CURLE_OK; /* it had its say */
	verdict = push_judge(code, status);
	describe(s, code, status, why, sizeof(why));
	if (verdict.outcome == PUSH_SENT) {
		succeeded(s);
	} else if (verdict.outcome == PUSH_RETRY) {
		retry(s, &verdict, why);
	} else {
		s->is_failing = true;
		refuse_item(s, why);
		done_with(s);
	}
}

uint64_t push_sender_step(struct push_sender *sender)
{
	struct push_sender *s = sender;
	struct fault fault = {0};

	if (s->active || s->gave_up)
		return UINT64_MAX;
	if (!s->has_request)
		find_request(s);
	if (!s->has_request)
		return UINT64_MAX;
	if (s->failures && clock_now_ns() < s->due_ns)
		return s->due_ns;
	if (push_setup(s, &fault)) {
		retry(s, &(struct push_verdict){.kind = PUSH_SAY_CREDENTIAL, .needs_somebody = true}, fault.why);
		return s->gave_up ? UINT64_MAX : s->due_ns;
	}
	s->active = s->curl->multi_add_handle(s->multi, s->easy) == CURLM_OK;
	return UINT64_MAX;
}

bool push_sender_is_idle(const struct push_sender *sender)
{
	return sender->gave_up ||
	       (!sender->active && !sender->has_request && !push_queue_has(sender->queue, sender->index));
}
