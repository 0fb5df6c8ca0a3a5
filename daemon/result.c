/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/result.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "daemon/error.h"
#include "daemon/terminal.h"

enum { TRIES_UNSAID = 25 }; /* half a second, in which a reader that was started along with us comes */

int result_announce(const char *path)
{
	struct buf line = {0};
	struct fault fault;
	int err;

	buf_printf(&line, "%s\n", path);
	err = line.err ? line.err : terminal_print(buf_text(&line));
	if (err) {
		fault_set(&fault, err, "", "%s", strerror(-err));
		error_fault(&fault, "wrote %s, but cannot print its name on standard output", path);
	}
	buf_release(&line);
	return err;
}

bool result_waits_for_reader(int err, const char *path, unsigned *tries)
{
	static const struct timespec pause = {.tv_nsec = 20 * NS_PER_MS};

	if (err != -EAGAIN)
		return false;
	if (++*tries == TRIES_UNSAID)
		error_note("%s: waiting for a reader (Ctrl-C gives up)", path);
	nanosleep(&pause, NULL);
	return true;
}

/* A FIFO is waited for until a signal ends the program. */
static int open_file(struct writer *to, const char *file, struct fault *fault)
{
	unsigned tries = 0;
	int err;

	do
		err = writer_open(to, file, fault);
	while (result_waits_for_reader(err, file, &tries));
	return err;
}

int result_write(const char *path, result_writer *write, const void *of)
{
	const char *file = path && !writer_is_stdout(path) ? path : NULL;
	const char *name = file ? file : "standard output";
	struct writer *to = malloc(sizeof(*to));
	struct fault fault = {0};
	int err = 0;

	if (!to) {
		error_note("cannot write %s: out of memory", name);
		return EXIT_FAILED;
	}
	if (file)
		err = open_file(to, file, &fault);
	else
		writer_open_fd(to, STDOUT_FILENO);
	if (!err)
		err = writer_finish(to, write(of, to, &fault), &fault);
	free(to);
	if (err)
		error_fault(&fault, "cannot write %s", name);
	else if (file)
		err = result_announce(file);
	return err ? EXIT_FAILED : EXIT_DONE;
}
