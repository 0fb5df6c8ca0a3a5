/* SPDX-License-Identifier: Apache-2.0 */
/* sampled dump PID [--json] */
#include "daemon/dump.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/commands.h"
#include "daemon/error.h"
#include "daemon/help.h"
#include "daemon/opening.h"
#include "daemon/parse.h"
#include "daemon/result.h"
#include "daemon/terminal.h"

#define PATIENCE_NS (2 * NS_PER_S)

struct printing {
	const struct dump *dump;
	const struct pyproc *proc;
	bool json;
};

static int print(const void *of, struct writer *to, struct fault *fault)
{
	const struct printing *p = of;

	(void)fault;
	if (p->json)
		dump_print_json(p->dump, p->proc, to);
	else
		dump_print_text(p->dump, p->proc, terminal_color(STDOUT_FILENO), to);
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

static enum exit_status dump_process(pid_t pid, bool json)
{
	struct target *target;
	struct fault fault;
	struct dump dump;
	struct printing printing;
	enum exit_status whole;
	int status, err = opening_wait(&target, pid, PATIENCE_NS, &fault);

	if (err) {
		error_fault(&fault, "cannot read process %d", (int)pid);
		return error_status(err);
	}
	err = dump_take(&dump, target);
	if (err) {
		error_note("cannot read process %d: %s", (int)pid, err == -ESRCH ? "it has ended" : strerror(-err));
		target_free(target);
		return error_status(err);
	}
	printing = (struct printing){.dump = &dump, .proc = target_proc(target), .json = json};
	status = result_write(NULL, print, &printing);
	whole = check_whole(&dump);
	dump_release(&dump);
	target_free(target);
	return status == EXIT_DONE ? whole : EXIT_FAILED;
}

int dump_main(int argc, char **argv)
{
	struct fault fault;
	bool json = false;
	pid_t pid = 0;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0)
			return help_print("dump");
		if (strcmp(argv[i], "--json") == 0) {
			json = true;
		} else if (argv[i][0] == '-') {
			fault_set(&fault, -EINVAL, "sampled dump PID [--json]", "%s: no such option", argv[i]);
			return error_usage(&fault);
		} else if (pid) {
			fault_set(&fault, -EINVAL, "sampled dump PID [--json]", "%s: one process at a time", argv[i]);
			return error_usage(&fault);
		} else if (parse_pid(argv[i], &pid)) {
			fault_set(&fault, -EINVAL, "a process is named by its number", "%s: not a process id", argv[i]);
			return error_usage(&fault);
		}
	}
	if (!pid) {
		fault_set(&fault, -EINVAL, "sampled dump PID [--json]", "dump: no process named");
		return error_usage(&fault);
	}
	return (int)dump_process(pid, json);
}
