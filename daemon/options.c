/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/parse.h"

/* Long options without a letter. */
enum {
	OPT_MODE = 256,
	OPT_IDLE,
	OPT_NO_IDLE,
	OPT_GC,
	OPT_NO_GC,
	OPT_JITTER,
	OPT_NO_JITTER,
	OPT_SUBPROCESSES,
	OPT_OMIT,
	OPT_STOP,
	OPT_STATS,
	OPT_REALTIME,
	OPT_SVG,
	OPT_COLLAPSED_STYLE,
	OPT_RECORD,
	OPT_VERSION,
	OPT_LATER, /* part of the contract, comes later */
};

static const struct option long_options[] = {
	{"rate", required_argument, NULL, 'r'},
	{"duration", required_argument, NULL, 'd'},
	{"format", required_argument, NULL, 'f'},
	{"output", required_argument, NULL, 'o'},
	{"thread", required_argument, NULL, 't'},
	{"mode", required_argument, NULL, OPT_MODE},
	{"idle", no_argument, NULL, OPT_IDLE},
	{"no-idle", no_argument, NULL, OPT_NO_IDLE},
	{"gc", no_argument, NULL, OPT_GC},
	{"no-gc", no_argument, NULL, OPT_NO_GC},
	{"jitter", no_argument, NULL, OPT_JITTER},
	{"no-jitter", no_argument, NULL, OPT_NO_JITTER},
	{"subprocesses", no_argument, NULL, OPT_SUBPROCESSES},
	{"omit", required_argument, NULL, OPT_OMIT},
	{"stop", required_argument, NULL, OPT_STOP},
	{"stats", no_argument, NULL, OPT_STATS},
	{"realtime", no_argument, NULL, OPT_REALTIME},
	{"svg", no_argument, NULL, OPT_SVG},
	{"collapsed-style", required_argument, NULL, OPT_COLLAPSED_STYLE},
	{"record", required_argument, NULL, OPT_RECORD},
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	{"version", no_argument, NULL, OPT_VERSION},
	{"help", no_argument, NULL, 'h'},
	{"native", no_argument, NULL, OPT_LATER},
	{"blocking", no_argument, NULL, OPT_LATER},
	{"opcodes", no_argument, NULL, OPT_LATER},
	{"async", no_argument, NULL, OPT_LATER},
	{"locals", no_argument, NULL, OPT_LATER},
	{NULL, 0, NULL, 0},
};

static int read_mode(struct options *o, const char *text, struct fault *fault)
{
	static const struct {
		const char *name;
		enum sample_mode mode;
	} modes[] = {{"wall", MODE_WALL}, {"cpu", MODE_CPU}, {"gil", MODE_GIL}};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(text, modes[i].name) == 0) {
			o->mode = modes[i].mode;
			return 0;
		}
	if (strcmp(text, "exception") == 0)
		return fault_set(fault, -EINVAL, "wall, cpu or gil work", "--mode exception: not built yet");
	return fault_set(fault, -EINVAL, "wall, cpu or gil", "--mode %s: no such mode", text);
}

int options_read_style(enum collapsed_style *ret_style, const char *text, struct fault *fault)
{
	if (strcmp(text, "sampled") == 0)
		*ret_style = COLLAPSED_SAMPLED;
	else if (strcmp(text, "tachyon") == 0)
		*ret_style = COLLAPSED_TACHYON;
	else
		return fault_set(fault, -EINVAL, "sampled or tachyon", "--collapsed-style %s: no such style", text);
	return 0;
}

static int read_regex(regex_t *regex, bool *has, const char *option, const char *text, struct fault *fault)
{
	char why[128];
	int err;

	if (*has)
		regfree(regex);
	*has = false;
	err = regcomp(regex, text, REG_EXTENDED | REG_NOSUB);
	if (err) {
		regerror(err, regex, why, sizeof(why));
		return fault_set(fault, -EINVAL, why, "--%s %s: not a regular expression", option, text);
	}
	*has = true;
	return 0;
}

static int read_thread(struct options *o, const char *text, struct fault *fault)
{
	struct thread_filter *filter = &o->threads[o->thread_count];

	if (o->thread_count == OPTION_LIST_MAX)
		return fault_set(fault, -EINVAL, "", "-t: given more than %d times", OPTION_LIST_MAX);
	if (*text == '\0')
		return fault_set(fault, -EINVAL, "a thread's name or number", "-t: empty");
	*filter = (struct thread_filter){.name = text};
	if (parse_u64(text, &filter->tid) == 0)
		filter->name = NULL;
	o->thread_count++;
	return 0;
}

static int read_list(const char **list, size_t *count, char letter, const char *text, struct fault *fault)
{
	if (*count == OPTION_LIST_MAX)
		return fault_set(fault, -EINVAL, "", "-%c: given more than %d times", letter, OPTION_LIST_MAX);
	if (*text == '\0')
		return fault_set(fault, -EINVAL, "", "-%c: empty", letter);
	list[(*count)++] = text;
	return 0;
}

/* What getopt could not make sense of. `word` is where it stood. */
static int complain(int letter, const char *command, const char *word, struct fault *fault)
{
	char name[64], hint[64];

	snprintf(hint, sizeof(hint), "sampled %s --help lists the options", command);
	if (strncmp(word, "--", 2) == 0)
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	else
		snprintf(name, sizeof(name), "-%c", optopt);
	if (letter == ':')
		return fault_set(fault, -EINVAL, hint, "%s: needs a value", name);
	if (optopt && strncmp(word, "--", 2) == 0)
		return fault_set(fault, -EINVAL, hint, "%s: takes no value", name);
	return fault_set(fault, -EINVAL, hint, "%s: no such option", name);
}

static int read_one(struct options *o, int letter, const char *text, struct fault *fault)
{
	switch (letter) {
	case 'r':
		if (parse_rate(text, &o->interval_ns))
			return fault_set(fault, -EINVAL, "such as 1000, 2.5khz, 10k or max; at most 1000k",
			                 "-r %s: not a rate", text);
		return 0;
	case 'd':
		if (parse_duration(text, &o->duration_ns))
			return fault_set(fault, -EINVAL, "such as 2.5, 500ms, 10s, 5m or 1h", "-d %s: not a duration",
			                 text);
		return 0;
	case 'f':
		return read_list(o->formats, &o->format_count, 'f', text, fault);
	case 'o':
		return read_list(o->outputs, &o->output_count, 'o', text, fault);
	case 't':
		return read_thread(o, text, fault);
	case OPT_MODE:
		return read_mode(o, text, fault);
	case OPT_COLLAPSED_STYLE:
		return options_read_style(&o->collapsed_style, text, fault);
	case OPT_RECORD:
		if (*text == '\0' || strcmp(text, "-") == 0)
			return fault_set(fault, -EINVAL, "it grows while sampling goes on", "--record %s: a recording is a file", text);
		o->record = text;
		return 0;
	case OPT_OMIT:
		return read_regex(&o->omit, &o->has_omit, "omit", text, fault);
	case OPT_STOP:
		return read_regex(&o->stop, &o->has_stop, "stop", text, fault);
	default:
		return -ENOENT;
	}
}

/* Options without a value. */
static void read_switch(struct options *o, int letter)
{
	switch (letter) {
	case OPT_IDLE:
	case OPT_NO_IDLE:
		o->idle = letter == OPT_IDLE;
		break;
	case OPT_GC:
	case OPT_NO_GC:
		o->gc = letter == OPT_GC;
		break;
	case OPT_JITTER:
	case OPT_NO_JITTER:
		o->jitter = letter == OPT_JITTER;
		break;
	case OPT_SUBPROCESSES:
		o->subprocesses = true;
		break;
	case OPT_STATS:
		o->stats = true;
		break;
	case OPT_REALTIME:
		o->realtime = true;
		break;
	case OPT_SVG:
		o->svg = true;
		break;
	case 'q':
		o->quiet = true;
		break;
	case 'v':
		o->verbose = true;
		break;
	case OPT_VERSION:
		o->action = OPTIONS_VERSION;
		break;
	default:
		o->action = OPTIONS_HELP;
		break;
	}
}

int options_next(int argc, char **argv, const char *letters, const struct option *options, int *ret_which,
                 struct fault *fault)
{
	int at = optind > 0 ? optind : 1, letter;

	optopt = 0;
	letter = getopt_long(argc, argv, letters, options, ret_which);
	if (letter == '?' || letter == ':') {
		/* getopt moves operands behind the options it has read, so the word in question is the last one read. */
		const char *word = optind > at && strncmp(argv[optind - 1], "--", 2) == 0 ? argv[optind - 1] : "-";

		return complain(letter, argv[0], word, fault);
	}
	return letter;
}

int options_read(struct options *ret_options, int argc, char **argv, bool stop_early, struct fault *fault)
{
	struct options *o = ret_options;
	int letter, which = 0, err = 0;

	*o = (struct options){.interval_ns = NS_PER_MS, .mode = MODE_WALL, .idle = true, .gc = true, .jitter = true};
	opterr = 0;
	optind = 0; /* makes glibc's getopt begin anew */
	while (err == 0 && o->action == OPTIONS_GO) {
		letter = options_next(argc, argv, stop_early ? "+:r:d:f:o:t:qvh" : ":r:d:f:o:t:qvh", long_options,
		                      &which, fault);
		if (letter == -1)
			break;
		if (letter < 0) {
			err = letter;
		} else if (letter == OPT_LATER) {
			err = fault_set(fault, -EINVAL, "", "--%s: not built yet", long_options[which].name);
		} else {
			err = read_one(o, letter, optarg, fault);
			if (err == -ENOENT) {
				read_switch(o, letter);
				err = 0;
			}
		}
	}
	if (err) {
		options_release(o);
		return err;
	}
	o->operands = argv + optind;
	o->operand_count = argc - optind;
	return 0;
}

void options_release(struct options *options)
{
	if (options->has_omit)
		regfree(&options->omit);
	if (options->has_stop)
		regfree(&options->stop);
	options->has_omit = options->has_stop = false;
}
