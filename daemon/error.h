/* SPDX-License-Identifier: Apache-2.0 */
/* Errors for the user, each one line: "sampled: WHAT: WHY (HINT)", and the exit status they end in. */
#ifndef SAMPLED_DAEMON_ERROR_H
#define SAMPLED_DAEMON_ERROR_H

#include "base/fault.h"

/* Exit status: a contract with other people's scripts. */
enum exit_status {
	EXIT_DONE = 0,
	EXIT_FAILED = 1, /* while running: an output that could not be written */
	EXIT_USAGE = 2,
	EXIT_NO_PYTHON = 3, /* no such process, or not a Python */
	EXIT_NOT_PERMITTED = 4,
	EXIT_UNSUPPORTED = 5,   /* a Python whose version is not supported */
	EXIT_ABOVE = 6,         /* diff: a function grew by more than --fail-above */
	EXIT_BEFORE_EXEC = 125, /* run: failed before the command began */
	EXIT_GIVEN_UP = 130     /* a second SIGINT */
};

/* The exit status of a failure to attach, from its -errno. */
enum exit_status error_status(int err);
/* Failures to attach are worse the higher their status. */
enum exit_status error_worse(enum exit_status a, enum exit_status b);

/* Prints "sampled: WHAT: WHY (HINT)"; what is a printf format. */
__attribute__((format(printf, 2, 3))) void error_fault(const struct fault *fault, const char *what, ...);
/* Prints "sampled: TEXT": an error without a fault, a warning or a note. */
__attribute__((format(printf, 1, 2))) void error_note(const char *text, ...);
/* Prints "sampled: WHY (HINT)" and returns EXIT_USAGE, as the int that main() returns. */
int error_usage(const struct fault *fault);

#endif
