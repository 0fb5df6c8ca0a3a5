/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/commands.h"

#include "daemon/error.h"
#include "daemon/help.h"
#include "daemon/options.h"

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
		status = options.action == OPTIONS_HELP ? help_print(argv[0]) : help_print_version();
	options_release(&options);
	return status;
}
