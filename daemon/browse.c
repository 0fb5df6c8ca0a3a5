/* SPDX-License-Identifier: Apache-2.0 */
/* Prompts, messages and the reading of commands are those of pstats' ProfileBrowser and of Python's cmd module under it, so that scripts
 * and fingers find what they know. */
#include "daemon/browse.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "daemon/browse_commands.h"
#include "daemon/error.h"
#include "daemon/lines.h"

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Without the blanks around it, in place. */
static char *trim(char *line)
{
	size_t bytes;

	while (isspace((unsigned char)*line))
		line++;
	bytes = strlen(line);
	while (bytes > 0 && isspace((unsigned char)line[bytes - 1]))
		line[--bytes] = '\0';
	return line;
}

/* cmd.Cmd.onecmd(). */
static void obey(struct browser *b, const char *line)
{
	const struct command *command;
	size_t word = 0;
	char *copy;

	copy = *line == '?' ? NULL : strdup(line);
	if (*line == '?' && asprintf(&copy, "help %s", line + 1) < 0)
		copy = NULL;
	if (!copy)
		return;
	if (*line != '!') {
		free(b->last);
		b->last = strcmp(copy, "EOF") == 0 ? NULL : strdup(copy);
	}
	while (is_word(copy[word]))
		word++;
	command = browse_find_command(copy, word);
	if (command) {
		command->run(b, trim(copy + word));
	} else {
		struct buf said = {0};

		utf8_add_safe(&said, copy);
		writer_puts(b->to, "*** Unknown syntax: ");
		writer_puts(b->to, buf_text(&said));
		writer_putc(b->to, '\n');
		buf_release(&said);
	}
	free(copy);
}

static bool is_word_of(const char *line, size_t bytes, const char *command)
{
	return strlen(command) == bytes && memcmp(line, command, bytes) == 0;
}

/* For completion: commands, behind sort its keys, behind read and add files. */
static const char *word_at(const void *context, const char *before, size_t index)
{
	const char *line = before + strspn(before, " \t"), *word, *meaning;
	size_t bytes = strcspn(line, " \t");
	const struct browser *b = context;

	if (bytes == 0 || is_word_of(line, bytes, "help"))
		return browse_command(index) ? browse_command(index)->name : NULL;
	if (is_word_of(line, bytes, "read") || is_word_of(line, bytes, "add"))
		return lines_files;
	if (!is_word_of(line, bytes, "sort"))
		return NULL;
	if (index >= stats_own_words() && !b->statistics.has_on_cpu)
		index++; /* the first of ours */
	word = stats_word(index, &meaning);
	return word && (index < stats_own_words() || browse_has_key(b, word)) ? word : NULL;
}

/* The next line; NULL: there is none. */
static char *next_line(const struct browser *b, const struct lines *lines)
{
	struct buf prompt = {0};
	char *line;

	utf8_add_safe(&prompt, b->path ? b->path : "");
	buf_puts(&prompt, "% ");
	line = lines_next(lines, buf_text(&prompt), b->to);
	buf_release(&prompt);
	return line;
}

static void take_line(struct browser *b, char *line)
{
	const char *text = line ? trim(line) : "EOF";
	char *again = NULL;

	if (*text == '\0' && b->last)
		text = again = strdup(b->last);
	if (text && *text)
		obey(b, text);
	free(again);
}

int browse(const char *path, struct statistics *statistics, const struct filters *filters)
{
	struct browser b = {.filters = filters, .path = path ? strdup(path) : NULL, .to = malloc(sizeof(*b.to))};
	struct lines lines = {.word = word_at, .context = &b};
	struct fault fault = {0};
	int err = b.to ? 0 : -ENOMEM;

	if (statistics) {
		b.statistics = *statistics;
		b.statistics.stats.graph = &b.statistics.graph;
		b.has_statistics = true;
	}
	lines_open(&lines);
	if (!err) {
		writer_open_fd(b.to, STDOUT_FILENO);
		writer_puts(b.to, "Welcome to the profile statistics browser.\n");
		err = writer_close(b.to, &fault);
	}
	while (!err && !b.is_over) {
		char *line = next_line(&b, &lines);

		take_line(&b, line);
		free(line);
		if (b.is_over)
			writer_puts(b.to, "Goodbye.\n");
		err = writer_close(b.to, &fault);
	}
	if (err && b.to)
		error_fault(&fault, "cannot write standard output");
	if (b.has_statistics)
		statistics_release(&b.statistics);
	free(b.path);
	free(b.last);
	free(b.to);
	return err ? EXIT_FAILED : EXIT_DONE;
}
