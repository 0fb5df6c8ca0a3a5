/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/names.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/helper.h"
#include "exporters/names_child.h"
#include "exporters/names_fetch.h"
#include "exporters/names_state.h"

#define TIMEOUT_NS (60 * NS_PER_S)

enum {
	ADD_WAIT_MS = 100, /* for the child to take in modules; it does nothing else that lasts */
	END_WAIT_MS = 200,
};

static int make_pair(int pair[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0 ? 0 : -errno;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Its end of the pair goes to the naming child; -1: there is none. */
static pid_t fork_fetcher(const struct names_options *options, int *ret_fd)
{
	pid_t pid;
	int pair[2];

	*ret_fd = -1;
	if (!options->debuginfod || !options->urls || !options->urls[0] || make_pair(pair))
		return 0;
	pid = helper_fork();
	if (pid == 0)
		names_fetch(pair[1], options->urls, options->bytes_max);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return 0;
	}
	*ret_fd = pair[0];
	return pid;
}

int names_new(struct names **ret_names, const struct names_options *options)
{
	struct names *n = calloc(1, sizeof(*n));
	int pair[2], fetch_fd, err;

	if (!n)
		return -ENOMEM;
	n->show = options->show;
	n->timeout_ns = options->timeout_ns ? options->timeout_ns : TIMEOUT_NS;
	err = make_pair(pair);
	if (err) {
		free(n);
		return err;
	}
	n->fetcher = fork_fetcher(options, &fetch_fd);
	n->child = helper_fork();
	if (n->child == 0)
		names_child(pair[1], fetch_fd);
	err = n->child < 0 ? -errno : 0;
	close(pair[1]);
	close_fd(fetch_fd);
	n->socket_fd = pair[0];
	pthread_mutex_init(&n->lock, NULL);
	if (err) {
		n->child = 0;
		names_free(n);
		return err;
	}
	*ret_names = n;
	return 0;
}

/* Its end comes with the socket's; where it does not, it is made. */
static void end(pid_t *pid)
{
	static const struct timespec pause = {.tv_nsec = (long)NS_PER_MS};
	pid_t ended = 0;

	if (*pid <= 0)
		return;
	for (unsigned ms = 0; ms < END_WAIT_MS && (ended = waitpid(*pid, NULL, WNOHANG)) == 0; ms++)
		nanosleep(&pause, NULL);
	if (ended == 0 && kill(*pid, SIGKILL) == 0)
		while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
			;
	helper_forget(*pid);
	*pid = 0;
}

/* The socket's number stays taken until the end, for another thread may be about to use it. */
void names_break(struct names *names)
{
	shutdown(names->socket_fd, SHUT_RDWR);
	end(&names->child);
	end(&names->fetcher);
}

void names_free(struct names *names)
{
	if (!names)
		return;
	names_break(names);
	close(names->socket_fd);
	for (uint32_t i = 0; i < names->module_count; i++) {
		free(names->modules[i].path);
		free(names->modules[i].build_id);
	}
	pthread_mutex_destroy(&names->lock);
	free(names->modules);
	free(names->module_of);
	named_free(names->found);
	free(names);
}

/* --- modules --- */

static void to_hex(char to[2 * BUILD_ID_MAX + 1], const uint8_t *bytes, size_t count)
{
	to[0] = '\0';
	for (size_t i = 0; i < count && i < BUILD_ID_MAX; i++)
		snprintf(to + 2 * i, 3, "%02x", bytes[i]);
}

static size_t from_hex(uint8_t to[BUILD_ID_MAX], const char *text)
{
	size_t count = 0;
	unsigned byte;

	while (count < BUILD_ID_MAX && sscanf(text + 2 * count, "%2x", &byte) == 1)
		to[count++] = (uint8_t)byte;
	return count;
}

/* With the lock held. */
static uint32_t find(const struct names *n, const char *path, const char *build_id, uint32_t key)
{
	for (uint32_t i = 0; i < n->module_count; i++)
		if (n->modules[i].key == key && strcmp(n->modules[i].path, path) == 0 &&
		    strcmp(n->modules[i].build_id, build_id) == 0)
			return i;
	return MODULE_NONE;
}

static int tell(struct names *n, uint32_t number, const struct names_module *module)
{
	const int fds[WIRE_FDS] = {module->fd, module->root_fd, module->perf_map_fd};
	struct wire_add message = {
		.head = {.type = WIRE_ADD, .module = number},
		.flags = module->flags,
		.start = module->start,
		.path_bytes = (uint32_t)strnlen(module->path, REC_TEXT_MAX),
		.build_id_bytes = (uint32_t)(module->build_id_bytes <= BUILD_ID_MAX ? module->build_id_bytes : 0)};
	size_t bytes = WIRE_ADD_BYTES + message.path_bytes + message.build_id_bytes;
	int err;

	message.has = (module->fd >= 0 ? WIRE_HAS_FILE : 0u) | (module->root_fd >= 0 ? WIRE_HAS_ROOT : 0u) |
	              (module->perf_map_fd >= 0 ? WIRE_HAS_PERF_MAP : 0u);
	memcpy(message.text, module->path, message.path_bytes);
	if (message.build_id_bytes)
		memcpy(message.text + message.path_bytes, module->build_id, message.build_id_bytes);
	err = wire_send(n->socket_fd, &message, bytes, fds, false);
	if (err == -EAGAIN) {
		poll(&(struct pollfd){.fd = n->socket_fd, .events = POLLOUT}, 1, ADD_WAIT_MS);
		err = wire_send(n->socket_fd, &message, bytes, fds, false);
	}
	return err;
}

/* With the lock held. The module's number, or MODULE_NONE. */
static uint32_t add(struct names *n, const struct names_module *module, const char *build_id)
{
	struct known_module *modules, known = {.key = module->key, .flags = module->flags};

	if (n->module_count == WIRE_MODULES_MAX)
		return MODULE_NONE;
	modules = realloc(n->modules, (n->module_count + 1) * sizeof(*modules));
	if (!modules)
		return MODULE_NONE;
	n->modules = modules;
	known.path = strdup(module->path);
	known.build_id = strdup(build_id);
	if (!known.path || !known.build_id || tell(n, n->module_count, module)) {
		free(known.path);
		free(known.build_id);
		return MODULE_NONE;
	}
	n->modules[n->module_count] = known;
	return n->module_count++;
}

bool names_has(struct names *names, const struct names_module *module)
{
	char build_id[2 * BUILD_ID_MAX + 1];
	bool has;

	to_hex(build_id, module->build_id, module->build_id_bytes);
	pthread_mutex_lock(&names->lock);
	has = find(names, module->path, build_id, module->key) != MODULE_NONE;
	pthread_mutex_unlock(&names->lock);
	return has;
}

void names_add(struct names *names, const struct names_module *module)
{
	char build_id[2 * BUILD_ID_MAX + 1];

	to_hex(build_id, module->build_id, module->build_id_bytes);
	pthread_mutex_lock(&names->lock);
	if (find(names, module->path, build_id, module->key) == MODULE_NONE)
		add(names, module, build_id);
	pthread_mutex_unlock(&names->lock);
	close_fd(module->fd);
	close_fd(module->root_fd);
	close_fd(module->perf_map_fd);
}

uint32_t names_module_of(struct names *names, const struct symbol *symbol)
{
	uint8_t build_id[BUILD_ID_MAX];
	struct names_module module = {.path = symbol->module,
	                              .build_id = build_id,
	                              .build_id_bytes = from_hex(build_id, symbol->build_id),
	                              .flags = symbol->flags,
	                              .key = symbol->first_line,
	                              .fd = -1,
	                              .root_fd = -1,
	                              .perf_map_fd = -1};
	uint32_t number;

	pthread_mutex_lock(&names->lock);
	number = find(names, symbol->module, symbol->build_id, symbol->first_line);
	/* Memory has names of a perf map alone, which may be there later. */
	if (number == MODULE_NONE && !(symbol->flags & MAPPING_MEMORY))
		number = add(names, &module, symbol->build_id);
	pthread_mutex_unlock(&names->lock);
	return number;
}
