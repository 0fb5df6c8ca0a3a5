/* SPDX-License-Identifier: Apache-2.0 */
/* sampled dump PID, sampled dump --core FILE */
#include "daemon/dump.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/commands.h"
#include "daemon/error.h"
#include "daemon/help.h"
#include "daemon/opening.h"
#include "daemon/option_table.h"
#include "daemon/option_values.h"
#include "daemon/options.h"
#include "daemon/parse.h"
#include "daemon/result.h"
#include "daemon/signals.h"
#include "daemon/terminal.h"

#define PATIENCE_NS (2 * NS_PER_S)

static const char usage[] =
	"sampled dump PID [--json] [--native] [--blocking], or dump --core FILE [--exe FILE] [--json] [--native]";

struct files {
	const char *paths[DUMP_FILES_MAX];
	size_t count;
};

struct request {
	pid_t pid;        /* unless there is */
	const char *core; /* a core file */
	struct files files;
	bool json;
	struct sampler_options sampling;
};

struct printing {
	const struct dump *dump;
	const struct dump_origin *origin;
	bool json;
};

static int print(const void *of, struct writer *to, struct fault *fault)
{
	const struct printing *p = of;

	(void)fault;
	if (p->json)
		dump_print_json(p->dump, p->origin, to);
	else
		dump_print_text(p->dump, p->origin, terminal_color(STDOUT_FILENO), to);
	return 0;
}

/* Threads without a stack are in the output, and counted here: nothing is missing silently. */
static enum exit_status check_whole(const struct dump *dump)
{
	uint32_t missing = 0;

	for (uint32_t i = 0; i < dump->thread_count; i++)
		missing += !dump->threads[i].sampled;
	if (dump->left_out)
		error_note("%u records made no sense and were left out", dump->left_out);
	if (dump->thread_count == 0)
		error_note("no Python thread was found");
	else if (missing)
		error_note("%u of %u threads could not be read whole", missing, dump->thread_count);
	return dump->thread_count == 0 || missing == dump->thread_count ? EXIT_FAILED : EXIT_DONE;
}

enum exit_status dump_target(struct target *target, const struct sampler_options *sampling, struct dump_origin *origin,
                             bool json, const char *subject)
{
	struct dump dump;
	enum exit_status whole;
	int status, err;

	signals_hold_stops(true);
	err = dump_take(&dump, target, sampling, origin->naming);
	signals_hold_stops(false);
	if (err) {
		error_note("cannot read %s: %s", subject, err == -ESRCH ? "it has ended" : strerror(-err));
		return error_status(err);
	}
	if (dump_name(&dump, origin->naming)) {
		error_note("cannot read %s: out of memory", subject);
		dump_release(&dump);
		return EXIT_FAILED;
	}
	origin->proc = target_proc(target);
	status = result_write(NULL, print, &(struct printing){.dump = &dump, .origin = origin, .json = json});
	whole = check_whole(&dump);
	dump_release(&dump);
	return status == EXIT_DONE ? whole : EXIT_FAILED;
}

static enum exit_status dump_process(const struct request *request)
{
	struct target *target;
	struct fault fault;
	struct dump_origin origin = {0};
	enum exit_status status;
	char subject[32];
	int err = sampler_stops(&request->sampling) ? opening_check_stops(request->pid, &fault) : 0;

	snprintf(subject, sizeof(subject), "process %d", (int)request->pid);
	if (!err) {
		origin.naming = naming_new(request->sampling.native, false);
		naming_set_pid(origin.naming, request->pid);
		err = opening_wait(&target, request->pid, PATIENCE_NS, &fault);
	}
	if (err) {
		naming_free(origin.naming);
		error_fault(&fault, "cannot read %s", subject);
		return error_status(err);
	}
	status = dump_target(target, &request->sampling, &origin, request->json, subject);
	naming_free(origin.naming);
	target_free(target);
	return status;
}

static int read_file(void *into, const char *option, const char *text, struct fault *fault)
{
	struct files *files = into;

	if (files->count == DUMP_FILES_MAX)
		return fault_set(fault, -EINVAL, usage, "%s %s: too many files", option, text);
	files->paths[files->count++] = text;
	return 0;
}

/* What goes with a core, and what with a process. 0 or -EINVAL with *fault filled. */
static int check_core(const struct request *request, int operands, struct fault *fault)
{
	if (!request->core)
		return request->files.count ? fault_set(fault, -EINVAL, usage, "--exe: goes with --core") : 0;
	if (operands)
		return fault_set(fault, -EINVAL, usage, "--core %s: a core or a process, not both", request->core);
	if (request->sampling.blocking)
		return fault_set(fault, -EINVAL, usage, "--core %s: its threads stand, --blocking is for a process",
		                 request->core);
	return 0;
}

static int read_operand(int argc, char **argv, int first, pid_t *ret_pid, struct fault *fault)
{
	if (argc == first)
		return fault_set(fault, -EINVAL, usage, "dump: no process named");
	if (argc > first + 1)
		return fault_set(fault, -EINVAL, usage, "%s: one process at a time", argv[first + 1]);
	if (parse_pid(argv[first], ret_pid))
		return fault_set(fault, -EINVAL, "a process is named by its number", "%s: not a process id",
		                 argv[first]);
	return 0;
}

int dump_main(int argc, char **argv)
{
	struct request request = {.sampling = {.gc = true, .exceptions = true}};
	enum option_action action;
	struct fault fault;
	const struct option_row rows[] = {
		{"core", .text = &request.core},
		{"exe", .read = read_file, .into = &request.files},
		{"json", .yes = &request.json},
		{"native", .read = option_read_native, .into = &request.sampling.native, .optional = true},
		{"blocking", .yes = &request.sampling.blocking},
		{"locals", .refused = options_later},
		{"async", .refused = options_later},
		{"greenlets", .refused = options_later},
		{"pid", 'p', .refused = options_no_pid, .hint = options_no_pid_hint},
		{.name = NULL},
	};
	int first = option_table_read(rows, NULL, argc, argv, false, &action, &fault);

	if (first >= 0 && action != OPTIONS_GO)
		return action == OPTIONS_HELP ? help_print("dump") : help_print_version();
	if (first < 0 || check_core(&request, argc - first, &fault) ||
	    (!request.core && read_operand(argc, argv, first, &request.pid, &fault)))
		return error_usage(&fault);
	return request.core ? (int)dump_core(request.core, request.files.paths, request.files.count,
	                                     request.sampling.native, request.json)
	                    : (int)dump_process(&request);
}
