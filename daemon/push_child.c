/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/push_child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/helper.h"
#include "base/tempfile.h"
#include "daemon/error.h"
#include "daemon/push_loop.h"
#include "exporters/sandbox.h"
#include "daemon/spool_write.h"
#include "exporters/facts.h"
#include "exporters/service_name.h"

#define GIVE_UP_NS (15 * NS_PER_S)

enum { LABELS_MAX = 6 };

/* --- the child --- */

static void remove_spool(const char *path)
{
	struct spool_names names;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0) {
		spool_sweep(fd);
		if (spool_list(fd, &names) == 0) {
			for (size_t i = 0; i < names.count; i++)
				spool_remove(fd, names.items[i].text);
			spool_names_release(&names);
		}
		close(fd);
	}
	rmdir(path);
}

static int send_all(const char *spool, enum push_type type, const char *url, int feed_fd, struct fault *fault)
{
	struct push_loop_options options = {.once = true, .feed_fd = feed_fd, .give_up_ns = GIVE_UP_NS};
	struct push_counts counts = {0};
	struct push_config config;
	int err = push_config_init(&config, fault);

	if (err)
		return err;
	config.refused_bytes = 0; /* the spool goes, and who waits has the profile */
	err = push_config_add(&config, push_type_name(type), type, url, fault);
	if (!err) {
		free(config.spool);
		config.spool = strdup(spool);
		err = config.spool ? 0 : fault_set(fault, -ENOMEM, "", "out of memory");
	}
	if (!err)
		err = push_loop(&config, &options, &counts, fault);
	push_config_release(&config);
	return err;
}

/* From here on. Its end comes with its parent's, however that ends. */
_Noreturn static void become(const char *spool, enum push_type type, const char *url, int feed_fd, pid_t parent)
{
	struct fault fault = {0};
	sigset_t interrupt;
	int err;

	/* SIGTERM, which the loop takes, is blocked since main(). */
	signal(SIGINT, SIG_IGN); /* Ctrl-C at the terminal ends the sampling, after which there is something to send */
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	sigprocmask(SIG_UNBLOCK, &interrupt, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	/* It stays its owner's process, as who its files belong to. */
	err = getppid() == parent ? sandbox_pusher(&fault) : fault_set(&fault, -ECHILD, "", "who samples has ended");
	if (!err || err == -ENOPKG) /* it is confined as far as it can be here */
		err = send_all(spool, type, url, feed_fd, &fault);
	if (err && fault.err)
		error_fault(&fault, "cannot push to %s", url);
	remove_spool(spool);
	_exit(err ? EXIT_FAILED : EXIT_DONE);
}

/* --- who feeds it --- */

static int fork_child(struct push_child *c, const char *spool, enum push_type type)
{
	pid_t parent = getpid();
	int feed[2];

	if (pipe2(feed, O_CLOEXEC) != 0)
		return -errno;
	c->pid = helper_fork();
	if (c->pid < 0) {
		int err = -errno;

		close(feed[0]);
		close(feed[1]);
		return err;
	}
	if (c->pid == 0) {
		close(feed[1]);
		close(c->dir_fd);
		become(spool, type, c->url, feed[0], parent);
	}
	close(feed[0]);
	c->feed_fd = feed[1];
	return 0;
}

int push_child_start(struct push_child **ret_child, enum push_type type, const char *url, struct fault *fault)
{
	struct push_child *c = calloc(1, sizeof(*c));
	char *spool = NULL;
	int err = -ENOMEM;

	if (!c)
		return fault_set(fault, err, "", "out of memory");
	c->dir_fd = -1;
	c->url = strdup(url);
	if (!c->url || asprintf(&spool, "%s/sampled-push-XXXXXX", tempfile_folder()) < 0) {
		spool = NULL;
		goto fail;
	}
	if (!mkdtemp(spool)) {
		err = -errno;
		goto fail;
	}
	c->dir_fd = open(spool, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	err = c->dir_fd >= 0 ? fork_child(c, spool, type) : -errno;
	if (err) {
		rmdir(spool);
		goto fail;
	}
	free(spool);
	*ret_child = c;
	return 0;
fail:
	if (c->dir_fd >= 0)
		close(c->dir_fd);
	free(spool);
	free(c->url);
	free(c);
	return fault_set(fault, err, "", "%s", strerror(-err));
}

/* The label texts, which are the struct's. */
struct described {
	struct label labels[LABELS_MAX];
	size_t count;
	char *service;
	char host[256], pid[16], version[32], snapshot[24];
};

static void add_label(struct described *d, const char *name, const char *value)
{
	if (value && *value)
		d->labels[d->count++] = (struct label){name, value};
}

static void describe(struct described *d, const struct profile *profile)
{
	const struct process *first = profile->process_count ? &profile->processes[0] : NULL;

	d->service = service_name(first && first->name ? first->name : "");
	add_label(d, "service_name", d->service);
	if (gethostname(d->host, sizeof(d->host) - 1) == 0)
		add_label(d, "host", d->host);
	if (first && profile->process_count == 1) {
		snprintf(d->pid, sizeof(d->pid), "%" PRId32, first->pid);
		add_label(d, "pid", d->pid);
	}
	if (first && first->version) {
		facts_version_text(d->version, sizeof(d->version), first->version);
		add_label(d, "version", d->version);
	}
	if (profile->sequence) {
		snprintf(d->snapshot, sizeof(d->snapshot), "%" PRIu64, profile->sequence);
		add_label(d, "snapshot", d->snapshot);
	}
}

int push_child_send(struct push_child *child, const struct profile *profile)
{
	struct described d = {0};
	struct spool_item item = {.from_ns = profile->wall_start_ns, .profile = profile};
	struct spool_counts counts = {0};
	struct fault fault = {0};
	int err;

	describe(&d, profile);
	item.labels = (struct labels){d.labels, d.count};
	item.until_ns = item.from_ns;
	if (profile->t_end_ns > profile->t_start_ns)
		item.until_ns += profile->t_end_ns - profile->t_start_ns;
	err = spool_write(child->dir_fd, &item, 1, PUSH_SPOOL_BYTES, &counts, &fault);
	if (!err && counts.items == 0)
		err = fault.err ? fault.err : -EIO;
	if (err)
		error_fault(&fault, "cannot push to %s", child->url);
	else if (counts.pruned_items)
		error_note("push: small stacks are together as (other), for servers take no more than %d samples",
		           SPOOL_SAMPLES_MAX);
	free(d.service);
	return err;
}

int push_child_finish(struct push_child *child)
{
	int status = 0;
	pid_t ended;

	if (!child)
		return 0;
	close(child->feed_fd);
	close(child->dir_fd);
	do
		ended = waitpid(child->pid, &status, 0);
	while (ended < 0 && errno == EINTR);
	helper_forget(child->pid);
	if (ended == child->pid && WIFSIGNALED(status))
		error_note("cannot push to %s: the sender was ended by signal %d", child->url, WTERMSIG(status));
	free(child->url);
	free(child);
	return ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_DONE ? 0 : -EIO;
}
