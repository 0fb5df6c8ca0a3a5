/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/filters.h"

#include <errno.h>
#include <string.h>

#include "daemon/parse.h"

static int read_time(void *ret_ns, const char *option, const char *text, struct fault *fault)
{
	if (parse_time(text, ret_ns))
		return fault_set(fault, -EINVAL, "seconds from the profile's start, such as 2.5, 500ms, 10s or 5m",
		                 "%s %s: not a time", option, text);
	return 0;
}

void filters_rows(struct filters *f, struct option_row ret_rows[FILTER_ROWS])
{
	const struct option_row rows[FILTER_ROWS] = {
		{"thread", .read = option_read_thread, .into = &f->threads},
		{"from", .read = read_time, .into = &f->from_ns},
		{"to", .read = read_time, .into = &f->to_ns},
		{"mode", .read = option_read_mode, .into = &f->mode},
		{"idle", .no = &f->no_idle},
		{"no-idle", .yes = &f->no_idle},
		{"function-level", .yes = &f->how.by_function},
		{"line-level", .no = &f->how.by_function},
		{"strip-dirs", .yes = &f->how.strip_dirs},
		{"focus", .read = option_read_pattern, .into = &f->focus},
		{"ignore", .read = option_read_pattern, .into = &f->ignore},
		{"omit", .read = option_read_pattern, .into = &f->omit},
		{"stop", .read = option_read_pattern, .into = &f->stop},
		{"value", .text = &f->value},
		{"min-percent", .read = option_read_percent, .into = &f->how.min_percent},
		{.name = NULL},
	};

	memcpy(ret_rows, rows, sizeof(rows));
}

int filters_finish(struct filters *f, struct fault *fault)
{
	if (f->to_ns && f->to_ns <= f->from_ns)
		return fault_set(fault, -EINVAL, "--to must be later than --from",
		                 "--from and --to: nothing lies between them");
	f->how.threads = f->threads.items;
	f->how.thread_count = f->threads.count;
	f->how.focus = pattern_regex(&f->focus);
	f->how.ignore = pattern_regex(&f->ignore);
	f->how.omit = pattern_regex(&f->omit);
	f->how.stop = pattern_regex(&f->stop);
	return 0;
}

void filters_release(struct filters *f)
{
	pattern_release(&f->focus);
	pattern_release(&f->ignore);
	pattern_release(&f->omit);
	pattern_release(&f->stop);
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
	return selects(&f->how) || f->from_ns || f->to_ns || filters_need_states(f);
}

bool filters_need_states(const struct filters *f)
{
	return f->mode != MODE_WALL || f->no_idle;
}
