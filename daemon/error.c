/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "daemon/terminal.h"

enum exit_status error_status(int err)
{
	switch (err) {
	case 0:
		return EXIT_DONE;
	case -ESRCH:
	case -ENOEXEC:
	case -EAGAIN:
		return EXIT_NO_PYTHON;
	case -EPERM:
	case -EACCES:
		return EXIT_NOT_PERMITTED;
	case -ENOTSUP:
		return EXIT_UNSUPPORTED;
	default:
		return EXIT_FAILED;
	}
}

enum exit_status error_worse(enum exit_status a, enum exit_status b)
{
	return a > b ? a : b;
}

/* The line "sampled: " + what (when given) + why + hint. */
static void print(const char *what, const char *why, const char *hint)
{
	struct buf line = {0};

	buf_puts(&line, "sampled: ");
	if (what)
		buf_printf(&line, "%s: ", what);
	buf_puts(&line, why);
	if (hint && *hint)
		buf_printf(&line, " (%s)", hint);
	terminal_line(buf_text(&line));
	buf_release(&line);
}

void error_fault(const struct fault *fault, const char *what, ...)
{
	char *text;
	va_list args;

	va_start(args, what);
	if (vasprintf(&text, what, args) < 0)
		text = NULL;
	va_end(args);
	print(text ? text : what, fault->why, fault->hint);
	free(text);
}

void error_note(const char *text, ...)
{
	char *whole;
	va_list args;

	va_start(args, text);
	if (vasprintf(&whole, text, args) < 0)
		whole = NULL;
	va_end(args);
	print(NULL, whole ? whole : text, NULL);
	free(whole);
}

int error_usage(const struct fault *fault)
{
	print(NULL, fault->why, fault->hint);
	return EXIT_USAGE;
}
