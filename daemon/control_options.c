/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/moment.h"
#include "daemon/output.h"
#include "daemon/parse.h"

static int read_rule(void *request, const char *option, const char *text, struct fault *fault)
{
	struct dump_request *r = request;

	if (*text == '\0' || strlen(text) >= sizeof(r->rule))
		return fault_set(fault, -EINVAL, "a section [rule NAME] of the configuration", "%s: no such rule",
		                 option);
	snprintf(r->rule, sizeof(r->rule), "%s", text);
	return 0;
}

static int read_last(void *request, const char *option, const char *text, struct fault *fault)
{
	struct dump_request *r = request;

	if (parse_duration(text, &r->last_ns))
		return fault_set(fault, -EINVAL, "such as 90s, 5m, 1h", "%s %.64s: not a length of time", option, text);
	return 0;
}

static int read_moment(uint64_t *ret_ns, const struct dump_request *r, const char *option, const char *text,
                       struct fault *fault)
{
	if (moment_parse(text, r->now_ns, ret_ns) || *ret_ns == 0)
		return fault_set(fault, -EINVAL, "such as \"2026-11-22 05:20\", 05:20:30, -5m, 2026-11-22T05:20Z, now",
		                 "%s %.64s: not a point in time", option, text);
	return 0;
}

static int read_from(void *request, const char *option, const char *text, struct fault *fault)
{
	struct dump_request *r = request;

	return read_moment(&r->from_ns, r, option, text, fault);
}

static int read_to(void *request, const char *option, const char *text, struct fault *fault)
{
	struct dump_request *r = request;

	return read_moment(&r->to_ns, r, option, text, fault);
}

static int read_format(void *request, const char *option, const char *text, struct fault *fault)
{
	struct dump_request *r = request;

	(void)option;
	return output_choose_format(text, NULL, &r->format, fault);
}

void dump_request_rows(struct dump_request *request, struct option_row rows[DUMP_ROWS])
{
	const struct option_row all[DUMP_ROWS] = {
		{"rule", .read = read_rule, .into = request},
		{"all", .yes = &request->all},
		{"merge", .yes = &request->merge},
		{"last", .read = read_last, .into = request},
		{"from", .read = read_from, .into = request},
		{"to", .read = read_to, .into = request},
		{"format", 'f', .read = read_format, .into = request},
		{.name = NULL},
	};

	memcpy(rows, all, sizeof(all));
}

int dump_request_finish(struct dump_request *request, char *const *operands, int count, struct fault *fault)
{
	if (count > 1)
		return fault_set(fault, -EINVAL, "--rule NAME or --all for several", "dump: one process at a time");
	if (count == 1 && parse_pid(operands[0], &request->pid))
		return fault_set(fault, -EINVAL, "a process is named by its number", "%.64s: not a process id",
		                 operands[0]);
	if ((request->pid != 0) + (request->rule[0] != '\0') + request->all > 1)
		return fault_set(fault, -EINVAL, "", "dump: a PID, --rule and --all: one of them");
	if (request->last_ns && (request->from_ns || request->to_ns))
		return fault_set(fault, -EINVAL, "", "dump: --last or --from and --to, not both");
	if (request->to_ns && request->from_ns >= request->to_ns)
		return fault_set(fault, -EINVAL, "", "dump: nothing lies between --from and --to");
	if (request->format &&
	    (request->format->needs == NEEDS_RUNS || strcmp(request->format->name, "recording") == 0))
		return fault_set(fault, -EINVAL, "sampled attach --record FILE keeps each sample's time",
		                 "-f %s: the service keeps no order of time within a slice", request->format->name);
	return 0;
}

int dump_request_parse(struct dump_request *ret_request, int argc, char **argv, uint64_t now_ns, struct fault *fault)
{
	struct dump_request request = {.now_ns = now_ns};
	struct option_row rows[DUMP_ROWS];
	enum option_action action;
	int first, err;

	dump_request_rows(&request, rows);
	first = option_table_read(rows, NULL, argc, argv, false, &action, fault);
	if (first < 0)
		return first;
	if (action != OPTIONS_GO)
		return fault_set(fault, -EINVAL, "", "dump: not a request");
	err = dump_request_finish(&request, argv + first, argc - first, fault);
	if (!err && !request.format)
		err = output_choose_format("flamegraph", NULL, &request.format, fault);
	if (!err)
		*ret_request = request;
	return err;
}

static void add_word(struct buf *to, const char *word)
{
	buf_add(to, word, strlen(word) + 1);
}

static void add_seconds(struct buf *to, const char *option, const char *mark, uint64_t ns)
{
	char text[64];

	if (ns == 0)
		return;
	add_word(to, option);
	snprintf(text, sizeof(text), "%s%" PRIu64 ".%09" PRIu64, mark, ns / NS_PER_S, ns % NS_PER_S);
	add_word(to, text);
}

void dump_request_words(const struct dump_request *request, struct buf *to)
{
	char pid[16];

	add_word(to, "dump");
	if (request->pid) {
		snprintf(pid, sizeof(pid), "%d", (int)request->pid);
		add_word(to, pid);
	}
	if (request->rule[0]) {
		add_word(to, "--rule");
		add_word(to, request->rule);
	}
	if (request->all)
		add_word(to, "--all");
	if (request->merge)
		add_word(to, "--merge");
	add_seconds(to, "--last", "", request->last_ns);
	add_seconds(to, "--from", "@", request->from_ns);
	add_seconds(to, "--to", "@", request->to_ns);
	if (request->format) {
		add_word(to, "--format");
		add_word(to, request->format->name);
	}
}
