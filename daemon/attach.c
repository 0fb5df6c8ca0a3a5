/* SPDX-License-Identifier: Apache-2.0 */
/* sampled attach PID... */
#include <errno.h>
#include <time.h>

#include "daemon/commands.h"
#include "daemon/error.h"
#include "daemon/parse.h"
#include "daemon/session.h"

/* All of them, before anything is done to the first. */
static int check_pids(const struct options *options, struct fault *fault)
{
	pid_t pid;

	if (options->operand_count == 0)
		return fault_set(fault, -EINVAL, "sampled attach PID...", "attach: no process named");
	for (int i = 0; i < options->operand_count; i++)
		if (parse_pid(options->operands[i], &pid))
			return fault_set(fault, -EINVAL, "a process is named by its number", "%s: not a process id",
			                 options->operands[i]);
	return 0;
}

static int attach(const struct options *options)
{
	struct outputs outputs;
	struct session session;
	struct fault fault;
	enum exit_status status;
	pid_t pid;
	int err;

	session_take_signals(options);
	if (check_pids(options, &fault))
		return error_usage(&fault);
	parse_pid(options->operands[0], &pid);
	err = outputs_plan(&outputs, options, pid, time(NULL), &fault);
	if (err) {
		error_usage(&fault);
		return err == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	}
	if (outputs_check(&outputs)) {
		outputs_release(&outputs);
		return EXIT_FAILED;
	}
	if (outputs_start_push(&outputs, options)) {
		outputs_release(&outputs);
		return EXIT_FAILED;
	}
	if (session_open(&session, options, &outputs))
		return EXIT_FAILED;
	for (int i = 0; i < options->operand_count; i++) {
		parse_pid(options->operands[i], &pid);
		targets_add(&session.targets, pid, MEMBER_NAMED);
	}
	status = session_run(&session);
	session_release(&session);
	return (int)status;
}

int attach_main(int argc, char **argv)
{
	return command_with_options(argc, argv, false, attach);
}
