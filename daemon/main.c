/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "daemon/commands.h"
#include "daemon/error.h"
#include "daemon/help.h"
#include "daemon/limits.h"
#include "daemon/terminal.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv); /* NULL: part of the contract, comes later */
} commands[] = {
	{"attach", attach_main}, {"run", run_main},   {"dump", dump_main},     {"doctor", doctor_main},
	{"daemon", daemon_main}, {"ctl", ctl_main},   {"report", report_main}, {"convert", convert_main},
	{"diff", diff_main},     {"push", push_main}, {"top", NULL},
};

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	sigset_t pipe_signal;

	if (terminal_guard_descriptors())
		return EXIT_FAILED;
	/* A reader that goes away is an error of the write, which is reported, not a silent end. Blocked rather
	 * than ignored: run's command is to find the disposition as it was. */
	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	sigprocmask(SIG_BLOCK, &pipe_signal, NULL);
	limits_raise_files();
	if (!name) {
		error_note("no command (sampled --help lists them)");
		return EXIT_USAGE;
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
		return help_print(NULL);
	if (strcmp(name, "--version") == 0)
		return help_print_version();
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(name, commands[i].name) != 0)
			continue;
		if (commands[i].run)
			return commands[i].run(argc - 1, argv + 1);
		error_note("%s: not built yet (attach, run, dump, ctl, doctor, convert, report, diff, daemon and push are)",
		           name);
		return EXIT_USAGE;
	}
	error_note("%s: no such command (sampled --help lists them)", name);
	return EXIT_USAGE;
}
