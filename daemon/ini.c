/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/ini.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/utf8.h"

#define BLANKS " \t\r"

/* One file on its way through. */
struct reading {
	const struct ini_handler *handler;
	struct fault *fault; /* of the first mistake; may be NULL */
	const char *file;
	const char *at, *end; /* what is left of the text */
	unsigned line;        /* of the one read last, from 1 */
	struct buf joined;    /* the line in hand, with those joined to it */
	struct buf head;      /* the section's words, each with a NUL */
	struct ini_entry entry;
	bool lost; /* in a section whose head was refused: what it assigns is passed over */
	int err;   /* the first mistake's */
};

/* Takes note of a mistake, in line 0 where it is the file's. Returns whether reading goes on. */
static bool complain(struct reading *r, unsigned line, const struct fault *what)
{
	struct fault placed;

	if (line)
		fault_set(&placed, what->err, what->hint, "%s:%u: %s", r->file, line, what->why);
	else
		fault_set(&placed, what->err, what->hint, "%s: %s", r->file, what->why);
	if (!r->err && r->fault)
		*r->fault = placed;
	r->err = r->err ? r->err : what->err;
	if (r->handler->mistake)
		r->handler->mistake(r->handler->context, &placed);
	return r->handler->mistake != NULL;
}

/* Without blanks at either end: cuts the text and returns where it begins. */
static char *trim(char *text)
{
	size_t length;

	text += strspn(text, BLANKS);
	length = strlen(text);
	while (length > 0 && strchr(BLANKS, text[length - 1]))
		length--;
	text[length] = '\0';
	return text;
}

/* UTF-8 without control characters, but for tabs: values reach terminals, file names and other machines. */
static int check_characters(const char *text, size_t bytes, struct fault *fault)
{
	for (size_t i = 0; i < bytes;) {
		uint32_t character;
		size_t took = utf8_next(text + i, bytes - i, &character);

		if (character == 0xfffd && took == 1)
			return fault_set(fault, -EINVAL, "", "not UTF-8");
		if (utf8_is_unsafe(character) && character != '\t')
			return fault_set(fault, -EINVAL, "", "a control character, U+%04X", (unsigned)character);
		i += took;
	}
	return 0;
}

/* "[section name]" */
static int take_head(struct reading *r, char *text, struct fault *fault)
{
	char *section, *name, *end = strchr(text, ']');
	size_t bytes;

	if (!end || end[1])
		return fault_set(fault, -EINVAL, "[section] or [section name]", "a section that does not end in ]");
	*end = '\0';
	section = trim(text + 1);
	bytes = strcspn(section, BLANKS);
	name = section + bytes;
	if (*name)
		*name++ = '\0';
	name = trim(name);
	if (bytes == 0 || strchr(section, '[') || strchr(name, '['))
		return fault_set(fault, -EINVAL, "[section] or [section name]", "a section without a name");
	r->head.bytes = 0;
	buf_add(&r->head, section, bytes + 1);
	buf_add(&r->head, name, strlen(name) + 1);
	if (r->head.err)
		return fault_set(fault, r->head.err, "", "%s", strerror(-r->head.err));
	r->entry.section = r->head.data;
	r->entry.name = r->head.data + bytes + 1;
	r->entry.key = r->entry.value = NULL;
	return r->handler->section ? r->handler->section(r->handler->context, &r->entry, fault) : 0;
}

/* "key = value" */
static int take_assignment(struct reading *r, char *text, struct fault *fault)
{
	char *equals = strchr(text, '=');

	if (!equals)
		return fault_set(fault, -EINVAL, "key = value", "neither a section nor an assignment");
	*equals = '\0';
	r->entry.key = trim(text);
	r->entry.value = trim(equals + 1);
	if (!*r->entry.key)
		return fault_set(fault, -EINVAL, "key = value", "no key in front of =");
	if (!r->entry.section)
		return fault_set(fault, -EINVAL, "[section] comes first", "%.64s: in no section", r->entry.key);
	return r->handler->entry(r->handler->context, &r->entry, fault);
}

static int take_line(struct reading *r, unsigned first, struct fault *fault)
{
	int err = r->joined.err;
	char *text;

	if (err)
		return fault_set(fault, err, "", "%s", strerror(-err));
	if (r->joined.bytes > INI_LINE_MAX_BYTES)
		return fault_set(fault, -EINVAL, "", "a line of more than %d bytes", INI_LINE_MAX_BYTES);
	err = check_characters(r->joined.data, r->joined.bytes, fault);
	if (err)
		return err;
	buf_putc(&r->joined, '\0');
	if (r->joined.err)
		return fault_set(fault, r->joined.err, "", "%s", strerror(-r->joined.err));
	text = trim(r->joined.data);
	r->entry.line = first;
	if (*text == '\0')
		return 0;
	if (*text != '[')
		return r->lost ? 0 : take_assignment(r, text, fault);
	err = take_head(r, text, fault);
	r->lost = err != 0;
	return err;
}

/* The next line of the text, without blanks at its ends. false: there is none. */
static bool next_line(struct reading *r, const char **ret_text, size_t *ret_bytes)
{
	const char *text = r->at, *stop;

	if (text == r->end)
		return false;
	stop = memchr(text, '\n', (size_t)(r->end - text));
	r->at = stop ? stop + 1 : r->end;
	stop = stop ? stop : r->end;
	while (text < stop && strchr(BLANKS, *text))
		text++;
	while (stop > text && strchr(BLANKS, stop[-1]))
		stop--;
	*ret_text = text;
	*ret_bytes = (size_t)(stop - text);
	r->line++;
	return true;
}

/* The next line with all that backslashes join to it, comments left out, into r->joined; no more of it than tells that it is too long. false: the
 * text is over. */
static bool join_lines(struct reading *r, unsigned *ret_first)
{
	bool any = false, more = true;
	const char *text;
	size_t bytes;

	r->joined.bytes = 0;
	while (more && next_line(r, &text, &bytes)) {
		if (bytes > 0 && (*text == '#' || *text == ';'))
			continue;
		if (!any)
			*ret_first = r->line;
		any = true;
		more = bytes > 0 && text[bytes - 1] == '\\';
		if (r->joined.bytes <= INI_LINE_MAX_BYTES)
			buf_add(&r->joined, text, bytes);
		if (more && r->joined.bytes > 0 && r->joined.data[r->joined.bytes - 1] == '\\')
			r->joined.data[r->joined.bytes - 1] = ' ';
	}
	return any;
}

static void read_lines(struct reading *r)
{
	struct fault fault;
	unsigned first = 0;
	bool go_on = true;

	while (go_on && join_lines(r, &first)) {
		int err = take_line(r, first, &fault);

		if (err)
			go_on = complain(r, first, &fault);
	}
}

int ini_parse(const char *file, const char *text, size_t bytes, const struct ini_handler *handler, struct fault *fault)
{
	static const char mark[] = "\xef\xbb\xbf"; /* some editors put it in front of UTF-8 */
	struct reading r = {.handler = handler, .fault = fault, .file = file, .entry = {.file = file}};
	struct fault whole;

	if (bytes >= 3 && memcmp(text, mark, 3) == 0) {
		text += 3;
		bytes -= 3;
	}
	r.at = text;
	r.end = text + bytes;
	if (bytes > INI_FILE_MAX_BYTES) {
		fault_set(&whole, -EFBIG, "", "longer than %d bytes", INI_FILE_MAX_BYTES);
		complain(&r, 0, &whole);
	} else if (bytes > 0 && memchr(text, '\0', bytes)) {
		fault_set(&whole, -EINVAL, "", "it holds a NUL byte, so it is no text");
		complain(&r, 0, &whole);
	} else {
		read_lines(&r);
	}
	buf_release(&r.joined);
	buf_release(&r.head);
	return r.err;
}

/* All of a regular file, or more than there may be. A symbolic link is followed: those who write configuration may. 0 or -errno. */
static int slurp(const char *path, struct buf *to)
{
	/* O_NONBLOCK: a pipe in a file's place must not hold the service up. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), err = 0;
	struct stat stat;
	ssize_t got = 1;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &stat))
		err = -errno;
	else if (!S_ISREG(stat.st_mode))
		err = S_ISDIR(stat.st_mode) ? -EISDIR : -ENOTSUP;
	while (!err && got > 0 && to->bytes <= INI_FILE_MAX_BYTES) {
		char *into = buf_reserve(to, 64 << 10);

		got = into ? read(fd, into, 64 << 10) : 0;
		if (got > 0)
			to->bytes += (size_t)got;
		else if (got < 0)
			err = errno == EINTR ? 0 : -errno;
		got = got < 0 && !err ? 1 : got;
	}
	close(fd);
	return err ? err : to->err;
}

int ini_read_all(const char *path, const struct ini_handler *handler, struct fault *fault)
{
	struct buf text = {0};
	int err = slurp(path, &text);

	if (err) {
		struct reading r = {.handler = handler, .fault = fault, .file = path};
		struct fault why;

		fault_set(&why, err, "", "%s", err == -ENOTSUP ? "not a regular file" : strerror(-err));
		complain(&r, 0, &why);
	} else {
		err = ini_parse(path, text.data ? text.data : "", text.bytes, handler, fault);
	}
	buf_release(&text);
	return err;
}

int ini_read(const char *path, int (*entry)(void *context, const struct ini_entry *entry, struct fault *fault),
             void *context, struct fault *fault)
{
	return ini_read_all(path, &(struct ini_handler){.context = context, .entry = entry}, fault);
}
