/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/lines.h"

#include <editline/readline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char lines_files[] = "";

/* libedit's functions take no context. */
static const struct lines *completing;
static char *before; /* the line up to the word that is completed */

/* libedit's generator: each call gives the next word that begins with text, state 0 the first. libedit frees them. */
static char *next_word(const char *text, int state)
{
	static size_t at;
	const char *word;

	for (at = state ? at : 0; (word = completing->word(completing->context, before, at)) != NULL;) {
		at++;
		if (strncmp(word, text, strlen(text)) == 0)
			return strdup(word);
	}
	return NULL;
}

/* Words, or NULL for libedit's own completion by files. */
static char **complete(const char *text, int start, int end)
{
	(void)end;
	free(before);
	before = strndup(rl_line_buffer, (size_t)start);
	if (before && completing->word(completing->context, before, 0) == lines_files)
		return NULL;
	rl_attempted_completion_over = 1;
	return before ? rl_completion_matches(text, next_word) : NULL;
}

void lines_open(struct lines *lines)
{
	lines->edited = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	if (!lines->edited)
		return;
	completing = lines;
	rl_readline_name = "sampled";
	rl_attempted_completion_function = complete;
	using_history();
}

char *lines_next(const struct lines *lines, const char *prompt, struct writer *to)
{
	char *line = NULL;
	size_t room = 0;

	if (lines->edited) {
		line = readline(prompt);
		if (line && *line)
			add_history(line);
		return line;
	}
	writer_puts(to, prompt);
	if (writer_close(to, NULL) || getline(&line, &room, stdin) < 0) {
		free(line);
		return NULL;
	}
	return line;
}
