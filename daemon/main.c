/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/commands.h"
#include "daemon/error.h"
#include "daemon/help.h"
#include "daemon/limits.h"
#include "daemon/nearest.h"
#include "daemon/parse.h"
#include "daemon/signals.h"
#include "daemon/sudo.h"
#include "daemon/terminal.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv); /* NULL: part of the contract, comes later */
	bool takes_signals;                /* it calls signals_take() itself; the others end by any signal */
	bool reads_others;                 /* exit status 4 says that root's rights are missing */
} commands[] = {
	{"attach", attach_main, true, true},
	{"run", run_main, true, false},
	{"dump", dump_main, false, true},
	{"doctor", doctor_main, false, true},
	{"daemon", daemon_main, true, false},
	{"ctl", ctl_main, false, false},
	{"report", report_main, false, false},
	{"convert", convert_main, false, false},
	{"diff", diff_main, false, false},
	{"push", push_main, true, false},
	{"top", NULL, false, false},
	{"view", NULL, false, false},
};

enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

/* Says what may have been meant by a first word that is no command, with what stands behind it. */
static int unknown_command(const char *name, const char *next)
{
	bool by_option = strcmp(name, "-p") == 0 || strncmp(name, "--pid", strlen("--pid")) == 0;
	const char *value = strchr(name, '=');
	const char *pid_text = !by_option ? name : value ? value + 1 : next;
	struct nearest near = {.word = name};
	struct fault fault;
	char hint[128];
	pid_t pid;

	for (size_t i = 0; i < COMMAND_COUNT; i++)
		nearest_offer(&near, commands[i].name);
	nearest_hint(&near, "", "sampled --help lists them", hint, sizeof(hint));
	if (pid_text && parse_pid(pid_text, &pid) == 0)
		snprintf(hint, sizeof(hint), "sampled attach %d profiles it, sampled dump %d prints its stacks", (int)pid,
		         (int)pid);
	fault_set(&fault, -EINVAL, hint, name[0] == '-' ? "%.64s: a command comes first" : "%.64s: no such command", name);
	return error_usage(&fault);
}

/* typed: all words, for a line to copy. */
static int run_command(const char *name, int argc, char **argv, char **typed)
{
	int status;

	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		if (strcmp(name, commands[i].name) != 0)
			continue;
		if (!commands[i].takes_signals)
			signals_take(NULL);
		if (!commands[i].run) {
			error_note("%s: not built yet", name);
			return EXIT_USAGE;
		}
		status = commands[i].run(argc, argv);
		if (status == EXIT_NOT_PERMITTED && commands[i].reads_others)
			sudo_suggest(typed);
		return status;
	}
	return unknown_command(name, argc > 1 ? argv[1] : NULL);
}

/* sampled help [COMMAND] */
static int help(const char *name, char **typed)
{
	char *words[] = {(char *)name, (char *)"--help", NULL};

	return name && name[0] != '-' ? run_command(name, 2, words, typed) : help_print(NULL);
}

/* The words as they were typed: getopt_long() sorts those that it is given. */
static char **copy_words(int argc, char **argv)
{
	char **copy = calloc((size_t)argc + 1, sizeof(*copy));

	return copy ? memcpy(copy, argv, (size_t)argc * sizeof(*copy)) : argv;
}

int main(int argc, char **argv)
{
	static char **typed;
	const char *name = argc > 1 ? argv[1] : NULL;

	signals_block_all();
	typed = copy_words(argc, argv);
	if (terminal_guard_descriptors())
		return EXIT_FAILED;
	limits_raise_files();
	if (!name) {
		error_note("no command (sampled --help lists them)");
		return EXIT_USAGE;
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return help_print(NULL);
	if (strcmp(name, "help") == 0)
		return help(argv[2], typed);
	if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0)
		return help_print_version();
	return run_command(name, argc - 1, argv + 1, typed);
}
