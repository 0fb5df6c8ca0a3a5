/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/command_line.h"

#include <stdbool.h>
#include <string.h>

#include "base/secrets.h"
#include "sampler/procfs.h"

enum { TITLE_WORDS_MAX = 4 };

/* What divides words: NULs of arguments; of a title, which is one argument, blanks. */
struct words {
	const char *text;
	size_t bytes, at;
	char end;
};

/* False: there is none. *ret_word is not ended by a NUL. */
static bool next_word(struct words *w, const char **ret_word, size_t *ret_bytes)
{
	const char *end;

	while (w->end == ' ' && w->at < w->bytes && w->text[w->at] == ' ')
		w->at++;
	if (w->at >= w->bytes)
		return false;
	*ret_word = w->text + w->at;
	end = memchr(*ret_word, w->end, w->bytes - w->at);
	*ret_bytes = end ? (size_t)(end - *ret_word) : w->bytes - w->at;
	w->at += *ret_bytes + 1;
	return true;
}

static bool is_python(const char *program, size_t bytes)
{
	const char *slash = memrchr(program, '/', bytes), *name = slash ? slash + 1 : program;
	size_t name_bytes = bytes - (size_t)(name - program);

	return (name_bytes >= 6 && memcmp(name, "python", 6) == 0) || (name_bytes >= 4 && memcmp(name, "pypy", 4) == 0);
}

static void add_word(struct buf *to, const char *word, size_t bytes)
{
	if (to->bytes)
		buf_putc(to, ' ');
	buf_add(to, word, bytes);
}

/* "-Im": which of the options in one word decides what runs, c, m, or one that takes a value (W, X). '\0': none. */
static char telling_option(const char *word, size_t bytes, size_t *ret_at)
{
	for (size_t i = 1; i < bytes; i++)
		if (word[i] != '\0' && strchr("cmWX", word[i])) {
			*ret_at = i;
			return word[i];
		}
	return '\0';
}

/* The script or module, as Modules/main.c of CPython finds it. What -c runs is an argument. */
static void add_script(struct buf *to, struct words *w)
{
	static const char pycs[] = "--check-hash-based-pycs";
	const char *word, *skipped;
	size_t bytes, skipped_bytes, at = 0;

	while (next_word(w, &word, &bytes)) {
		char option;

		if (bytes < 2 || word[0] != '-') {
			add_word(to, word, bytes);
			return;
		}
		if (word[1] == '-') {
			if (bytes == sizeof(pycs) - 1 && memcmp(word, pycs, bytes) == 0)
				(void)next_word(w, &skipped, &skipped_bytes);
			continue;
		}
		option = telling_option(word, bytes, &at);
		if (option == 'c') {
			add_word(to, "-c", 2);
			return;
		}
		if (option == 'm') {
			add_word(to, "-m", 2);
			if (at + 1 < bytes)
				add_word(to, word + at + 1, bytes - at - 1);
			else if (next_word(w, &word, &bytes))
				add_word(to, word, bytes);
			return;
		}
		if (option && at + 1 == bytes)
			(void)next_word(w, &skipped, &skipped_bytes);
	}
}

/* "gunicorn: worker [shop]", as a process calls itself, without the arguments that some put behind: "[celeryd] -active- (worker --broker …)". */
static void add_title(struct buf *to, struct words *w)
{
	const char *word;
	size_t bytes;

	for (unsigned i = 1; i < TITLE_WORDS_MAX && next_word(w, &word, &bytes); i++) {
		if (word[0] == '-' || word[0] == '(' || memchr(word, '=', bytes))
			return;
		add_word(to, word, bytes);
	}
}

static void add_program(struct buf *to, const char *arguments, size_t bytes)
{
	struct words w = {.text = arguments, .bytes = bytes};
	const char *program;
	size_t program_bytes;
	bool is_title = !memchr(arguments, '\0', bytes) && memchr(arguments, ' ', bytes);

	w.end = is_title ? ' ' : '\0';
	if (!next_word(&w, &program, &program_bytes))
		return;
	buf_add(to, program, program_bytes);
	if (is_python(program, program_bytes))
		add_script(to, &w);
	else if (is_title)
		add_title(to, &w);
}

size_t command_line_show(char *to, size_t room, const char *arguments, size_t bytes, enum command_line how)
{
	struct buf kept = {0}, masked = {0};
	size_t written;

	while (bytes && arguments[bytes - 1] == '\0')
		bytes--;
	if (how == COMMAND_LINE_PROGRAM) {
		add_program(&kept, arguments, bytes);
		secrets_mask(&masked, buf_text(&kept), kept.bytes);
	} else {
		secrets_mask(&masked, arguments, bytes);
	}
	if (kept.err || masked.err) /* better none than one with its secrets */
		masked.bytes = 0;
	written = proc_clean_text(to, room, masked.data ? masked.data : "", masked.bytes);
	buf_release(&kept);
	buf_release(&masked);
	return written;
}
