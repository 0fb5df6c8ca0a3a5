/* SPDX-License-Identifier: Apache-2.0 */
/* sampled dump PID..., sampled dump --core FILE */
#include "daemon/dump.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/children.h"
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
#include "sampler/procfs.h"

#define PATIENCE_NS (2 * NS_PER_S)

static const char usage[] =
	"sampled dump PID... [--subprocesses] [--json] [--native] [--blocking] [--locals], or dump --core FILE [--exe FILE] [--json] [--native] [--locals]";

enum { PROCESSES_MAX = 4096 };

struct processes {
	pid_t pids[PROCESSES_MAX];
	size_t count, named; /* the first ones were named, the others are children of those before them */
};

struct files {
	const char *paths[DUMP_FILES_MAX];
	size_t count;
};

struct request {
	const char *core; /* a core file; NULL: processes */
	struct files files;
	bool subprocesses;
	struct dump_how how;
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
	if (p->origin->before)
		writer_puts(to, p->origin->before);
	if (p->json)
		dump_print_json(p->dump, p->origin, to);
	else
		dump_print_text(p->dump, p->origin, terminal_color(STDOUT_FILENO), to);
	return 0;
}

/* Threads without a stack are in the output, and counted here: nothing is missing silently. */
static enum exit_status check_whole(const struct dump *dump, const struct dump_how *how)
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
	if (dump_gil_holders(dump) > 1)
		error_note("the stacks are not of one moment: %u threads held the GIL, one after the other",
		           dump_gil_holders(dump));
	if (dump_moving_values(dump))
		error_note("the values are not of one moment: %u of %u threads went on while they were read%s",
		           dump_moving_values(dump), dump->thread_count,
		           how->sampling.blocking ? "" : " (--blocking stops those that run)");
	return dump->thread_count == 0 || missing == dump->thread_count ? EXIT_FAILED : EXIT_DONE;
}

enum exit_status dump_target(struct target *target, const struct dump_how *how, struct dump_origin *origin,
                             const char *subject)
{
	struct dump dump;
	enum exit_status whole;
	int status, err;

	if (how->values.level != VALUES_OFF && !values_supported(target_proc(target))) {
		error_note("cannot read %s: --locals: values of Python %s are not known", subject, target_proc(target)->abi.name);
		return EXIT_UNSUPPORTED;
	}
	signals_hold_stops(true);
	err = dump_take(&dump, target, &how->sampling, &how->values, origin->naming);
	signals_hold_stops(false);
	if (err) {
		error_note("cannot read %s: %s", subject, err == -ESRCH ? "it has ended" : strerror(-err));
		return error_status(err);
	}
	if (dump_name(&dump, origin->naming) || dump_find_locals(&dump)) {
		error_note("cannot read %s: out of memory", subject);
		dump_release(&dump);
		return EXIT_FAILED;
	}
	origin->proc = target_proc(target);
	status = result_write(NULL, print, &(struct printing){.dump = &dump, .origin = origin, .json = how->json});
	whole = check_whole(&dump, how);
	dump_release(&dump);
	return status == EXIT_DONE ? whole : EXIT_FAILED;
}

/* *ret_written: it is on standard output. A child that is no Python, or has ended, is passed over. */
static enum exit_status dump_process(const struct request *request, pid_t pid, bool is_child, const char *before,
                                     bool *ret_written)
{
	struct target *target;
	struct fault fault;
	struct dump_origin origin = {.before = before};
	enum exit_status status;
	char subject[32];
	int err = sampler_stops(&request->how.sampling) ? opening_check_stops(pid, &fault) : 0;

	snprintf(subject, sizeof(subject), "process %d", (int)pid);
	if (!err) {
		origin.naming = naming_new(request->how.sampling.native, false);
		naming_set_pid(origin.naming, pid);
		err = opening_wait(&target, pid, PATIENCE_NS, &fault);
	}
	if (err) {
		naming_free(origin.naming);
		if (is_child && (err == -ENOEXEC || err == -ESRCH))
			return EXIT_DONE;
		error_fault(&fault, "cannot read %s", subject);
		return error_status(err);
	}
	status = dump_target(target, &request->how, &origin, subject);
	*ret_written = origin.proc != NULL;
	naming_free(origin.naming);
	target_free(target);
	return status;
}

static void add_process(struct processes *processes, pid_t pid)
{
	for (size_t i = 0; i < processes->count; i++)
		if (processes->pids[i] == pid)
			return;
	if (processes->count < PROCESSES_MAX)
		processes->pids[processes->count++] = pid;
}

static void add_children(struct processes *processes, pid_t pid)
{
	pid_t children[1024];
	int room = sizeof(children) / sizeof(children[0]), count = proc_children(pid, SIZE_MAX, children, (size_t)room);

	for (int i = 0; i < count && i < room; i++)
		add_process(processes, children[i]);
}

/* How many Python children of a process are not among them. */
static void say_missed(const struct processes *processes, pid_t pid)
{
	pid_t pythons[64];
	size_t count = children_pythons(pid, pythons, sizeof(pythons) / sizeof(pythons[0])), missed = count;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < processes->count; k++)
			missed -= processes->pids[k] == pythons[i];
	if (missed)
		children_say_missed(pid, missed);
}

/* As JSON several are an array. */
static enum exit_status dump_processes(const struct request *request, struct processes *processes)
{
	bool array = request->how.json && (processes->named > 1 || request->subprocesses), any = false;
	enum exit_status worst = EXIT_DONE;

	for (size_t i = 0; i < processes->count; i++) {
		const char *before = array ? any ? ",\n" : "[\n" : any ? "\n" : NULL;
		pid_t pid = processes->pids[i];
		bool written = false;

		if (request->subprocesses)
			add_children(processes, pid);
		worst = error_worse(worst, dump_process(request, pid, i >= processes->named, before, &written));
		any |= written;
		if (written && !request->subprocesses)
			say_missed(processes, pid);
	}
	if (processes->count == PROCESSES_MAX)
		error_note("%d processes, and no more", PROCESSES_MAX);
	if (array && any && terminal_print("]\n"))
		worst = error_worse(worst, EXIT_FAILED);
	return worst;
}

static int read_file(void *into, const char *option, const char *text, struct fault *fault)
{
	struct files *files = into;

	if (files->count == DUMP_FILES_MAX)
		return fault_set(fault, -EINVAL, usage, "%s %s: too many files", option, text);
	files->paths[files->count++] = text;
	return 0;
}

/* Given twice: more of each value. */
static int read_locals(void *into, const char *option, const char *text, struct fault *fault)
{
	unsigned *level = into;

	if (text)
		return fault_set(fault, -EINVAL, "given twice, it shows more of each value", "%s=%s: takes no value", option, text);
	*level = *level < VALUES_LONG ? *level + 1 : VALUES_LONG;
	return 0;
}

/* What goes with a core, and what with a process. 0 or -EINVAL with *fault filled. */
static int check_core(const struct request *request, int operands, struct fault *fault)
{
	if (request->how.values.secrets && request->how.values.level == VALUES_OFF)
		return fault_set(fault, -EINVAL, usage, "--locals-all: goes with --locals");
	if (!request->core)
		return request->files.count ? fault_set(fault, -EINVAL, usage, "--exe: goes with --core") : 0;
	if (operands)
		return fault_set(fault, -EINVAL, usage, "--core %s: a core or a process, not both", request->core);
	if (request->subprocesses)
		return fault_set(fault, -EINVAL, usage, "--core %s: --subprocesses is for processes", request->core);
	if (request->how.sampling.blocking)
		return fault_set(fault, -EINVAL, usage, "--core %s: its threads stand, --blocking is for a process",
		                 request->core);
	return 0;
}

static int read_operands(int argc, char **argv, int first, struct processes *processes, struct fault *fault)
{
	pid_t pid;

	if (argc == first)
		return fault_set(fault, -EINVAL, usage, "dump: no process named");
	for (int i = first; i < argc; i++) {
		if (parse_pid(argv[i], &pid))
			return fault_set(fault, -EINVAL, "a process is named by its number", "%s: not a process id", argv[i]);
		add_process(processes, pid);
	}
	processes->named = processes->count;
	return 0;
}

int dump_main(int argc, char **argv)
{
	struct request request = {.how.sampling = {.gc = true, .exceptions = true}};
	struct processes processes = {.count = 0};
	enum option_action action;
	struct fault fault;
	const struct option_row rows[] = {
		{"core", .text = &request.core},
		{"exe", .read = read_file, .into = &request.files},
		{"json", .yes = &request.how.json},
		{"subprocesses", .yes = &request.subprocesses},
		{"native", .read = option_read_native, .into = &request.how.sampling.native, .optional = true},
		{"blocking", .yes = &request.how.sampling.blocking},
		{"locals", .read = read_locals, .into = &request.how.values.level, .optional = true},
		{"locals-all", .yes = &request.how.values.secrets},
		{"async", .refused = options_later},
		{"greenlets", .refused = options_later},
		{"pid", 'p', .refused = options_no_pid, .hint = options_no_pid_hint},
		{.name = NULL},
	};
	int first = option_table_read(rows, NULL, argc, argv, false, &action, &fault);

	if (first >= 0 && action != OPTIONS_GO)
		return action == OPTIONS_HELP ? help_print("dump") : help_print_version();
	if (first < 0 || check_core(&request, argc - first, &fault) ||
	    (!request.core && read_operands(argc, argv, first, &processes, &fault)))
		return error_usage(&fault);
	return request.core ? (int)dump_core(request.core, request.files.paths, request.files.count, &request.how)
	                    : (int)dump_processes(&request, &processes);
}
