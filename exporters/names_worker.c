/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "exporters/names_child.h"
#include "exporters/names_perfmap.h"
#include "exporters/sandbox.h"

#define MEMORY_MAX  (UINT64_C(1) << 30) /* of its own; files are mapped besides */
#define ADDRESS_MAX (UINT64_C(24) << 30)

enum {
	CPU_SECONDS_MAX = 60,
	OPEN_MAX = 256, /* files that are kept open; when there are more all are closed and begun anew */
};

/* What is open of a module. */
struct opened {
	struct code_file *file;
	struct perf_map *map;
	bool tried;
};

struct worker {
	int fetch_fd;
	uint32_t fetches;
	struct child_module *modules;
	struct opened opened[WIRE_MODULES_MAX];
	unsigned open_count;
	union wire_message message, fetched;
	struct wire_answers answers;
};

/* Asks the fetcher, which is another process: fits struct code_file_source, fetch. */
static int fetch(void *context, const uint8_t *build_id, size_t build_id_bytes, enum debug_kind kind)
{
	struct worker *w = context;
	struct wire_fetch ask = {.head = {.type = WIRE_FETCH, .sequence = (uint32_t)getpid() ^ ++w->fetches << 22},
	                         .kind = kind,
	                         .build_id_bytes = (uint32_t)build_id_bytes};
	int fds[WIRE_FDS];
	long got;

	if (build_id_bytes > BUILD_ID_MAX)
		return -1;
	memcpy(ask.build_id, build_id, build_id_bytes);
	if (wire_send(w->fetch_fd, &ask, sizeof(ask), NULL, true))
		return -1;
	/* An answer to a worker before this one may lie there still. */
	while ((got = wire_receive(w->fetch_fd, &w->fetched, fds, true)) > 0) {
		if (wire_is_sound(&w->fetched, (size_t)got) && w->fetched.head.type == WIRE_FETCHED &&
		    w->fetched.head.sequence == ask.head.sequence)
			return fds[0];
		if (fds[0] >= 0)
			close(fds[0]);
	}
	return -1;
}

static void close_all(struct worker *w)
{
	for (unsigned i = 0; i < WIRE_MODULES_MAX; i++) {
		code_file_free(w->opened[i].file);
		perf_map_free(w->opened[i].map);
		w->opened[i] = (struct opened){0};
	}
	w->open_count = 0;
}

static struct opened *open_module(struct worker *w, uint32_t number)
{
	const struct child_module *module = &w->modules[number];
	struct opened *opened = &w->opened[number];
	struct code_file_source source = {.path = module->path,
	                                  .build_id = module->build_id,
	                                  .build_id_bytes = module->build_id_bytes,
	                                  .fd = module->fd,
	                                  .root_fd = module->root_fd,
	                                  .fetch = w->fetch_fd >= 0 ? fetch : NULL,
	                                  .context = w};

	if (module->perf_map_fd >= 0) { /* it grows */
		perf_map_free(opened->map);
		opened->map = NULL;
		(void)perf_map_read(&opened->map, module->perf_map_fd);
	}
	if (opened->tried || module->flags & MAPPING_MEMORY)
		return opened;
	if (w->open_count == OPEN_MAX)
		close_all(w);
	opened->tried = true;
	w->open_count += code_file_open(&opened->file, &source) == 0;
	return opened;
}

static int answer(struct worker *w, size_t bytes)
{
	const struct wire_head head = w->message.head;
	const struct opened *opened;

	if (!wire_is_sound(&w->message, bytes) || head.type != WIRE_ASK || !w->modules[head.module].path)
		return -EPROTO;
	opened = open_module(w, head.module);
	wire_answers_begin(&w->answers, w->answers.socket_fd, head.module, head.sequence);
	for (uint32_t i = 0; i < head.count; i++) {
		uint32_t offset = w->message.ask.offsets[i];
		struct code_frame frames[DEBUG_FRAMES_MAX];
		size_t count = 0;

		if (opened->file) {
			count = code_file_find(opened->file, offset, frames);
		} else if (opened->map) {
			const char *name = perf_map_find(opened->map, w->modules[head.module].start + offset);

			frames[0] = (struct code_frame){.name = name, .file = ""};
			count = name != NULL;
		}
		wire_answers_add(&w->answers, i, frames, count);
	}
	return wire_answers_end(&w->answers);
}

static void limit(unsigned resource, rlim_t most)
{
	struct rlimit now;

	if (getrlimit(resource, &now) == 0 && now.rlim_max > most)
		setrlimit(resource, &(struct rlimit){most, most});
}

_Noreturn void names_worker(int socket_fd, int fetch_fd, struct child_module *modules, pid_t parent)
{
	struct worker *w = calloc(1, sizeof(*w));
	int fds[WIRE_FDS], err;
	long got;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!w || getppid() != parent)
		_exit(1);
	w->fetch_fd = fetch_fd;
	w->modules = modules;
	w->answers.socket_fd = socket_fd;
#ifndef __SANITIZE_ADDRESS__ /* whose shadow is larger */
	limit(RLIMIT_AS, ADDRESS_MAX);
	limit(RLIMIT_DATA, MEMORY_MAX);
#endif
	limit(RLIMIT_CPU, CPU_SECONDS_MAX);
	err = sandbox_namer(NULL);
	/* Without libseccomp it is confined as far as it can be here: it holds nothing but files to read. */
	if (err && err != -ENOPKG)
		_exit(1);
	while ((got = wire_receive(socket_fd, &w->message, fds, true)) > 0)
		if (answer(w, (size_t)got))
			break;
	_exit(0);
}
