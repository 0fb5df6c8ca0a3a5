/* SPDX-License-Identifier: Apache-2.0 */
/* sampled run -- COMMAND...: the command is forked at once, waits until everything of ours that can fail has not,
 * then becomes the program. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/commands.h"
#include "daemon/error.h"
#include "daemon/limits.h"
#include "daemon/opening.h"
#include "daemon/session.h"
#include "daemon/signals.h"

struct command {
	pid_t pid;
	int go_fd;   /* a byte lets it begin; closed without one, it leaves */
	int fate_fd; /* its errno when exec failed; closed by a successful exec */
};

/* The child, from here on. */
_Noreturn static void become(char **argv, int go_fd, int fate_fd)
{
	char byte;
	int err;

	if (read(go_fd, &byte, 1) != 1)
		_exit(EXIT_BEFORE_EXEC);
	sigprocmask(SIG_SETMASK, signals_at_start(), NULL);
	limits_restore_files();
	execvp(argv[0], argv);
	err = errno;
	(void)!write(fate_fd, &err, sizeof(err));
	_exit(EXIT_BEFORE_EXEC);
}

static int fork_command(struct command *ret_command, char **argv)
{
	int go[2], fate[2], err;
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) != 0)
		return -errno;
	if (pipe2(fate, O_CLOEXEC) != 0) {
		err = -errno;
		goto fail_go;
	}
	pid = fork();
	if (pid < 0) {
		err = -errno;
		goto fail_fate;
	}
	if (pid == 0) {
		close(go[1]);
		close(fate[0]);
		become(argv, go[0], fate[1]);
	}
	close(go[0]);
	close(fate[1]);
	*ret_command = (struct command){.pid = pid, .go_fd = go[1], .fate_fd = fate[0]};
	return 0;
fail_fate:
	close(fate[0]);
	close(fate[1]);
fail_go:
	close(go[0]);
	close(go[1]);
	return err;
}

/* Lets the command begin. 0, or the -errno of its exec. */
static int release_command(struct command *command)
{
	int err = 0;
	ssize_t got;

	if (write(command->go_fd, "", 1) != 1)
		err = -errno;
	close(command->go_fd);
	do
		got = read(command->fate_fd, &err, sizeof(err));
	while (got < 0 && errno == EINTR);
	close(command->fate_fd);
	return got == (ssize_t)sizeof(err) ? -err : err;
}

/* The command leaves without having begun. */
static void cancel_command(struct command *command)
{
	close(command->go_fd);
	close(command->fate_fd);
	waitpid(command->pid, NULL, 0);
}

static int command_exit(const struct session *session, enum exit_status ours)
{
	int status = session->command_status;
	int theirs = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);

	/* A profile that could not be written must not look like success. */
	return theirs == 0 && ours == EXIT_FAILED ? EXIT_FAILED : theirs;
}

static void say_cannot_run(const char *name, int err)
{
	size_t bytes = strlen(name);
	bool script = bytes > 3 && strcmp(name + bytes - 3, ".py") == 0;
	struct fault fault;
	char hint[200];

	snprintf(hint, sizeof(hint), "sampled run -- python3 %.128s", name);
	fault_set(&fault, err, script ? hint : "", "%s", strerror(-err));
	error_fault(&fault, "cannot run %s", name);
}

static int profile_command(struct session *session, struct command *command, const char *name)
{
	enum exit_status ours;
	int err = release_command(command);

	if (err) {
		say_cannot_run(name, err);
		waitpid(command->pid, NULL, 0);
		return EXIT_BEFORE_EXEC;
	}
	session->command = command->pid;
	if (session->options->subprocesses)
		session->targets.command = command->pid;
	/* Where it has ended already, its SIGCHLD is waiting. */
	targets_add(&session->targets, command->pid, MEMBER_COMMAND);
	ours = session_run(session);
	return command_exit(session, ours);
}

static int run(const struct options *options)
{
	struct command command = {.pid = -1, .go_fd = -1, .fate_fd = -1};
	struct outputs outputs;
	struct session session;
	struct fault fault;
	int status, err;

	if (options->operand_count == 0) {
		fault_set(&fault, -EINVAL, "sampled run [options] -- COMMAND...", "run: no command");
		return error_usage(&fault);
	}
	session_take_signals(options);
	if (session_stops(options) && opening_check_ptrace(&fault)) {
		error_fault(&fault, "cannot run %s", options->operands[0]);
		return EXIT_BEFORE_EXEC;
	}
	/* What the command's processes leave behind (a daemon forks twice) becomes our child, not init's: children.c finds it. */
	if (options->subprocesses)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	err = fork_command(&command, options->operands);
	if (err) {
		error_note("cannot run %s: %s", options->operands[0], strerror(-err));
		return EXIT_BEFORE_EXEC;
	}
	err = outputs_plan(&outputs, options, command.pid, time(NULL), &fault);
	if (err) {
		cancel_command(&command);
		error_usage(&fault);
		return err == -EINVAL ? EXIT_USAGE : EXIT_BEFORE_EXEC;
	}
	if (outputs_check(&outputs)) {
		cancel_command(&command);
		outputs_release(&outputs);
		return EXIT_BEFORE_EXEC;
	}
	if (outputs_start_push(&outputs, options)) {
		cancel_command(&command);
		outputs_release(&outputs);
		return EXIT_BEFORE_EXEC;
	}
	if (session_open(&session, options, &outputs)) {
		cancel_command(&command);
		return EXIT_BEFORE_EXEC;
	}
	status = profile_command(&session, &command, options->operands[0]);
	session_release(&session);
	return status;
}

int run_main(int argc, char **argv)
{
	return command_with_options(argc, argv, true, run);
}
