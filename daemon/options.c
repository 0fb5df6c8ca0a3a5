/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/options.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/option_table.h"
#include "daemon/parse.h"
#include "daemon/push_config.h"
#include "sampler/sampler.h"

#define VISIT_BUDGET_MOST 0.5
#define RATE_DEFAULT_HZ   250 /* all ticks are visits, for 1 % of the target's time; 10 s tell 1 % to 0.4 points */

const char options_later[] = "not built yet";
const char options_dump_only[] = "values are in no profile";
const char options_dump_only_hint[] = "sampled dump PID --locals shows them";
const char options_no_pid[] = "no such option",
	   options_no_pid_hint[] = "a process is named by its number alone: sampled attach PID, sampled dump PID";

static int read_rate(void *interval_ns, const char *option, const char *text, struct fault *fault)
{
	if (parse_rate(text, interval_ns))
		return fault_set(fault, -EINVAL, "such as 1000, 2.5khz, 10k or max; at most 1000k", "%s %s: not a rate",
		                 option, text);
	return 0;
}

static int read_duration(void *duration_ns, const char *option, const char *text, struct fault *fault)
{
	if (parse_duration(text, duration_ns))
		return fault_set(fault, -EINVAL, "such as 2.5, 500ms, 10s, 5m, 1h or 1d", "%s %s: not a duration",
		                 option, text);
	return 0;
}

/* More than half would slow a program down to what nobody wants to know of it. */
static int read_visit_budget(void *share, const char *option, const char *text, struct fault *fault)
{
	double number;

	if (parse_share(text, &number) || number < 0 || number > VISIT_BUDGET_MOST)
		return fault_set(fault, -EINVAL, "such as 2%; 0% to 50%", "%s %s: not a share of a CPU", option, text);
	*(double *)share = number;
	return 0;
}

static int read_text(void *list, const char *option, const char *text, struct fault *fault)
{
	struct text_list *texts = list;

	if (texts->count == TEXT_LIST_MAX)
		return fault_set(fault, -EINVAL, "", "%s: given more than %d times", option, TEXT_LIST_MAX);
	if (*text == '\0')
		return fault_set(fault, -EINVAL, "", "%s: empty", option);
	texts->items[texts->count++] = text;
	return 0;
}

static int read_record(void *path, const char *option, const char *text, struct fault *fault)
{
	if (*text == '\0' || strcmp(text, "-") == 0)
		return fault_set(fault, -EINVAL, "it grows while sampling goes on", "%s %s: a recording is a file",
		                 option, text);
	if (*(const char **)path)
		return fault_set(fault, -EINVAL, "once only", "%s: given twice", option);
	*(const char **)path = text;
	return 0;
}

/* Pyroscope's way is what most take. */
static int check_push(struct options *o, struct fault *fault)
{
	if (!o->push && o->push_type != PUSH_TYPES)
		return fault_set(fault, -EINVAL, "--push URL", "--push-type: goes with --push");
	if (o->push_type == PUSH_TYPES)
		o->push_type = PUSH_PYROSCOPE;
	return o->push ? push_check_url(o->push, fault) : 0;
}

static int check_debuginfod(const struct options *o, struct fault *fault)
{
	if (o->debuginfod && (o->native == NATIVE_OFF || o->native == NATIVE_MARKS))
		return fault_set(fault, -EINVAL, "--native, or --native=all, leaf or extensions",
		                 "--debuginfod: goes with native frames");
	return 0;
}

int options_read(struct options *ret_options, int argc, char **argv, bool stop_early, struct fault *fault)
{
	struct options *o = ret_options;
	const struct option_row rows[] = {
		{"rate", 'r', .read = read_rate, .into = &o->interval_ns},
		{"duration", 'd', .read = read_duration, .into = &o->duration_ns},
		{"format", 'f', .read = read_text, .into = &o->formats},
		{"output", 'o', .read = read_text, .into = &o->outputs},
		{"thread", 't', .read = option_read_thread, .into = &o->threads},
		{"mode", .read = option_read_mode, .into = &o->mode},
		{"idle", .yes = &o->idle},
		{"no-idle", .no = &o->idle},
		{"gc", .yes = &o->gc},
		{"no-gc", .no = &o->gc},
		{"jitter", .yes = &o->jitter},
		{"no-jitter", .no = &o->jitter},
		{"visit-budget", .read = read_visit_budget, .into = &o->visit_budget},
		{"subprocesses", .yes = &o->subprocesses},
		{"omit", .read = option_read_pattern, .into = &o->omit},
		{"stop", .read = option_read_pattern, .into = &o->stop},
		{"stats", .yes = &o->stats},
		{"realtime", .yes = &o->realtime},
		{"svg", .yes = &o->svg},
		{"collapsed-style", .read = option_read_style, .into = &o->collapsed_style},
		{"record", .read = read_record, .into = &o->record},
		{"push", .text = &o->push},
		{"push-type", .read = option_read_push_type, .into = &o->push_type},
		{"quiet", 'q', .yes = &o->quiet},
		{"verbose", 'v', .yes = &o->verbose},
		{"native", .read = option_read_native, .into = &o->native, .optional = true},
		{"blocking", .yes = &o->blocking},
		{"opcodes", .yes = &o->opcodes},
		{"debuginfod", .yes = &o->debuginfod},
		{"async", .refused = options_later},
		{"locals", .refused = options_dump_only, .hint = options_dump_only_hint},
		{"greenlets", .refused = options_later},
		{"pid", 'p', .refused = options_no_pid, .hint = options_no_pid_hint},
		{.name = NULL},
	};
	int first;

	*o = (struct options){.interval_ns = NS_PER_S / RATE_DEFAULT_HZ,
	                      .mode = MODE_WALL,
	                      .idle = true,
	                      .gc = true,
	                      .jitter = true,
	                      .visit_budget = VISIT_BUDGET_PPM / 1e6,
	                      .push_type = PUSH_TYPES};
	first = option_table_read(rows, NULL, argc, argv, stop_early, &o->action, fault);
	if (first >= 0 && (check_push(o, fault) || check_debuginfod(o, fault)))
		first = -EINVAL;
	if (first < 0) {
		options_release(o);
		return first;
	}
	o->operands = argv + first;
	o->operand_count = argc - first;
	return 0;
}

void options_release(struct options *options)
{
	pattern_release(&options->omit);
	pattern_release(&options->stop);
}
