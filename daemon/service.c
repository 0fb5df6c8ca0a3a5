/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/service.h"

#include "daemon/error.h"

int service_run(const struct config *config, const struct service_options *options)
{
	(void)config;
	(void)options;
	error_note("daemon: not built yet (--check is)");
	return EXIT_FAILED;
}
