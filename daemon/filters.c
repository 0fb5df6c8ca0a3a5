/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/filters.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "daemon/parse.h"

static int take_regex(regex_t *regex, const regex_t **used, const char *option, const char *text, struct fault *fault)
{
	char why[128];
	int err;

	if (*used)
		regfree(regex);
	*used = NULL;
	err = regcomp(regex, text, REG_EXTENDED | REG_NOSUB);
	if (err) {
		regerror(err, regex, why, sizeof(why));
		return fault_set(fault, -EINVAL, why, "--%s %s: not a regular expression", option, text);
	}
	*used = regex;
	return 0;
}

static int take_thread(struct filters *f, const char *text, struct fault *fault)
{
	struct thread_filter *filter = &f->threads[f->how.thread_count];

	if (f->how.thread_count == FILTER_THREADS_MAX)
		return fault_set(fault, -EINVAL, "", "--thread: given more than %d times", FILTER_THREADS_MAX);
	if (*text == '\0')
		return fault_set(fault, -EINVAL, "a thread's name or number", "--thread: empty");
	*filter = (struct thread_filter){.name = text};
	if (parse_u64(text, &filter->tid) == 0)
		filter->name = NULL;
	f->how.threads = f->threads;
	f->how.thread_count++;
	return 0;
}

/* 0 as a point in time is allowed, unlike as a duration. */
static int take_time(uint64_t *ret_ns, const char *option, const char *text, struct fault *fault)
{
	char *end;

	if (strtod(text, &end) == 0 && end != text) {
		*ret_ns = 0;
		return 0;
	}
	if (parse_duration(text, ret_ns))
		return fault_set(fault, -EINVAL, "seconds from the profile's start, such as 2.5, 500ms, 10s or 5m",
		                 "--%s %s: not a time", option, text);
	return 0;
}

int filters_take(struct filters *f, int option, const char *text, struct fault *fault)
{
	char *end;

	switch (option) {
	case FILTER_THREAD:
		return take_thread(f, text, fault);
	case FILTER_FROM:
		return take_time(&f->from_ns, "from", text, fault);
	case FILTER_TO:
		return take_time(&f->to_ns, "to", text, fault);
	case FILTER_FUNCTION_LEVEL:
	case FILTER_LINE_LEVEL:
		f->how.by_function = option == FILTER_FUNCTION_LEVEL;
		return 0;
	case FILTER_STRIP_DIRS:
		f->how.strip_dirs = true;
		return 0;
	case FILTER_FOCUS:
		return take_regex(&f->focus, &f->how.focus, "focus", text, fault);
	case FILTER_IGNORE:
		return take_regex(&f->ignore, &f->how.ignore, "ignore", text, fault);
	case FILTER_OMIT:
		return take_regex(&f->omit, &f->how.omit, "omit", text, fault);
	case FILTER_STOP:
		return take_regex(&f->stop, &f->how.stop, "stop", text, fault);
	case FILTER_MIN_PERCENT:
		f->how.min_percent = strtod(text, &end);
		if (end == text || *end != '\0' || !isfinite(f->how.min_percent) || f->how.min_percent < 0 ||
		    f->how.min_percent > 100)
			return fault_set(fault, -EINVAL, "0 to 100", "--min-percent %s: not a percentage", text);
		return 0;
	default:
		return -ENOENT;
	}
}

int filters_check(const struct filters *f, struct fault *fault)
{
	if (f->to_ns && f->to_ns <= f->from_ns)
		return fault_set(fault, -EINVAL, "--to must be later than --from",
		                 "--from and --to: nothing lies between them");
	return 0;
}

void filters_release(struct filters *f)
{
	if (f->how.focus)
		regfree(&f->focus);
	if (f->how.ignore)
		regfree(&f->ignore);
	if (f->how.omit)
		regfree(&f->omit);
	if (f->how.stop)
		regfree(&f->stop);
	f->how = (struct transform){0};
}

static bool selects(const struct transform *how)
{
	return how->thread_count || how->focus || how->ignore || how->omit || how->stop || how->min_percent > 0;
}

bool filters_fold(const struct filters *f)
{
	return selects(&f->how) || f->how.by_function || f->how.strip_dirs;
}

bool filters_need_profile(const struct filters *f)
{
	return selects(&f->how) || f->from_ns || f->to_ns;
}
