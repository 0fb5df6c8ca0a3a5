/* SPDX-License-Identifier: Apache-2.0 */
/* What a command writes when it has its answer: one file, whole or not at all, or standard output. */
#ifndef SAMPLED_DAEMON_RESULT_H
#define SAMPLED_DAEMON_RESULT_H

#include <stdbool.h>

#include "base/fault.h"
#include "exporters/writer.h"

/* Writes of what `of` points to. 0 or -errno, *fault filled or not; an error of `to` sticks in it and need not be returned. */
typedef int result_writer(const void *of, struct writer *to, struct fault *fault);

/* Whether writer_open(), which returned err, is to be tried again since path is a FIFO that nobody reads yet. Sleeps before, and says once what is waited
 * for. *tries begins as 0. */
bool result_waits_for_reader(int err, const char *path, unsigned *tries);

/* Writes a file, or standard output where path is NULL or "-", and prints the name of a file that is whole. What goes wrong is reported.
 * Returns an exit status. */
int result_write(const char *path, result_writer *write, const void *of);

/* Prints the name of a file that is whole on standard output. 0 or -errno, after it was reported. */
int result_announce(const char *path);

#endif
