/* SPDX-License-Identifier: Apache-2.0 */
/* sampled daemon [--config FILE] [--check] [-v] */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "daemon/commands.h"
#include "daemon/config.h"
#include "daemon/error.h"
#include "daemon/help.h"
#include "daemon/option_table.h"
#include "daemon/service.h"
#include "daemon/terminal.h"

static void say_mistake(void *context, const struct fault *fault)
{
	(void)context;
	error_usage(fault);
}

static const char *plural(size_t count)
{
	return count == 1 ? "" : "s";
}

/* One line of what was read. Returns the exit status. */
static int print_summary(const struct config *c)
{
	struct buf line = {0};
	int err;

	buf_printf(&line, "%zu file%s, %zu rule%s, %zu trigger%s, %.4g samples a second, ", c->file_count,
	           plural(c->file_count), c->rule_count, plural(c->rule_count), c->trigger_count,
	           plural(c->trigger_count), (double)NS_PER_S / (double)c->service.interval_ns);
	buf_printf(&line, "dumps in %s, %s%s: no mistake found\n", c->dump.directory,
	           c->push.spool ? "spool in " : "no pushing", c->push.spool ? c->push.spool : "");
	err = line.err ? line.err : terminal_print(buf_text(&line));
	buf_release(&line);
	if (err)
		error_note("cannot write to standard output: %s", strerror(-err));
	return err ? EXIT_FAILED : EXIT_DONE;
}

static int run(const struct service_options *options, bool check)
{
	struct config *config;
	int status, err = config_read(&config, options->config_path, say_mistake, NULL);

	if (err)
		return err == -ENOMEM ? EXIT_FAILED : EXIT_USAGE;
	status = check ? print_summary(config) : service_run(config, options);
	config_free(config);
	return status;
}

int daemon_main(int argc, char **argv)
{
	struct service_options options = {0};
	bool check = false;
	const struct option_row rows[] = {
		{"config", .text = &options.config_path},
		{"check", .yes = &check},
		{"socket", .text = &options.socket},
		{"verbose", 'v', .yes = &options.verbose},
		{.name = NULL},
	};
	int status;

	if (command_without_operands(argc, argv, rows, "its rules say which processes", &status))
		return status;
	return run(&options, check);
}
