/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the program. argv[0] is the command's name; each returns the exit status. */
#ifndef SAMPLED_DAEMON_COMMANDS_H
#define SAMPLED_DAEMON_COMMANDS_H

#include <stdbool.h>

struct fault;
struct filters;
struct option_row;
struct options;

int attach_main(int argc, char **argv);
int run_main(int argc, char **argv);
int dump_main(int argc, char **argv);
int doctor_main(int argc, char **argv);
int ctl_main(int argc, char **argv);
int convert_main(int argc, char **argv);
int diff_main(int argc, char **argv);
int report_main(int argc, char **argv);
int push_main(int argc, char **argv);
int daemon_main(int argc, char **argv);

/* Reads the options of attach or run (as options_read()), prints what they ask to be printed, or else calls run. */
int command_with_options(int argc, char **argv, bool stop_early, int (*run)(const struct options *options));

/* Reads the options of a command that takes nothing else; hint: what to do where something else is given. 0: go on; 1: all is done, by printing
 * what was asked for or what is wrong, and *ret_status is the exit status. */
int command_without_operands(int argc, char **argv, const struct option_row *rows, const char *hint, int *ret_status);

/* A command that reads profiles from files. */
struct file_command {
	void *self;                    /* goes to check and run */
	const struct option_row *rows; /* its own options; those of the filters come to them */
	struct filters *filters;
	/* Whether what is asked for makes sense: 0, or -EINVAL with *fault filled. */
	int (*check)(void *self, char **files, int count, struct fault *fault);
	/* Returns the exit status. */
	int (*run)(void *self, char **files, int count);
};

/* Reads the options, prints what they ask to be printed, or else checks and runs. Returns the exit status; all that the command points to
 * stays the caller's. */
int command_with_files(int argc, char **argv, const struct file_command *command);

#endif
