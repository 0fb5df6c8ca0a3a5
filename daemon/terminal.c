/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/utf8.h"

enum { COLUMNS_DEFAULT = 80, COLUMNS_MIN = 20, COLUMNS_MAX = 400 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool progress_shown; /* guarded by lock */

static int write_all(int fd, const char *data, size_t bytes)
{
	while (bytes > 0) {
		ssize_t done = write(fd, data, bytes);

		if (done >= 0) {
			data += done;
			bytes -= (size_t)done;
		} else if (errno == EAGAIN) { /* a terminal that another program made non-blocking */
			struct pollfd ready = {.fd = fd, .events = POLLOUT};

			if (poll(&ready, 1, -1) < 0 && errno != EINTR)
				return -errno;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

static void put(const char *text, bool is_progress)
{
	struct buf line = {0};

	pthread_mutex_lock(&lock);
	if (progress_shown)
		buf_puts(&line, "\r\033[K");
	if (is_progress) {
		utf8_fit(&line, text, terminal_columns(STDERR_FILENO) - 1, false);
	} else {
		utf8_add_safe(&line, text);
		buf_putc(&line, '\n');
	}
	progress_shown = is_progress && *text;
	/* When standard error itself fails there is nowhere left to say so. */
	if (!line.err)
		(void)write_all(STDERR_FILENO, line.data, line.bytes);
	pthread_mutex_unlock(&lock);
	buf_release(&line);
}

void terminal_line(const char *text)
{
	put(text, false);
}

void terminal_progress(const char *text)
{
	if (*text || progress_shown)
		put(text, true);
}

unsigned terminal_columns(int fd)
{
	struct winsize size;

	if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
		return COLUMNS_DEFAULT;
	return size.ws_col < COLUMNS_MIN ? COLUMNS_MIN : size.ws_col > COLUMNS_MAX ? COLUMNS_MAX : size.ws_col;
}

bool terminal_is_live(void)
{
	return isatty(STDERR_FILENO);
}

bool terminal_color(int fd)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fd) && !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
}

int terminal_guard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int opened;

		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* The lowest free number is fd itself. A read-only one in place of an output: writes fail with
		 * EBADF as before. */
		opened = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
		if (opened < 0)
			return -errno;
	}
	return 0;
}

int terminal_print(const char *text)
{
	int err;

	pthread_mutex_lock(&lock);
	/* Both may be the same terminal. */
	if (progress_shown)
		(void)write_all(STDERR_FILENO, "\r\033[K", strlen("\r\033[K"));
	progress_shown = false;
	err = write_all(STDOUT_FILENO, text, strlen(text));
	pthread_mutex_unlock(&lock);
	return err == -EPIPE ? 0 : err; /* who reads us and goes away has read enough: "| head" */
}
