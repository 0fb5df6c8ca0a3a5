/* SPDX-License-Identifier: Apache-2.0 */
/* The service itself: what runs behind `sampled daemon`. */
#ifndef SAMPLED_DAEMON_SERVICE_H
#define SAMPLED_DAEMON_SERVICE_H

#include <stdbool.h>

struct config;

struct service_options {
	const char *config_path; /* of --config, to read again; NULL: CONFIG_PATH */
	const char *socket;      /* of clients; NULL: CONTROL_PATH */
	bool verbose;
};

/* Runs until it is told to end. The configuration stays the caller's; another may take its place on SIGHUP. Returns the exit status. */
int service_run(const struct config *config, const struct service_options *options);

#endif
