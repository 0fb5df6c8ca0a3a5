/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/browse_commands.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/utf8.h"
#include "daemon/error.h"
#include "daemon/terminal.h"
#include "exporters/stats_limit.h"
#include "exporters/stats_tables.h"

enum { LIMITS_MAX = 32 };

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
	b->accounted = false;
	b->statistics.stats.graph = &b->statistics.graph;
	b->has_statistics = true;
	b->order.count = 0;
	free(b->path);
	b->path = name;
}

static void fail_to_add(struct browser *b, const char *path)
{
	writer_puts(b->to, "Failed to load statistics for ");
	add_safe(b->to, path);
	writer_puts(b->to, ": ");
}

static void do_add(struct browser *b, const char *arguments)
{
	struct statistics other;
	int err;

	if (!has_statistics(b))
		return;
	err = try_file(arguments);
	if (err) {
		fail_to_add(b, arguments);
		writer_printf(b->to, "[Errno %d] %s: '", err, strerror(err));
		add_safe(b->to, arguments);
		writer_puts(b->to, "'\n");
		return;
	}
	if (!read_statistics(b, arguments, &other))
		return;
	if (strcmp(b->statistics.graph.unit, other.graph.unit) != 0) {
		fail_to_add(b, arguments);
		writer_puts(b->to, "it counts ");
		add_safe(b->to, other.graph.unit);
		writer_puts(b->to, ", and those before it ");
		add_safe(b->to, b->statistics.graph.unit);
		writer_puts(b->to, ": they cannot be added\n");
		statistics_release(&other);
		return;
	}
	b->order.count = 0;
	b->accounted = false;
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
	                          .gil = is_sorted_by(b, STATS_GIL),
	                          .brief = b->accounted,
	                          .columns = isatty(STDOUT_FILENO) ? terminal_columns(STDOUT_FILENO) : 0};

	b->accounted = true;
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

bool browse_has_key(const struct browser *b, const char *word)
{
	return strcmp(word, "gil") == 0 ? b->statistics.has_gil : b->statistics.has_on_cpu;
}

static void list_keys(struct browser *b)
{
	const char *word, *meaning;

	writer_puts(b->to, "Valid sort keys (unique prefixes are accepted):\n");
	for (size_t i = 0; (word = stats_word(i, &meaning)) != NULL; i++)
		if (i < stats_own_words() || browse_has_key(b, word))
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

const struct command *browse_command(size_t index)
{
	return index < sizeof(commands) / sizeof(commands[0]) ? &commands[index] : NULL;
}

const struct command *browse_find_command(const char *name, size_t bytes)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strlen(commands[i].name) == bytes && memcmp(commands[i].name, name, bytes) == 0)
			return &commands[i];
	return NULL;
}

static void do_help(struct browser *b, const char *arguments)
{
	const struct command *command = browse_find_command(arguments, strlen(arguments));

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
