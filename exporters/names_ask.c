/* SPDX-License-Identifier: Apache-2.0 */
/* The places of a profile, asked for module by module, and what is made of the answers: names, inlined frames, machinery folded away. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "exporters/names_fold.h"
#include "exporters/names_state.h"

enum {
	STARTS_MAX = 3
}; /* frames of the C library before a program's own, and the first of all, which is the program's */

struct place {
	uint32_t module, where;
	bool innermost; /* nothing is called there: of one place it is always so, or never, for calls are at their last byte */
	bool first; /* the C library's, before a program's or thread's own first function */
};

struct asking {
	struct names *names;
	struct place *places;
	size_t count, room;
	uint64_t deadline_ns;
	const struct place *asked; /* of the question under way */
	uint8_t answered[WIRE_OFFSETS_MAX];
};

static int compare_places(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	if (a->module != b->module)
		return a->module < b->module ? -1 : 1;
	return a->where < b->where ? -1 : a->where > b->where;
}

static int add_place(struct asking *a, const struct place *place)
{
	if (a->count == a->room) {
		size_t room = a->room ? a->room * 2 : 1024;
		struct place *places = realloc(a->places, room * sizeof(*places));

		if (!places)
			return -ENOMEM;
		a->places = places;
		a->room = room;
	}
	a->places[a->count++] = *place;
	return 0;
}

static bool is_known(const struct names *n, uint32_t module, uint32_t where)
{
	struct named_frame frame;

	return named_find(n->found, module, where, &frame, 1) != FRAMES_SAME;
}

/* _start, __libc_start_main and __libc_start_call_main, or clone3 and start_thread: of these some have no symbol where the library is stripped. */
static bool is_first(const struct profile *profile, const struct thread_tree *tree, const struct node *node)
{
	if (node->child == 0)
		return false;
	for (unsigned depth = 0; depth < STARTS_MAX; depth++) {
		const struct symbol *symbol = &profile->symbols[node->symbol];
		bool outermost = node->parent == 0;

		if (!symbol->mapped || !(symbol->flags & MAPPING_SYSTEM || (outermost && depth > 0)))
			return false;
		if (outermost)
			return true;
		node = &tree->nodes[node->parent];
	}
	return false;
}

/* All places that are not known yet, each once. */
static int collect(struct asking *a, const struct profile *profile)
{
	struct names *n = a->names;
	size_t kept = 0;
	int err = 0;

	for (uint32_t t = 0; t < profile->thread_count && !err; t++) {
		const struct thread_tree *tree = &profile->threads[t];

		for (uint32_t i = 1; i < tree->node_count && !err; i++) {
			const struct node *node = &tree->nodes[i];
			uint32_t module = n->module_of[node->symbol];

			if (module != MODULE_NONE && !is_known(n, module, node->line))
				err = add_place(a, &(struct place){module, node->line, node->child == 0,
				                                   is_first(profile, tree, node)});
		}
	}
	if (a->count)
		qsort(a->places, a->count, sizeof(a->places[0]), compare_places);
	for (size_t i = 0; i < a->count; i++)
		if (kept == 0 || compare_places(&a->places[kept - 1], &a->places[i]) != 0)
			a->places[kept++] = a->places[i];
	a->count = kept;
	return err;
}

/* --- answers --- */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void keep(struct asking *a, const struct place *place, const struct named_frame *frames, size_t count)
{
	(void)named_add(&a->names->found, place->module, place->where, frames, count); /* full: it stays without */
}

/* What is not known of the interpreter's own file, which was stripped: that it was there where nothing was called from it; else nothing. So it is
 * with what the C library begins with. */
static void take_silence(struct asking *a, const struct place *place)
{
	const struct known_module *module = &a->names->modules[place->module];
	char name[256];
	struct named_frame frame = {
		.name = name, .file = "", .kind = FRAME_NATIVE, .module = module->path, .build_id = module->build_id};

	if (!(module->flags & MAPPING_INTERPRETER || place->first) || a->names->show == NATIVE_ALL)
		return;
	(void)!snprintf(name, sizeof(name), "[%.200s]", last_part(module->path));
	keep(a, place, &frame, place->innermost);
}

/* Only where the function begins is known: one function is one node, whichever of its instructions was met. */
static void take_start(struct asking *a, const struct place *place, uint32_t start)
{
	const struct known_module *module = &a->names->modules[place->module];
	char name[256];
	struct named_frame frame = {
		.name = name, .file = "", .kind = FRAME_NATIVE, .module = module->path, .build_id = module->build_id};

	if (a->names->show != NATIVE_ALL && (module->flags & MAPPING_INTERPRETER || place->first)) {
		take_silence(a, place);
		return;
	}
	(void)!snprintf(name, sizeof(name), "%.200s+0x%" PRIx32, last_part(module->path), start);
	keep(a, place, &frame, 1);
}

/* Fits wire_answers_each(). Of a function's inlined ones each is looked at by itself. */
static int take_answer(void *context, uint32_t index, const struct code_frame *frames, size_t count)
{
	struct asking *a = context;
	const struct place *place = &a->asked[index];
	const struct known_module *module = &a->names->modules[place->module];
	struct named_frame kept[NAMED_FRAMES_MAX];
	size_t kept_count = 0;

	if (a->answered[index])
		return 0;
	a->answered[index] = true;
	if (count == 1 && !frames[0].name[0]) {
		take_start(a, place, frames[0].line);
		return 0;
	}
	for (size_t i = 0; i < count && i < NAMED_FRAMES_MAX; i++) {
		if (!frames[i].name[0] ||
		    (a->names->show != NATIVE_ALL &&
		     name_is_machinery(frames[i].name, module->flags, place->innermost && i == count - 1)))
			continue;
		kept[kept_count++] = (struct named_frame){.name = frames[i].name,
		                                          .file = frames[i].file,
		                                          .first_line = frames[i].first_line,
		                                          .line = frames[i].line,
		                                          .kind = FRAME_NATIVE,
		                                          .module = module->path,
		                                          .build_id = module->build_id};
	}
	keep(a, place, kept, kept_count);
	return 0;
}

/* Waits for the answers to one question. 0, -ETIMEDOUT, -ECHILD (the child is gone), -EPROTO. */
static int receive(struct asking *a, uint32_t count)
{
	struct names *n = a->names;

	for (;;) {
		uint64_t now_ns = clock_now_ns();
		struct pollfd fd = {.fd = n->socket_fd, .events = POLLIN};
		int fds[WIRE_FDS], ready, err;
		long got;

		if (now_ns >= a->deadline_ns)
			return -ETIMEDOUT;
		ready = poll(&fd, 1, (int)((a->deadline_ns - now_ns) / NS_PER_MS + 1));
		if (ready <= 0)
			continue;
		got = wire_receive(n->socket_fd, &n->message, fds, false);
		for (unsigned i = 0; i < WIRE_FDS; i++)
			if (fds[i] >= 0)
				close(fds[i]);
		if (got == -EAGAIN)
			continue;
		if (got <= 0)
			return -ECHILD;
		if (!wire_is_sound(&n->message, (size_t)got) || n->message.head.sequence != n->sequence)
			return -EPROTO;
		if (n->message.head.type == WIRE_DONE)
			return 0;
		if (n->message.head.type != WIRE_ANSWERS)
			return -EPROTO;
		err = wire_answers_each(&n->message, (size_t)got, count, take_answer, a);
		if (err)
			return err;
	}
}

/* So many places of one module. */
static int ask(struct asking *a, const struct place *places, uint32_t count)
{
	struct names *n = a->names;
	int err;

	n->message.head = (struct wire_head){WIRE_ASK, places->module, ++n->sequence, count};
	for (uint32_t i = 0; i < count; i++)
		n->message.ask.offsets[i] = places[i].where;
	memset(a->answered, 0, sizeof(a->answered));
	a->asked = places;
	pthread_mutex_lock(&n->lock);
	err = wire_send(n->socket_fd, &n->message, WIRE_ASK_BYTES + count * sizeof(uint32_t), NULL, true);
	pthread_mutex_unlock(&n->lock);
	if (!err)
		err = receive(a, count);
	for (uint32_t i = 0; i < count && !err; i++)
		if (!a->answered[i])
			take_silence(a, &places[i]);
	return err;
}

static int ask_all(struct asking *a)
{
	int err = 0;

	for (size_t at = 0; at < a->count && !err;) {
		uint32_t count = 1;

		while (at + count < a->count && count < WIRE_OFFSETS_MAX &&
		       a->places[at + count].module == a->places[at].module)
			count++;
		err = ask(a, &a->places[at], count);
		at += count;
	}
	if (err)
		names_break(a->names);
	return err;
}

int names_prepare(struct names *names, const struct profile *profile)
{
	struct asking a = {.names = names, .deadline_ns = clock_now_ns() + names->timeout_ns};
	uint32_t *module_of = malloc((profile->symbol_count + (size_t)1) * sizeof(*module_of));
	int err;

	if (!module_of)
		return -ENOMEM;
	free(names->module_of);
	names->module_of = module_of;
	names->symbol_count = profile->symbol_count;
	for (uint32_t i = 0; i < profile->symbol_count; i++)
		module_of[i] = profile->symbols[i].mapped ? names_module_of(names, &profile->symbols[i]) : MODULE_NONE;
	err = collect(&a, profile);
	if (!err)
		err = ask_all(&a);
	free(a.places);
	return err;
}

size_t names_frames(void *names, const struct profile *profile, const struct node *node, struct named_frame *to,
                    size_t room)
{
	const struct names *n = names;
	uint32_t module = node->symbol < n->symbol_count ? n->module_of[node->symbol] : MODULE_NONE;

	(void)profile;
	return module == MODULE_NONE ? FRAMES_SAME : named_find(n->found, module, node->line, to, room);
}

int names_apply(struct names *names, struct profile **profile)
{
	int err = names_prepare(names, *profile), named_err;

	/* What was found before something failed is shown. */
	named_err = names->module_of ? profile_name(profile, names_frames, names) : -ENOMEM;
	return err ? err : named_err;
}
