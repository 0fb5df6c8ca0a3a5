/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/option_table.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "daemon/nearest.h"

/* What getopt returns for a long option: this and the row's index, above all letters. */
enum { ROW_FIRST = 256 };

/* The tables as getopt wants them. */
struct getopt_table {
	const struct option_row *rows[OPTION_ROWS_MAX];
	struct option options[OPTION_ROWS_MAX + 1];
	char letters[2 + 2 * OPTION_ROWS_MAX + 1];
	int count;
};

static int takes_value(const struct option_row *row)
{
	/* What is refused is refused with a value, too. */
	if (row->optional || row->refused)
		return optional_argument;
	return row->text || row->read ? required_argument : no_argument;
}

static bool has_name(const struct getopt_table *t, const char *name)
{
	for (int i = 0; i < t->count; i++)
		if (strcmp(t->rows[i]->name, name) == 0)
			return true;
	return false;
}

static void add_rows(struct getopt_table *t, const struct option_row *rows)
{
	size_t used = strlen(t->letters);

	for (; rows && rows->name; rows++) {
		if (has_name(t, rows->name))
			continue;
		assert(t->count < OPTION_ROWS_MAX); /* tables are the program's own */
		t->rows[t->count] = rows;
		t->options[t->count] =
			(struct option){.name = rows->name, .has_arg = takes_value(rows), .val = ROW_FIRST + t->count};
		t->count++;
		if (!rows->letter)
			continue;
		t->letters[used++] = rows->letter;
		if (takes_value(rows) == required_argument)
			t->letters[used++] = ':';
	}
}

static const struct option_row *find_row(const struct getopt_table *t, int which)
{
	if (which >= ROW_FIRST)
		return t->rows[which - ROW_FIRST];
	for (int i = 0; i < t->count; i++)
		if (t->rows[i]->letter == which)
			return t->rows[i];
	return NULL; /* not by getopt, which knows these letters only */
}

/* name, as "--NAME", is none of the options. */
static int unknown(const struct getopt_table *t, const char *command, const char *name, struct fault *fault)
{
	struct nearest near = {.word = name + 2};
	char help[64], hint[96];

	snprintf(help, sizeof(help), "sampled %s --help lists the options", command);
	for (int i = 0; i < t->count; i++)
		if (!t->rows[i]->refused)
			nearest_offer(&near, t->rows[i]->name);
	nearest_hint(&near, "--", help, hint, sizeof(hint));
	return fault_set(fault, -EINVAL, hint, "%s: no such option", name);
}

/* What getopt could not make sense of. `word` is where it stood. */
static int complain(const struct getopt_table *t, int which, const char *command, const char *word, struct fault *fault)
{
	char name[64], hint[64];
	bool is_long = strncmp(word, "--", 2) == 0;

	snprintf(hint, sizeof(hint), "sampled %s --help lists the options", command);
	if (is_long)
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	else
		snprintf(name, sizeof(name), "-%c", optopt);
	if (which == ':')
		return fault_set(fault, -EINVAL, hint, "%s: needs a value", name);
	if (is_long && optopt)
		return fault_set(fault, -EINVAL, hint, "%s: takes no value", name);
	if (is_long)
		return unknown(t, command, name, fault);
	return fault_set(fault, -EINVAL, hint, "%s: no such option", name);
}

static int take(const struct option_row *row, int which, const char *text, struct fault *fault)
{
	char option[64];

	assert(row);
	if (which < ROW_FIRST)
		snprintf(option, sizeof(option), "-%c", which);
	else
		snprintf(option, sizeof(option), "--%s", row->name);
	if (row->refused)
		return fault_set(fault, -EINVAL, row->hint ? row->hint : "", "%s: %s", option, row->refused);
	if (row->read)
		return row->read(row->into, option, text, fault);
	if (row->text && *row->text)
		return fault_set(fault, -EINVAL, "once only", "%s: given twice", option);
	if (row->text)
		*row->text = text;
	else
		*(row->yes ? row->yes : row->no) = row->yes != NULL;
	return 0;
}

/* The word of the long option that getopt has read: the last one, or, where its value is a word of its own, the one before. */
static const char *long_word(char **argv)
{
	return argv[optind - 1 - (optarg == argv[optind - 1])];
}

/* getopt takes the beginning of a name for the name. A slip of the hand would be another option then, and a name that is clear today may not be so
 * tomorrow: scripts break. */
static bool is_whole(const struct getopt_table *t, int which, char **argv)
{
	return which < ROW_FIRST || strcspn(long_word(argv) + 2, "=") == strlen(t->rows[which - ROW_FIRST]->name);
}

int option_table_read(const struct option_row *rows, const struct option_row *more, int argc, char **argv,
                      bool stop_early, enum option_action *ret_action, struct fault *fault)
{
	bool help = false, version = false;
	const struct option_row always[] = {{"help", 'h', .yes = &help}, {"version", .yes = &version}, {.name = NULL}};
	struct getopt_table t = {0};
	int which, err = 0;

	snprintf(t.letters, sizeof(t.letters), stop_early ? "+:" : ":");
	add_rows(&t, rows);
	add_rows(&t, more);
	add_rows(&t, always);
	opterr = 0;
	optind = 0; /* makes glibc's getopt begin anew */
	while (!err && !help && !version) {
		int at = optind > 0 ? optind : 1;

		optopt = 0;
		which = getopt_long(argc, argv, t.letters, t.options, NULL);
		if (which == -1)
			break;
		if (which == '?' || which == ':') {
			/* getopt moves operands behind the options it has read, so the word in question is the last one
			 * read. */
			bool is_long = optind > at && strncmp(argv[optind - 1], "--", 2) == 0;

			err = complain(&t, which, argv[0], is_long ? argv[optind - 1] : "-", fault);
		} else if (!is_whole(&t, which, argv)) {
			char name[64];

			snprintf(name, sizeof(name), "%.*s", (int)strcspn(long_word(argv), "="), long_word(argv));
			err = unknown(&t, argv[0], name, fault);
		} else {
			err = take(find_row(&t, which), which, optarg, fault);
		}
	}
	if (err)
		return err;
	*ret_action = help ? OPTIONS_HELP : version ? OPTIONS_VERSION : OPTIONS_GO;
	return optind;
}
