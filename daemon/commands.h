/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the program. argv[0] is the command's name; each returns the exit status. */
#ifndef SAMPLED_DAEMON_COMMANDS_H
#define SAMPLED_DAEMON_COMMANDS_H

#include <stdbool.h>

struct options;

int attach_main(int argc, char **argv);
int run_main(int argc, char **argv);
int dump_main(int argc, char **argv);
int doctor_main(int argc, char **argv);
int convert_main(int argc, char **argv);
int diff_main(int argc, char **argv);
int report_main(int argc, char **argv);

/* Reads the options of attach or run (as options_read()), prints what they ask to be printed, or else calls run. */
int command_with_options(int argc, char **argv, bool stop_early, int (*run)(const struct options *options));

#endif
