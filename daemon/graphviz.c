/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/graphviz.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/helper.h"
#include "base/utf8.h"

extern char **environ;

/* What goes into dot and comes out of it. Files in memory: nobody waits for anybody, and what dot left behind when it failed is dropped. */
struct streams {
	int in_fd, out_fd, error_fd;
};

bool graphviz_is_meant(const struct format *format, const char *path)
{
	const char *dot = path ? strrchr(path, '.') : NULL;

	return dot && strcmp(format->name, "dot") == 0 && strcasecmp(dot, ".svg") == 0;
}

static void streams_close(const struct streams *s)
{
	if (s->in_fd >= 0)
		close(s->in_fd);
	if (s->out_fd >= 0)
		close(s->out_fd);
	if (s->error_fd >= 0)
		close(s->error_fd);
}

static int streams_open(struct streams *ret_streams, struct fault *fault)
{
	struct streams s = {.in_fd = memfd_create("graph", MFD_CLOEXEC),
	                    .out_fd = memfd_create("svg", MFD_CLOEXEC),
	                    .error_fd = memfd_create("errors", MFD_CLOEXEC)};

	if (s.in_fd < 0 || s.out_fd < 0 || s.error_fd < 0) {
		int err = -errno;

		streams_close(&s);
		return fault_set(fault, err, "", "%s", strerror(-err));
	}
	*ret_streams = s;
	return 0;
}

static int spawn(pid_t *ret_pid, const struct streams *s, const char *option)
{
	char *const argv[] = {(char *)"dot", (char *)option, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int err = posix_spawn_file_actions_init(&actions);

	if (err)
		return -err;
	err = posix_spawnattr_init(&attributes);
	if (err) {
		posix_spawn_file_actions_destroy(&actions);
		return -err;
	}
	/* Ours are blocked, and it would inherit that. */
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	err = posix_spawn_file_actions_adddup2(&actions, s->in_fd, STDIN_FILENO);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, s->out_fd, STDOUT_FILENO);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, s->error_fd, STDERR_FILENO);
	if (!err) {
		helper_begin();
		err = posix_spawnp(ret_pid, "dot", &actions, &attributes, argv, environ);
		helper_note(err ? 0 : *ret_pid);
	}
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return -err;
}

/* The first line of what dot said. */
static void first_line(const struct streams *s, struct buf *to)
{
	char text[200];
	ssize_t got = pread(s->error_fd, text, sizeof(text) - 1, 0);

	text[got > 0 ? got : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	utf8_add_safe(to, text);
}

static int run(const struct streams *s, const char *option, struct fault *fault)
{
	struct buf said = {0};
	int status, err;
	pid_t pid = -1;

	err = spawn(&pid, s, option);
	if (err == -ENOENT)
		return fault_set(fault, err, "install graphviz; without it -f dot writes the graph as NAME.dot",
		                 "Graphviz is not installed: no program dot was found");
	if (err)
		return fault_set(fault, err, "", "cannot start Graphviz' dot: %s", strerror(-err));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return fault_set(fault, -errno, "", "%s", strerror(errno));
	helper_forget(pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	first_line(s, &said);
	if (WIFSIGNALED(status))
		err = fault_set(fault, -EIO, buf_text(&said), "Graphviz' dot was ended by signal %d", WTERMSIG(status));
	else
		err = fault_set(fault, -EIO, buf_text(&said), "Graphviz' dot failed with status %d",
		                WEXITSTATUS(status));
	buf_release(&said);
	return err;
}

int graphviz_check(struct fault *fault)
{
	struct streams s = {.in_fd = -1, .out_fd = -1, .error_fd = -1};
	int err = streams_open(&s, fault);

	if (!err) {
		err = run(&s, "-V", fault);
		streams_close(&s);
	}
	return err;
}

static int write_source(const struct callgraph *graph, const struct export_options *options, int fd,
                        struct fault *fault)
{
	struct writer *source = malloc(sizeof(*source));
	int err;

	if (!source)
		return fault_set(fault, -ENOMEM, "", "out of memory");
	writer_open_fd(source, fd);
	format_by_name("dot")->write_callgraph(graph, options, source);
	err = writer_close(source, fault);
	free(source);
	if (!err && lseek(fd, 0, SEEK_SET) != 0)
		err = fault_set(fault, -errno, "", "%s", strerror(errno));
	return err;
}

static int copy(int fd, struct writer *to, struct fault *fault)
{
	char piece[16384];
	off_t at = 0;
	ssize_t got;

	while ((got = pread(fd, piece, sizeof(piece), at)) > 0) {
		writer_add(to, piece, (size_t)got);
		at += got;
	}
	return got < 0 ? fault_set(fault, -errno, "", "%s", strerror(errno)) : 0;
}

int graphviz_write(const struct callgraph *graph, const struct export_options *options, struct writer *to,
                   struct fault *fault)
{
	struct streams s = {.in_fd = -1, .out_fd = -1, .error_fd = -1};
	int err = streams_open(&s, fault);

	if (err)
		return err;
	err = write_source(graph, options, s.in_fd, fault);
	if (!err)
		err = run(&s, "-Tsvg", fault);
	if (!err)
		err = copy(s.out_fd, to, fault);
	streams_close(&s);
	return err;
}

int graphviz_write_profile(const struct profile *profile, const struct export_options *options, struct writer *to,
                           struct fault *fault)
{
	struct callgraph graph;
	int err;

	callgraph_init(&graph);
	err = callgraph_add_profile(&graph, profile);
	if (err)
		fault_set(fault, err, "", "%s", strerror(-err));
	else
		err = graphviz_write(&graph, options, to, fault);
	callgraph_release(&graph);
	return err;
}
