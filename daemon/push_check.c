/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/push_check.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "daemon/error.h"
#include "daemon/push_queue.h"
#include "daemon/push_secret.h"

#define GROUP "sampled"
enum { NOBODY = 65534 };

static bool is_this_host(const char *host)
{
	static const char *const names[] = {"127.", "localhost", "[::1]"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncasecmp(host, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

void push_check_warn(const struct push_config *config)
{
	static const char plain[] = "http://";

	for (size_t i = 0; i < config->destination_count; i++) {
		const struct push_destination *d = &config->destinations[i];

		if ((d->bearer_file || d->password_file) && strncasecmp(d->url, plain, strlen(plain)) == 0 &&
		    !is_this_host(d->url + strlen(plain)))
			error_note(
				"push to %s: its credential goes over plain http, where others can read it (https://…)",
				d->name);
	}
}

/* As a DynamicUser= in the spool's group. */
static int become_service(struct fault *fault)
{
	const struct group *group;
	gid_t gid = NOBODY;

	if (geteuid() != 0 || getenv("CREDENTIALS_DIRECTORY"))
		return 0; /* the one that it will run as */
	group = getgrnam(GROUP);
	if (group)
		gid = group->gr_gid;
	if (setgroups(1, &gid) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0)
		return fault_set(fault, -errno, "", "cannot become the service's user: %s", strerror(errno));
	return 0;
}

static int check_secret(const struct push_destination *d, const char *name, struct fault *fault)
{
	static const char apart[] = "sampled-push.service has a user of its own: put the file into " PUSH_SECRET_FOLDER
				    ", and name it without a path";
	struct push_secret secret = {0};
	struct fault why = {0};
	char path[PATH_MAX];
	int err;

	push_secret_path(path, sizeof(path), name);
	err = push_secret_read(&secret, path, &why);
	push_secret_release(&secret);
	return err ? fault_set(fault, err, err == -EACCES ? apart : why.hint, "destination %s: cannot read %s: %s",
	                       d->name, path, why.why)
	           : 0;
}

static int check_ca_file(const struct push_destination *d, struct fault *fault)
{
	int fd = d->ca_file ? open(d->ca_file, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;

	if (fd < 0 && d->ca_file)
		return fault_set(fault, -errno, "", "destination %s: cannot read %s: %s", d->name, d->ca_file,
		                 strerror(errno));
	if (fd >= 0)
		close(fd);
	return 0;
}

/* Credentials with a path, or those without. */
static int check_secrets(const struct push_config *config, bool with_path, struct fault *fault)
{
	int err = 0;

	for (size_t i = 0; i < config->destination_count && !err; i++) {
		const struct push_destination *d = &config->destinations[i];
		const char *name = d->bearer_file ? d->bearer_file : d->password_file;

		if (name && (strchr(name, '/') != NULL) == with_path)
			err = check_secret(d, name, fault);
	}
	return err;
}

int push_check_files(const struct push_config *config, struct fault *fault)
{
	struct push_queue queue;
	struct fault why = {0};
	int err = check_secrets(config, false, fault);

	if (!err)
		err = become_service(fault);
	if (!err)
		err = check_secrets(config, true, fault);
	for (size_t i = 0; i < config->destination_count && !err; i++)
		err = check_ca_file(&config->destinations[i], fault);
	if (err)
		return err;
	err = push_queue_open(&queue, config, &why);
	if (err)
		return fault_set(fault, err, why.hint, "cannot use the spool %s: %s", config->spool, why.why);
	push_queue_close(&queue);
	return 0;
}
