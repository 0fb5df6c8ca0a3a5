/* SPDX-License-Identifier: Apache-2.0 */
/* Prompts, messages and the reading of command lines are those of pstats' ProfileBrowser and of Python's cmd module under it, so that scripts
 * and fingers find what they know. On a terminal lines are edited with libedit; otherwise they are read as they come. */
#include "daemon/browse.h"

#include <ctype.h>
#include <editline/readline.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/utf8.h"
#include "daemon/error.h"
#include "exporters/stats_limit.h"
#include "exporters/stats_sort.h"
#include "exporters/stats_tables.h"

enum { LIMITS_MAX = 32 };

struct browser {
	struct statistics statistics; /* where has_statistics is set */
	bool has_statistics;
	struct stats_order order; /* what the listing was sorted by; none: it is as the file had it */
	char *path;               /* of the prompt; NULL: none was read */
	char *last;               /* the last command, which an empty line repeats */
	const struct filters *filters;
	struct writer *to;
	bool is_over;
};

struct command {
	const char *name;
	void (*run)(struct browser *b, const char *arguments);
	const char *help;
	bool takes_limits;
};

static void add_safe(struct writer *to, const char *text)
{
	struct buf safe = {0};

	utf8_add_safe(&safe, text);
	writer_puts(to, buf_text(&safe));
	buf_release(&safe);
}

static bool has_statistics(struct browser *b)
{
	if (!b->has_statistics)
		writer_puts(b->to, "No statistics object is loaded.\n");
	return b->has_statistics;
}

/* What cannot go on without memory leaves nothing to be shown. */
static void lose(struct browser *b, int err)
{
	writer_printf(b->to, "%s\n", strerror(-err));
	statistics_release(&b->statistics);
	b->has_statistics = false;
}

/* --- reading files --- */

/* Why a file cannot be opened for reading; 0: it can. */
static int try_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err = fd < 0 ? errno : 0;
	struct stat file;

	if (!err && fstat(fd, &file) == 0 && S_ISDIR(file.st_mode))
		err = EISDIR;
	if (fd >= 0)
		close(fd);
	return err;
}

static bool read_statistics(const struct browser *b, const char *path, struct statistics *ret_statistics)
{
	char *paths[] = {strdup(path)};
	bool done = paths[0] && statistics_read(ret_statistics, paths, 1, b->filters, false) == EXIT_DONE;

	free(paths[0]);
	return done;
}

static void do_read(struct browser *b, const char *arguments)
{
	const char *path = *arguments ? arguments : b->path;
	struct statistics new;
	char *name;
	int err;

	if (!path) {
		writer_puts(b->to, "No statistics object is current -- cannot reload.\n");
		return;
	}
	err = try_file(path);
	if (err) {
		writer_printf(b->to, "%s\n", strerror(err));
		return;
	}
	name = strdup(path);
	if (!name || !read_statistics(b, path, &new)) {
		free(name);
		return;
	}
	if (b->has_statistics)
		statistics_release(&b->statistics);
	b->statistics = new;
	b->statistics.stats.graph = &b->statistics.graph;
	b->has_statistics = true;
	b->order.count = 0;
	free(b->path);
	b->path = name;
}

static void do_add(struct browser *b, const char *arguments)
{
	struct statistics other;
	int err;

	if (!has_statistics(b))
		return;
	err = try_file(arguments);
	if (err) {
		writer_puts(b->to, "Failed to load statistics for ");
		add_safe(b->to, arguments);
		writer_printf(b->to, ": [Errno %d] %s: '", err, strerror(err));
		add_safe(b->to, arguments);
		writer_puts(b->to, "'\n");
		return;
	}
	if (!read_statistics(b, arguments, &other))
		return;
	b->order.count = 0;
	err = statistics_add(&b->statistics, &other);
	statistics_release(&other);
	if (err)
		lose(b, err);
}

/* --- tables --- */

static bool is_sorted_by(const struct browser *b, enum stats_key key)
{
	for (size_t i = 0; i < b->order.count; i++)
		if (b->order.keys[i] == key)
			return true;
	return false;
}

static int print(struct browser *b, unsigned calls, struct stats_limit *limits, size_t limit_count)
{
	struct stats_view view = {.stats = &b->statistics.stats,
	                          .limits = limits,
	                          .limit_count = limit_count,
	                          .files = buf_text(&b->statistics.files),
	                          .on_cpu = is_sorted_by(b, STATS_ON_CPU),
	                          .gil = is_sorted_by(b, STATS_GIL)};

	return calls ? stats_print_calls(&view, calls == STATS_CALLERS, b->to) : stats_print(&view, b->to);
}

static void print_limited(struct browser *b, unsigned calls, const char *arguments)
{
	struct stats_limit limits[LIMITS_MAX];
	char *copy = strdup(arguments), *rest = copy, *word;
	size_t count = 0;
	int err = copy ? 0 : -ENOMEM;

	while (!err && count < LIMITS_MAX && (word = strsep(&rest, " \t\v\f\r")) != NULL) {
		if (*word == '\0')
			continue;
		err = stats_limit_read(&limits[count], word);
		if (err == -ERANGE) {
			writer_puts(b->to, "Fraction argument must be in [0, 1]\n");
			stats_limit_release(&limits[count]);
			err = 0;
			continue;
		}
		count++;
		err = err == -EINVAL ? 0 : err; /* the table says so */
	}
	if (!err && has_statistics(b))
		err = print(b, calls, limits, count);
	if (err == -ENOMEM)
		writer_printf(b->to, "%s\n", strerror(-err));
	for (size_t i = 0; i < count; i++)
		stats_limit_release(&limits[i]);
	free(copy);
}

static void do_stats(struct browser *b, const char *arguments)
{
	print_limited(b, 0, arguments);
}

static void do_callers(struct browser *b, const char *arguments)
{
	print_limited(b, STATS_CALLERS, arguments);
}

static void do_callees(struct browser *b, const char *arguments)
{
	print_limited(b, STATS_CALLEES, arguments);
}

static void list_keys(struct browser *b)
{
	const char *word, *meaning;

	writer_puts(b->to, "Valid sort keys (unique prefixes are accepted):\n");
	for (size_t i = 0; (word = stats_word(i, &meaning)) != NULL; i++)
		if (i < stats_own_words() ||
		    (strcmp(word, "gil") == 0 ? b->statistics.has_gil : b->statistics.has_on_cpu))
			writer_printf(b->to, "%s -- %s\n", word, meaning);
}

/* False: there is a word that is no key, or none at all. Numbers are for pstats' method, not for its browser. */
static bool read_order(const struct browser *b, const char *arguments, struct stats_order *ret_order)
{
	*ret_order = (struct stats_order){0};
	for (;;) {
		size_t bytes;

		arguments += strspn(arguments, " \t\v\f\r");
		bytes = strcspn(arguments, " \t\v\f\r");
		if (bytes == 0)
			break;
		if (!isalpha((unsigned char)*arguments) || stats_order_add(ret_order, arguments, bytes))
			return false;
		if ((ret_order->keys[ret_order->count - 1] == STATS_ON_CPU && !b->statistics.has_on_cpu) ||
		    (ret_order->keys[ret_order->count - 1] == STATS_GIL && !b->statistics.has_gil))
			return false;
		arguments += bytes;
	}
	return ret_order->count > 0;
}

static void do_sort(struct browser *b, const char *arguments)
{
	struct stats_order order;
	int err;

	if (!has_statistics(b))
		return;
	if (!read_order(b, arguments, &order)) {
		list_keys(b);
		return;
	}
	b->order = order;
	err = stats_sort(&b->statistics.stats, &order);
	if (err)
		lose(b, err);
}

static void do_reverse(struct browser *b, const char *arguments)
{
	(void)arguments;
	if (has_statistics(b))
		stats_reverse(&b->statistics.stats);
}

static void do_strip(struct browser *b, const char *arguments)
{
	int err;

	(void)arguments;
	if (!has_statistics(b))
		return;
	b->order.count = 0;
	err = statistics_strip(&b->statistics);
	if (err)
		lose(b, err);
}

static void do_end(struct browser *b, const char *arguments)
{
	(void)arguments;
	writer_putc(b->to, '\n');
	b->is_over = true;
}

static void do_quit(struct browser *b, const char *arguments)
{
	(void)arguments;
	b->is_over = true;
}

static void do_help(struct browser *b, const char *arguments);

static const struct command commands[] = {
	{"EOF", do_end, "Leave the profile browser.\n", false},
	{"add", do_add, "Add profile info from given file to current statistics object.\n", false},
	{"callees", do_callees, "Print callees statistics from the current stat object.\n", true},
	{"callers", do_callers, "Print callers statistics from the current stat object.\n", true},
	{"help", do_help, "Show help for a given command.\n", false},
	{"quit", do_quit, "Leave the profile browser.\n", false},
	{"read", do_read, "Read in profile data from a specified file.\nWithout argument, reload the current file.\n",
         false},
	{"reverse", do_reverse, "Reverse the sort order of the profiling report.\n", false},
	{"sort", do_sort,
         "Sort profile data according to specified keys.\n(Typing `sort' without arguments lists valid keys.)\n",
         false},
	{"stats", do_stats, "Print statistics from the current stat object.\n", true},
	{"strip", do_strip, "Strip leading path information from filenames in the report.\n", false},
};

static const char limits_help[] = "Arguments may be:\n"
				  "* An integer maximum number of entries to print.\n"
				  "* A decimal fractional number between 0 and 1, controlling\n"
				  "  what fraction of selected entries to print.\n"
				  "* A regular expression; only entries with function names\n"
				  "  that match it are printed.\n";

static const struct command *find_command(const char *name, size_t bytes)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strlen(commands[i].name) == bytes && memcmp(commands[i].name, name, bytes) == 0)
			return &commands[i];
	return NULL;
}

static void do_help(struct browser *b, const char *arguments)
{
	const struct command *command = find_command(arguments, strlen(arguments));

	if (*arguments && !command) {
		writer_puts(b->to, "*** No help on ");
		add_safe(b->to, arguments);
		writer_putc(b->to, '\n');
	} else if (command) {
		writer_puts(b->to, command->help);
		writer_puts(b->to, command->takes_limits ? limits_help : "");
	} else {
		writer_puts(b->to, "\nDocumented commands (type help <topic>):\n"
		                   "========================================\n");
		for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
			writer_printf(b->to, i ? "  %s" : "%s", commands[i].name);
		writer_puts(b->to, "\n\n");
	}
}

/* --- lines --- */

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
	command = find_command(copy, word);
	if (command) {
		command->run(b, trim(copy + word));
	} else {
		writer_puts(b->to, "*** Unknown syntax: ");
		add_safe(b->to, copy);
		writer_putc(b->to, '\n');
	}
	free(copy);
}

/* Completion has no argument of ours: whose keys are offered. */
static const struct browser *completing;

/* libedit's generator: each call gives the next of what begins with text; state 0: the first. It frees them. */
static char *next_command(const char *text, int state)
{
	static size_t at;

	for (at = state ? at : 0; at < sizeof(commands) / sizeof(commands[0]);)
		if (strncmp(commands[at++].name, text, strlen(text)) == 0)
			return strdup(commands[at - 1].name);
	return NULL;
}

static char *next_key(const char *text, int state)
{
	static size_t at;
	const char *word, *meaning;

	for (at = state ? at : 0; (word = stats_word(at, &meaning)) != NULL;) {
		bool is_there =
			at < stats_own_words() ||
			(strcmp(word, "gil") == 0 ? completing->statistics.has_gil : completing->statistics.has_on_cpu);

		at++;
		if (is_there && strncmp(word, text, strlen(text)) == 0)
			return strdup(word);
	}
	return NULL;
}

/* Commands, the keys of sort, and files (NULL: libedit's own) for read and add. */
static char **complete(const char *text, int start, int end)
{
	const char *line = rl_line_buffer + strspn(rl_line_buffer, " \t");
	size_t word = strcspn(line, " \t");

	(void)end;
	if (line + word >= rl_line_buffer + start || (word == 4 && memcmp(line, "help", word) == 0) || *line == '?')
		return rl_completion_matches(text, next_command);
	if (word == 4 && memcmp(line, "sort", word) == 0)
		return rl_completion_matches(text, next_key);
	if (!(word == 4 && memcmp(line, "read", word) == 0) && !(word == 3 && memcmp(line, "add", word) == 0))
		rl_attempted_completion_over = 1;
	return NULL;
}

/* The next line, freed by the caller; NULL: there is none. */
static char *next_line(const struct browser *b, bool edited, struct fault *fault)
{
	struct buf prompt = {0};
	char *line = NULL;
	size_t room = 0;

	utf8_add_safe(&prompt, b->path ? b->path : "");
	buf_puts(&prompt, "% ");
	if (edited) {
		line = readline(buf_text(&prompt));
		if (line && *line)
			add_history(line);
	} else {
		writer_puts(b->to, buf_text(&prompt));
		if (writer_close(b->to, fault) || getline(&line, &room, stdin) < 0) {
			free(line);
			line = NULL;
		}
	}
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
	bool edited = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	struct fault fault = {0};
	int err = b.to ? 0 : -ENOMEM;

	if (statistics) {
		b.statistics = *statistics;
		b.statistics.stats.graph = &b.statistics.graph;
		b.has_statistics = true;
	}
	if (edited) {
		completing = &b;
		rl_readline_name = "sampled";
		rl_attempted_completion_function = complete;
		using_history();
	}
	if (!err) {
		writer_open_fd(b.to, STDOUT_FILENO);
		writer_puts(b.to, "Welcome to the profile statistics browser.\n");
		err = writer_close(b.to, &fault);
	}
	while (!err && !b.is_over) {
		char *line = next_line(&b, edited, &fault);

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
