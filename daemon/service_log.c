/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/service_log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/clock.h"
#include "daemon/error.h"

enum { BURST = 20, KINDS_MAX = 48, LATEST_BYTES = 256 };

/* Lines of one kind, which its text tells: the place in the program where it is said. */
struct kind {
	const char *text;   /* NULL: it is free */
	uint64_t tokens_ns; /* a line costs a second */
	uint64_t filled_ns;
	uint64_t unsaid;           /* since a line was printed */
	char latest[LATEST_BYTES]; /* of these */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static struct kind kinds[KINDS_MAX];                     /* the last is of all that find no other */
static uint64_t suppressed;

static struct kind *find(const char *text)
{
	struct kind *kind = kinds;

	while (kind < kinds + KINDS_MAX - 1 && kind->text && kind->text != text)
		kind++;
	if (!kind->text)
		*kind = (struct kind){.text = text, .tokens_ns = BURST * NS_PER_S, .filled_ns = clock_now_ns()};
	return kind;
}

/* Whether the line may be printed; how many of its kind were not, since one was. */
static bool take_token(const char *text, const char *line, uint64_t *ret_unsaid)
{
	struct kind *kind;
	uint64_t now_ns;
	bool may;

	pthread_mutex_lock(&lock);
	kind = find(text);
	now_ns = clock_now_ns(); /* not before what filled_ns is */
	kind->tokens_ns += now_ns - kind->filled_ns;
	if (kind->tokens_ns > BURST * NS_PER_S)
		kind->tokens_ns = BURST * NS_PER_S;
	kind->filled_ns = now_ns;
	may = kind->tokens_ns >= NS_PER_S;
	*ret_unsaid = kind->unsaid;
	if (may) {
		kind->tokens_ns -= NS_PER_S;
		kind->unsaid = 0;
	} else {
		snprintf(kind->latest, sizeof(kind->latest), "%.*s", LATEST_BYTES - 1, line);
		kind->unsaid++;
		suppressed++;
	}
	pthread_mutex_unlock(&lock);
	return may;
}

static void say(const char *line, uint64_t more)
{
	if (more)
		error_note("%s (and %llu more of the like)", line, (unsigned long long)more);
	else
		error_note("%s", line);
}

void service_log(const char *text, ...)
{
	uint64_t unsaid;
	char line[1024];
	va_list args;

	va_start(args, text);
	vsnprintf(line, sizeof(line), text, args);
	va_end(args);
	if (take_token(text, line, &unsaid))
		say(line, unsaid);
}

void service_log_finish(void)
{
	pthread_mutex_lock(&lock);
	for (struct kind *kind = kinds; kind < kinds + KINDS_MAX; kind++) {
		if (kind->unsaid)
			say(kind->latest, kind->unsaid - 1);
		kind->unsaid = 0;
	}
	pthread_mutex_unlock(&lock);
}

uint64_t service_log_suppressed(void)
{
	uint64_t count;

	pthread_mutex_lock(&lock);
	count = suppressed;
	pthread_mutex_unlock(&lock);
	return count;
}
