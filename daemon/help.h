/* SPDX-License-Identifier: Apache-2.0 */
/* The texts that --help and --version print. */
#ifndef SAMPLED_DAEMON_HELP_H
#define SAMPLED_DAEMON_HELP_H

#include "base/version.h"

/* Prints the help of a command ("attach"), or of the whole program for NULL, on standard output. Returns the exit
 * status, after it has reported a standard output that fails; so does the other. */
int help_print(const char *command);
/* Prints "sampled VERSION". */
int help_print_version(void);

#endif
