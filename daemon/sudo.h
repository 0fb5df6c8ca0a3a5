/* SPDX-License-Identifier: Apache-2.0 */
/* The same command as root, for a terminal to copy, where rights are missing that root has. */
#ifndef SAMPLED_DAEMON_SUDO_H
#define SAMPLED_DAEMON_SUDO_H

#include "base/buf.h"

/* Prints "    sudo PROGRAM ARGUMENT..." as a line of its own on standard error, quoted for a shell; nothing where root could not do it either,
 * or where we are root. argv is main()'s, whole. */
void sudo_suggest(char **argv);
/* Appends "sudo PROGRAM ARGUMENT...". The arguments end with NULL. */
void sudo_line(struct buf *to, const char *program, char **arguments);

#endif
