/* SPDX-License-Identifier: Apache-2.0 */
/* sampled doctor [PID]: what holds on this host and for one process, line by line, with what helps where there is
 * one. */
#include "daemon/doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "daemon/commands.h"
#include "daemon/dump.h"
#include "daemon/error.h"
#include "daemon/help.h"
#include "daemon/opening.h"
#include "daemon/parse.h"
#include "daemon/terminal.h"
#include "base/utf8.h"

#define PATIENCE_NS (2 * NS_PER_S)

void doctor_line(struct doctor *d, enum verdict verdict, const char *mend, const char *finding, ...)
{
	static const struct {
		const char *word, *color;
	} verdicts[] = {
		[VERDICT_OK] = {"ok", "\033[32m"},
		[VERDICT_WARN] = {"warn", "\033[33m"},
		[VERDICT_FAIL] = {"fail", "\033[31m"},
	};
	struct buf text = {0};
	char *said;
	va_list args;

	va_start(args, finding);
	if (vasprintf(&said, finding, args) < 0)
		said = NULL;
	va_end(args);
	buf_printf(&text, "%s%-4s%s  ", d->color ? verdicts[verdict].color : "", verdicts[verdict].word,
	           d->color ? "\033[0m" : "");
	utf8_add_safe(&text, said ? said : finding);
	if (mend && *mend) {
		buf_puts(&text, " (");
		utf8_add_safe(&text, mend);
		buf_putc(&text, ')');
	}
	buf_putc(&text, '\n');
	if (!d->err)
		d->err = text.err ? text.err : terminal_print(buf_text(&text));
	d->failed |= verdict == VERDICT_FAIL;
	buf_release(&text);
	free(said);
}

static void count_interpreters(struct doctor *d, const struct dump *dump)
{
	uint32_t interpreters = 0, read = 0;

	for (uint32_t i = 0; i < dump->thread_count; i++) {
		/* Sorted by interpreter. */
		interpreters += i == 0 || dump->threads[i].interpreter != dump->threads[i - 1].interpreter;
		read += dump->threads[i].sampled;
	}
	doctor_line(d, read < dump->thread_count ? VERDICT_WARN : VERDICT_OK, "",
	            "%u interpreter%s, %u Python thread%s, %u read whole", interpreters, interpreters == 1 ? "" : "s",
	            dump->thread_count, dump->thread_count == 1 ? "" : "s", read);
}

static void sample_process(struct doctor *d, struct target *target)
{
	static const struct sampler_options sampling = {.gc = true};
	struct dump dump;
	int err = dump_take(&dump, target, &sampling, &(struct values_options){0}, NULL);

	if (err) {
		doctor_line(d, VERDICT_FAIL, "", "its threads cannot be read: %s", strerror(-err));
		return;
	}
	count_interpreters(d, &dump);
	for (uint32_t i = 0; i < dump.thread_count; i++)
		if (dump.threads[i].tid) {
			doctor_cpu_data(d, target_proc(target)->pid, (pid_t)dump.threads[i].tid);
			break;
		}
	dump_release(&dump);
}

static enum exit_status examine_process(struct doctor *d, pid_t pid)
{
	struct target *target;
	struct fault fault;
	int err = opening_wait(&target, pid, PATIENCE_NS, &fault);
	const struct pyproc *proc;

	if (err) {
		doctor_line(d, VERDICT_FAIL, fault.hint, "process %d: %s", (int)pid, fault.why);
		return error_status(err);
	}
	proc = target_proc(target);
	doctor_line(d, VERDICT_OK, "", "process %d can be read", (int)pid);
	doctor_namespaces(d, pid);
	doctor_line(d, VERDICT_OK, "", "Python %s%s in %s", proc->version_text,
	            proc->abi.free_threaded ? " (free-threaded)" : "", proc->binary);
	doctor_line(d, VERDICT_OK, "", "interpreter found by %s", proc->found_by);
	doctor_native(d, target);
	sample_process(d, target);
	target_free(target);
	return EXIT_DONE;
}

int doctor_main(int argc, char **argv)
{
	struct doctor doctor = {.color = terminal_color(STDOUT_FILENO)};
	struct fault fault;
	enum exit_status status = EXIT_DONE;
	pid_t pid = 0;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0)
			return help_print("doctor");
		if (argv[i][0] == '-') {
			fault_set(&fault, -EINVAL, "sampled doctor [PID]", "%.64s: no such option", argv[i]);
			return error_usage(&fault);
		}
		if (pid || parse_pid(argv[i], &pid)) {
			fault_set(&fault, -EINVAL, "sampled doctor [PID]",
			          pid ? "%s: one process at a time" : "%s: not a process id", argv[i]);
			return error_usage(&fault);
		}
	}
	doctor_host(&doctor);
	if (pid)
		status = examine_process(&doctor, pid);
	else if (doctor.failed)
		status = EXIT_FAILED;
	if (doctor.err) {
		error_note("cannot write to standard output: %s", strerror(-doctor.err));
		return EXIT_FAILED;
	}
	return (int)status;
}
