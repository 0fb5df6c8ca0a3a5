/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/commands.h"

#include <errno.h>

#include "daemon/error.h"
#include "daemon/filters.h"
#include "daemon/help.h"
#include "daemon/options.h"

static int print_about(const char *command, enum option_action action)
{
	return action == OPTIONS_HELP ? help_print(command) : help_print_version();
}

int command_with_options(int argc, char **argv, bool stop_early, int (*run)(const struct options *options))
{
	struct options options;
	struct fault fault;
	int status;

	if (options_read(&options, argc, argv, stop_early, &fault))
		return error_usage(&fault);
	if (options.action == OPTIONS_GO)
		status = run(&options);
	else
		status = print_about(argv[0], options.action);
	options_release(&options);
	return status;
}

int command_without_operands(int argc, char **argv, const struct option_row *rows, const char *hint, int *ret_status)
{
	enum option_action action;
	struct fault fault;
	int first = option_table_read(rows, NULL, argc, argv, false, &action, &fault);

	if (first >= 0 && action == OPTIONS_GO && first == argc)
		return 0;
	if (first >= 0 && action != OPTIONS_GO) {
		*ret_status = print_about(argv[0], action);
		return 1;
	}
	if (first >= 0)
		fault_set(&fault, -EINVAL, hint, "%s: %s takes no operands", argv[first], argv[0]);
	*ret_status = error_usage(&fault);
	return 1;
}

int command_with_files(int argc, char **argv, const struct file_command *command)
{
	struct option_row shared[FILTER_ROWS];
	enum option_action action;
	struct fault fault;
	int first, err;

	filters_rows(command->filters, shared);
	first = option_table_read(command->rows, shared, argc, argv, false, &action, &fault);
	if (first < 0)
		return error_usage(&fault);
	if (action != OPTIONS_GO)
		return print_about(argv[0], action);
	err = filters_finish(command->filters, &fault);
	if (!err)
		err = command->check(command->self, argv + first, argc - first, &fault);
	return err ? error_usage(&fault) : command->run(command->self, argv + first, argc - first);
}
