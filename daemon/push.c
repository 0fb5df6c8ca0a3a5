/* SPDX-License-Identifier: Apache-2.0 */
/* sampled push: sends what the service has spooled. It reads no process, and needs no capability. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/commands.h"
#include "daemon/error.h"
#include "daemon/help.h"
#include "daemon/option_table.h"
#include "daemon/push_check.h"
#include "daemon/push_config.h"
#include "daemon/push_loop.h"
#include "exporters/sandbox.h"

#define ONCE_GIVE_UP_NS (30 * NS_PER_S)

struct push_options {
	const char *config, *spool, *url, *type, *listen;
	bool check, once;
};

static int replace(char **text, const char *with, struct fault *fault)
{
	char *copy = strdup(with);

	if (!copy)
		return fault_set(fault, -ENOMEM, "", "out of memory");
	free(*text);
	*text = copy;
	return 0;
}

/* --url says all there is to say, unless a file is named besides. */
static int make_config(struct push_config *c, const struct push_options *o, struct fault *fault)
{
	const char *path = o->config ? o->config : o->url ? NULL : PUSH_CONFIG_PATH;
	enum push_type type = push_type_by_name(o->type ? o->type : "pyroscope");
	int err = push_config_init(c, fault);

	if (err)
		return err;
	if (type == PUSH_TYPES)
		err = fault_set(fault, -EINVAL, "pyroscope, pyroscope-push, parca or otlp", "--type %s: no such type",
		                o->type);
	else if (o->type && !o->url)
		err = fault_set(fault, -EINVAL, "", "--type: goes with --url");
	if (!err && path)
		err = push_config_read(c, path, fault);
	if (err == -ENOENT && path && !o->config)
		fault_set(fault, err,
		          "it says where to send: copy /usr/share/doc/sampled/examples/push.conf there, or use --url",
		          "%s: %s", path, strerror(-err));
	if (!err && o->url)
		err = push_config_add(c, "url", type, o->url, fault);
	if (!err && o->spool)
		err = replace(&c->spool, o->spool, fault);
	if (!err && o->listen)
		err = replace(&c->listen, o->listen, fault);
	if (!err)
		err = push_config_check(c, fault);
	if (err)
		push_config_release(c);
	return err;
}

/* Whatever is to be sent, and to whom, is not trusted from here on. */
static int confined_loop(const struct push_config *config, const struct push_loop_options *options, struct fault *fault)
{
	int err = sandbox_pusher(fault);

	if (err == -ENOPKG)
		error_fault(fault, "push");
	else if (err)
		return err;
	*fault = (struct fault){0};
	return push_loop(config, options, NULL, fault);
}

static int push(const struct push_options *o)
{
	struct push_loop_options options = {
		.once = o->once, .feed_fd = -1, .give_up_ns = o->once ? ONCE_GIVE_UP_NS : 0};
	struct push_config config;
	struct fault fault = {0};
	int err;

	push_loop_take_signals();
	err = make_config(&config, o, &fault);
	if (err)
		return error_usage(&fault);
	push_check_warn(&config);
	if (o->check && push_check_files(&config, &fault)) {
		push_config_release(&config);
		return error_usage(&fault);
	}
	if (!o->check) {
		err = confined_loop(&config, &options, &fault);
		if (err && fault.err)
			error_fault(&fault, "push");
	}
	push_config_release(&config);
	return err ? EXIT_FAILED : EXIT_DONE;
}

int push_main(int argc, char **argv)
{
	struct push_options o = {0};
	const struct option_row rows[] = {
		{"config", .text = &o.config}, {"check", .yes = &o.check},
		{"once", .yes = &o.once},      {"spool", .text = &o.spool},
		{"url", .text = &o.url},       {"type", .text = &o.type},
		{"listen", .text = &o.listen}, {.name = NULL},
	};
	int status;

	if (command_without_operands(argc, argv, rows, "sampled push --help lists the options", &status))
		return status;
	return push(&o);
}
