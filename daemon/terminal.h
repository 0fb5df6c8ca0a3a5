/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal: whole lines on standard error, one progress line that others overwrite, and whether colour is wanted.
 * Every function may be called from any thread: a line is one write(2) and never breaks into another. */
#ifndef SAMPLED_DAEMON_TERMINAL_H
#define SAMPLED_DAEMON_TERMINAL_H

#include <stdbool.h>

/* Prints text and a newline on standard error. What in it, from a hostile process' name perhaps, would steer the
 * terminal becomes U+FFFD. */
void terminal_line(const char *text);
/* Shows text as the progress line, in place of the previous one, cut to the terminal's width; "" takes it away. Only for a terminal. */
void terminal_progress(const char *text);
/* How many columns a line may have: the terminal's, from 20 to 400; 80 where it is none. */
unsigned terminal_columns(int fd);
/* Standard error is a terminal. */
bool terminal_is_live(void);
/* Colour is wanted on this descriptor: a terminal, not a dumb one, and NO_COLOR is not set (https://no-color.org). */
bool terminal_color(int fd);

/* Remembers which of standard input, output and error were closed at the start and puts something harmless there,
 * so that no file of ours gets their numbers: writing to a closed standard output then still fails. 0 or -errno. */
int terminal_guard_descriptors(void);

/* Prints text on standard output at once. 0 or -errno: it is closed, the disk is full. A reader that has gone away is no error. */
int terminal_print(const char *text);

#endif
