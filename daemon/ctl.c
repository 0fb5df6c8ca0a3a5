/* SPDX-License-Identifier: Apache-2.0 */
/* sampled ctl: what can be said to the service. All that can be wrong with the words is found here; the service reads them again. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/tempfile.h"
#include "daemon/commands.h"
#include "daemon/control_options.h"
#include "daemon/control_protocol.h"
#include "daemon/ctl_talk.h"
#include "daemon/error.h"
#include "daemon/help.h"
#include "daemon/nearest.h"
#include "daemon/option_table.h"
#include "daemon/output.h"
#include "daemon/parse.h"
#include "daemon/result.h"

enum operands { NO_OPERAND, ONE_PID, OF_DUMP };

static const struct ctl_command {
	const char *name;
	enum operands operands;
	bool json;
} commands[] = {
	{"status", NO_OPERAND, true}, {"list", NO_OPERAND, true}, {"attach", ONE_PID, false},
	{"detach", ONE_PID, false},   {"dump", OF_DUMP, false},   {"reload", NO_OPERAND, false},
};

struct ctl {
	const struct ctl_command *command;
	const char *socket; /* NULL: CONTROL_PATH */
	const char *output; /* -o; NULL: not given */
	bool json;
	struct dump_request dump;
	struct buf words; /* to be sent */
};

static int find_command(struct ctl *ctl, const char *name, struct fault *fault)
{
	struct nearest near = {.word = name};
	char hint[64];

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(name, commands[i].name) == 0) {
			ctl->command = &commands[i];
			return 0;
		}
		nearest_offer(&near, commands[i].name);
	}
	nearest_hint(&near, "", "status list attach detach dump reload", hint, sizeof(hint));
	return fault_set(fault, -EINVAL, hint, "ctl %s: no such command", name);
}

/* The words to send, from those that were read. */
static int make_words(struct ctl *ctl, char **operands, int count, struct fault *fault)
{
	const char *name = ctl->command->name;
	pid_t pid;
	int err;

	if (ctl->command->operands == OF_DUMP) {
		err = dump_request_finish(&ctl->dump, operands, count, fault);
		if (!err && !ctl->dump.format) {
			err = output_choose_format(NULL, ctl->output, &ctl->dump.format, fault);
			/* What a name implies is held to the same. */
			err = err ? err : dump_request_finish(&ctl->dump, operands, count, fault);
		}
		dump_request_words(&ctl->dump, &ctl->words);
		return err;
	}
	if (ctl->command->operands == NO_OPERAND && count > 0)
		return fault_set(fault, -EINVAL, "", "ctl %s: takes no %.64s", name, operands[0]);
	if (ctl->command->operands == ONE_PID && count != 1)
		return fault_set(fault, -EINVAL, "", "ctl %s: takes one process", name);
	if (ctl->command->operands == ONE_PID && parse_pid(operands[0], &pid))
		return fault_set(fault, -EINVAL, "a process is named by its number", "%.64s: not a process id",
		                 operands[0]);
	buf_add(&ctl->words, name, strlen(name) + 1);
	if (count == 1)
		buf_add(&ctl->words, operands[0], strlen(operands[0]) + 1);
	if (ctl->json)
		buf_add(&ctl->words, "--json", sizeof("--json"));
	return 0;
}

/* Into a stem: what stands for the processes in a file's name. */
static void add_subject(struct buf *to, const struct dump_request *dump)
{
	if (dump->pid)
		buf_printf(to, "%d", (int)dump->pid);
	else
		buf_puts(to, dump->rule[0] ? "" : "all");
	for (const char *c = dump->rule; *c; c++)
		buf_putc(to, isalnum((unsigned char)*c) || *c == '.' ? *c : '_');
}

/* The file that a dump is to be in: owned. NULL: no memory. */
static char *name_output(const struct ctl *ctl)
{
	const time_t now = (time_t)(ctl->dump.now_ns / NS_PER_S);
	struct buf name = {0};
	char time_text[32];
	struct tm local;
	char *path;

	if (ctl->output)
		return strdup(ctl->output);
	localtime_r(&now, &local);
	strftime(time_text, sizeof(time_text), "%Y%m%d-%H%M%S", &local);
	buf_puts(&name, "sampled-");
	add_subject(&name, &ctl->dump);
	buf_printf(&name, "-%s%s", time_text, ctl->dump.format->suffix);
	path = name.err ? NULL : strdup(buf_text(&name));
	buf_release(&name);
	return path;
}

static int talk(const struct ctl *ctl, int pass_fd, struct writer *to)
{
	return ctl_talk(ctl->socket ? ctl->socket : CONTROL_PATH, ctl->words.data, ctl->words.bytes, pass_fd, to);
}

/* A file: whole, or not there at all. */
static int ask_to_file(const struct ctl *ctl, const char *path, struct writer *to)
{
	struct fault fault = {0};
	int status;

	if (writer_open(to, path, &fault)) {
		error_fault(&fault, "cannot write %s", path);
		return EXIT_FAILED;
	}
	status = talk(ctl, to->fd, to);
	if (status != EXIT_DONE) {
		writer_abort(to);
		return status;
	}
	if (writer_close(to, &fault)) {
		error_fault(&fault, "cannot write %s", path);
		return EXIT_FAILED;
	}
	return result_announce(path) ? EXIT_FAILED : EXIT_DONE;
}

static int copy_out(int from, const char *path, struct writer *to, struct fault *fault)
{
	char piece[16384];
	ssize_t got;
	unsigned tries = 0;
	int err;

	do
		err = writer_open(to, path, fault);
	while (result_waits_for_reader(err, path, &tries));
	if (err)
		return err;
	for (off_t at = 0; (got = pread(from, piece, sizeof(piece), at)) > 0; at += got)
		writer_add(to, piece, (size_t)got);
	return writer_finish(to, got < 0 ? -errno : 0, fault);
}

/* A stream: kept until it is there to its end, so that neither half a reply is printed nor the service kept waiting by who reads us. */
static int ask_to_stream(const struct ctl *ctl, const char *path, struct writer *to)
{
	int fd = tempfile_open(NULL), status, err;
	struct fault fault = {0};

	if (fd < 0)
		fd = memfd_create("sampled-ctl", MFD_CLOEXEC);
	if (fd < 0) {
		error_note("cannot keep the reply: %s", strerror(errno));
		return EXIT_FAILED;
	}
	writer_open_fd(to, fd);
	status = talk(ctl, -1, to);
	err = writer_close(to, &fault);
	if (err)
		error_fault(&fault, "cannot keep the reply");
	else if (copy_out(fd, path, to, &fault))
		error_fault(&fault, "cannot write %s", writer_is_stdout(path) ? "standard output" : path);
	close(fd);
	return fault.err && status == EXIT_DONE ? EXIT_FAILED : status;
}

static int ask(const struct ctl *ctl)
{
	const char *stream = ctl->command->operands != OF_DUMP                   ? "-"
			     : ctl->output && writer_is_stream(ctl->output) ? ctl->output
									    : NULL;
	struct writer *to = malloc(sizeof(*to));
	char *path = stream ? NULL : name_output(ctl);
	int status = EXIT_FAILED;

	if (!to || (!stream && !path))
		error_note("out of memory");
	else
		status = stream ? ask_to_stream(ctl, stream, to) : ask_to_file(ctl, path, to);
	free(path);
	free(to);
	return status;
}

/* The options before the command, then those behind it. 1 go on, 0 *ret_status says how it ends, or -EINVAL with *fault filled. */
static int read_options(struct ctl *ctl, int argc, char **argv, int *ret_status, struct fault *fault)
{
	struct option_row rows[4] = {{"socket", .text = &ctl->socket}, {.name = NULL}},
			  more[DUMP_ROWS] = {{.name = NULL}};
	enum option_action action;
	int first = option_table_read(rows, NULL, argc, argv, true, &action, fault);

	if (first >= 0 && action == OPTIONS_GO) {
		if (first == argc)
			return fault_set(fault, -EINVAL, "status list attach detach dump reload", "ctl: no command");
		if (find_command(ctl, argv[first], fault))
			return -EINVAL;
		if (ctl->command->json)
			rows[1] = (struct option_row){"json", .yes = &ctl->json};
		if (ctl->command->operands == OF_DUMP) {
			rows[1] = (struct option_row){"output", 'o', .text = &ctl->output};
			dump_request_rows(&ctl->dump, more);
		}
		argv += first;
		argc -= first;
		argv[0] = (char *)"ctl"; /* for what is said of an option */
		first = option_table_read(rows, more, argc, argv, false, &action, fault);
	}
	if (first < 0)
		return first;
	if (action != OPTIONS_GO) {
		*ret_status = action == OPTIONS_HELP ? help_print("ctl") : help_print_version();
		return 0;
	}
	return make_words(ctl, argv + first, argc - first, fault) ? -EINVAL : 1;
}

int ctl_main(int argc, char **argv)
{
	struct ctl ctl = {.dump.now_ns = clock_read_ns(CLOCK_REALTIME)};
	struct fault fault = {0};
	int status = EXIT_FAILED, go = read_options(&ctl, argc, argv, &status, &fault);

	if (go < 0)
		status = error_usage(&fault);
	else if (go > 0)
		status = ask(&ctl);
	buf_release(&ctl.words);
	return status;
}
