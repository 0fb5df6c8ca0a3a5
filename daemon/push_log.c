/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/push_log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/secrets.h"
#include "daemon/error.h"
#include "daemon/push_send.h"

#define SILENCE_NS (60 * NS_PER_S)

/* error_note() makes what a server said safe for a terminal. */
static void say(struct push_sender *s, const char *text, va_list args)
{
	char line[1536], unsaid[64] = "";

	vsnprintf(line, sizeof(line), text, args);
	if (s->unsaid)
		snprintf(unsaid, sizeof(unsaid), " (and %" PRIu64 " more of the like)", s->unsaid);
	error_note("push to %s: %s%s", s->to->name, line, unsaid);
	s->said_ns = clock_now_ns();
	s->unsaid = 0;
}

void push_log(struct push_sender *sender, const char *text, ...)
{
	va_list args;

	if (sender->said_ns && clock_now_ns() - sender->said_ns < SILENCE_NS) {
		sender->unsaid++;
		return;
	}
	va_start(args, text);
	say(sender, text, args);
	va_end(args);
}

void push_log_always(struct push_sender *sender, const char *text, ...)
{
	va_list args;

	va_start(args, text);
	say(sender, text, args);
	va_end(args);
}
