/* SPDX-License-Identifier: Apache-2.0 */
/* A command line as it is shown: what leaves the sampler, in records and dumps, is made here, so that no output can show more. */
#ifndef SAMPLED_SAMPLER_COMMAND_LINE_H
#define SAMPLED_SAMPLER_COMMAND_LINE_H

#include <stddef.h>

enum command_line {
	COMMAND_LINE_FULL, /* all arguments */
	COMMAND_LINE_PROGRAM, /* the program, and the script or module that a Python runs; of a title what stands before options */
};

/* Arguments, each ended by a NUL, joined by blanks; values that look secret are masked (secrets.h), and it is cleaned as by proc_clean_text().
 * Returns the bytes written, without the NUL; room is above 0. */
size_t command_line_show(char *to, size_t room, const char *arguments, size_t bytes, enum command_line how);

#endif
