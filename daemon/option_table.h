/* SPDX-License-Identifier: Apache-2.0 */
/* A command line, read by a table of options that says where each value goes. Every table has --help (-h) and --version besides. */
#ifndef SAMPLED_DAEMON_OPTION_TABLE_H
#define SAMPLED_DAEMON_OPTION_TABLE_H

#include <stdbool.h>

#include "base/fault.h"

enum { OPTION_ROWS_MAX = 48 }; /* of all tables of a command */

/* One option. It does the one thing that is set here; a table ends with a row without a name. */
struct option_row {
	const char *name; /* behind "--"; static */
	char letter;      /* behind "-"; 0: none */
	/* Without a value: it becomes true, or false. */
	bool *yes, *no;
	/* With a value, which stays in argv; NULL before, and given once. */
	const char **text;
	/* With a value, read into `into`; option is as it was given ("-o", "--output"). 0, or -errno with *fault filled. */
	int (*read)(void *into, const char *option, const char *text, struct fault *fault);
	void *into;
	/* The value that is read may be left out: it stands behind "=" only, and text is NULL without. Not with a letter. */
	bool optional;
	/* Refused with this reason, with a value or without; hint may be NULL. */
	const char *refused, *hint;
};

enum option_action {
	OPTIONS_GO,      /* do the work */
	OPTIONS_HELP,    /* print the help and leave */
	OPTIONS_VERSION, /* print the version and leave */
};

/* Reads argv, of which argv[0] is the command's name, to its end or to --help or --version. An option that stands in both tables is that of
 * the first; more may be NULL. With stop_early the first word that is no option ends them. Returns the index of the first operand (all are
 * behind the options then), or -errno with *fault filled: -EINVAL an option that there is not, a value that is none. */
int option_table_read(const struct option_row *rows, const struct option_row *more, int argc, char **argv,
                      bool stop_early, enum option_action *ret_action, struct fault *fault);

#endif
