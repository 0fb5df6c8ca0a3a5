/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/service_log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/clock.h"
#include "daemon/error.h"

enum { BURST = 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static uint64_t tokens_ns = BURST * NS_PER_S;              /* a line costs a second */
static uint64_t filled_ns, suppressed, told;

/* Whether a line may be printed; how many were not, since one was. */
static bool take_token(uint64_t *ret_missed)
{
	uint64_t now_ns;
	bool may;

	pthread_mutex_lock(&lock);
	now_ns = clock_now_ns(); /* not before what filled_ns is */
	tokens_ns += filled_ns ? now_ns - filled_ns : 0;
	if (tokens_ns > BURST * NS_PER_S)
		tokens_ns = BURST * NS_PER_S;
	filled_ns = now_ns;
	may = tokens_ns >= NS_PER_S;
	*ret_missed = suppressed - told;
	if (may) {
		tokens_ns -= NS_PER_S;
		told = suppressed;
	} else {
		suppressed++;
	}
	pthread_mutex_unlock(&lock);
	return may;
}

void service_log(const char *text, ...)
{
	char line[1024];
	uint64_t missed;
	va_list args;

	if (!take_token(&missed))
		return;
	va_start(args, text);
	vsnprintf(line, sizeof(line), text, args);
	va_end(args);
	if (missed)
		error_note("%llu lines were left out, there were too many", (unsigned long long)missed);
	error_note("%s", line);
}

uint64_t service_log_suppressed(void)
{
	uint64_t count;

	pthread_mutex_lock(&lock);
	count = suppressed;
	pthread_mutex_unlock(&lock);
	return count;
}
