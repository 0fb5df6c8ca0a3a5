/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/push_log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/secrets.h"
#include "daemon/error.h"

#define SILENCE_NS (60 * NS_PER_S)

/* error_note() makes what a server said safe for a terminal. */
static void say(struct push_log *log, enum push_kind kind, const char *line)
{
	uint64_t unsaid = log->kinds[kind].unsaid;
	struct buf masked = {0};
	char more[64] = "";

	secrets_mask(&masked, line, strlen(line));
	if (unsaid)
		snprintf(more, sizeof(more), " (and %" PRIu64 " more of the like)", unsaid);
	error_note("push%s%s: %s%s", log->name ? " to " : "", log->name ? log->name : "", buf_text(&masked), more);
	buf_release(&masked);
	log->kinds[kind].said_ns = clock_now_ns();
	log->kinds[kind].unsaid = 0;
}

void push_log(struct push_log *log, enum push_kind kind, const char *text, ...)
{
	uint64_t said_ns = log->kinds[kind].said_ns;
	char line[1536];
	va_list args;

	va_start(args, text);
	vsnprintf(line, sizeof(line), text, args);
	va_end(args);
	if (kind == PUSH_SAY_ALWAYS || !said_ns || clock_now_ns() - said_ns >= SILENCE_NS) {
		say(log, kind, line);
		return;
	}
	snprintf(log->kinds[kind].latest, PUSH_SAID_BYTES, "%.*s", PUSH_SAID_BYTES - 1, line);
	log->kinds[kind].unsaid++;
}

void push_log_finish(struct push_log *log)
{
	for (int kind = 0; kind < PUSH_KINDS; kind++) {
		if (log->kinds[kind].unsaid == 0)
			continue;
		log->kinds[kind].unsaid--;
		say(log, (enum push_kind)kind, log->kinds[kind].latest);
	}
}
