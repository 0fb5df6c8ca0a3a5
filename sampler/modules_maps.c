/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/modules_maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sampler/host.h"
#include "sampler/module_file.h"

enum { MODULES_MAX = 8192 };

struct reading { /* of the maps */
	struct modules *modules;
	struct module **list;
	size_t count, room;
	/* The interpreter's own data tell which file it is: its variables lie in that file's mapping, or in memory right behind one. */
	raddr_t wanted, last_end;
	struct proc_map last_file, interpreter; /* without their paths, which are the parser's */
};

void modules_release(struct modules *m, struct module *module)
{
	struct module_file **link = &m->files, *file = module->file;

	free(module);
	if (--file->refs > 0)
		return;
	while (*link != file)
		link = &(*link)->next;
	*link = file->next;
	if (m->interpreter == file)
		m->interpreter = NULL;
	if (file->id)
		symtab_unref(m->symbols, file->id);
	module_file_free(file);
}

static bool same_file(const struct proc_map *a, const struct proc_map *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

struct module *modules_look_up(const struct modules *m, raddr_t addr)
{
	size_t low = 0, high = m->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->list[middle]->start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && addr < m->list[low - 1]->end ? m->list[low - 1] : NULL;
}

static struct module_file *file_of(struct modules *m, const struct proc_map *map)
{
	struct module_file *made = module_file_new(map);

	if (!made)
		return NULL;
	/* Memory that has no file is one of its own each time. */
	for (struct module_file *file = m->files; file && !(made->flags & MAPPING_MEMORY); file = file->next) {
		if (!same_file(&file->map, map) || strcmp(file->path, made->path) != 0)
			continue;
		module_file_free(made);
		return file;
	}
	made->next = m->files;
	m->files = made;
	return made;
}

/* The module of a mapping that was there before, unchanged; else NULL. */
static struct module *known(const struct modules *m, const struct proc_map *map)
{
	struct module *module = modules_look_up(m, map->start);

	if (!module || module->start != map->start || module->end != map->end || module->file_off != map->file_off ||
	    !same_file(&module->file->map, map))
		return NULL;
	/* A file may have been moved since: it is the same all the same. */
	return module;
}

static struct module *make_module(struct modules *m, const struct proc_map *map)
{
	struct module *module = calloc(1, sizeof(*module));

	if (!module)
		return NULL;
	module->file = file_of(m, map);
	if (!module->file) {
		free(module);
		return NULL;
	}
	module->file->refs++;
	module->start = map->start;
	module->end = map->end;
	module->file_off = map->file_off;
	return module;
}

static void note_interpreter(struct reading *r, const struct proc_map *map)
{
	bool behind = map->inode == 0 && map->start == r->last_end;

	if (map->inode != 0)
		r->last_file = *map;
	if (map->inode != 0 || behind)
		r->last_end = map->end;
	if (r->wanted >= map->start && r->wanted < map->end && (map->inode != 0 || behind))
		r->interpreter = r->last_file;
}

static int take_map(void *context, const struct proc_map *map)
{
	struct reading *r = context;
	struct module *module;

	note_interpreter(r, map);
	if (!map->executable || (r->count > 0 && map->start < r->list[r->count - 1]->end))
		return 0;
	if (r->count == r->room)
		return 0; /* of an absurd number of mappings, the first ones */
	module = known(r->modules, map);
	if (!module)
		module = make_module(r->modules, map);
	if (!module)
		return -ENOMEM;
	r->list[r->count++] = module;
	return 0;
}

static bool in_list(struct module *const *list, size_t count, const struct module *module)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list[middle]->start < module->start)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && list[low] == module;
}

/* Moves those that are not in the new list to the gone. */
static int part_with(struct modules *m, const struct reading *r)
{
	size_t room = m->gone_count + m->count;

	if (room > m->gone_room) {
		struct module **gone = realloc(m->gone, room * sizeof(*gone));

		if (!gone)
			return -ENOMEM;
		m->gone = gone;
		m->gone_room = room;
	}
	for (size_t i = 0; i < m->count; i++) {
		if (in_list(r->list, r->count, m->list[i]))
			continue;
		m->gone[m->gone_count++] = m->list[i];
		m->generation++;
	}
	return 0;
}

/* What a reading that failed had made. */
static void drop_new(struct modules *m, const struct reading *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (!in_list(m->list, m->count, r->list[i]))
			modules_release(m, r->list[i]);
}

void modules_examine(struct modules *m, struct module *module)
{
	struct module_file *file = module->file;
	struct proc_map map = file->map;
	uint64_t bias;

	map.start = module->start;
	map.end = module->end;
	map.file_off = module->file_off;
	if (!file->examined)
		module_file_examine(file, m->remote, &map, file == m->interpreter);
	module->flags = file->flags | (file == m->interpreter ? MAPPING_INTERPRETER : 0);
	if (file->head && elfhead_bias(file->head, module->start, module->file_off, &bias) == 0)
		module->bias = bias;
	module->examined = true;
}

/* Which of the files is the interpreter's: the one that its data lie in, else the one of that name. Its eval loop is looked up at once. */
static void choose_interpreter(struct modules *m, const struct proc_map *found)
{
	for (size_t i = 0; i < m->count && !m->interpreter; i++) {
		struct module_file *file = m->list[i]->file;

		if (found->inode ? same_file(&file->map, found)
		                 : m->proc->binary[0] && strcmp(file->path, m->proc->binary) == 0)
			m->interpreter = file;
	}
	for (size_t i = 0; i < m->count && m->interpreter; i++)
		if (m->list[i]->file == m->interpreter && !m->list[i]->examined)
			modules_examine(m, m->list[i]);
}

int modules_read_maps(struct modules *m)
{
	struct reading r = {
		.modules = m,
		.list = malloc(MODULES_MAX * sizeof(*r.list)),
		.room = MODULES_MAX,
		.wanted = m->proc->runtime ? m->proc->runtime : m->proc->interp_head,
	};
	uint64_t used_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID); /* waiting for a CPU costs nobody anything */
	int err;

	if (!r.list)
		return -ENOMEM;
	err = host_of(m->remote)->maps_each(m->remote, take_map, &r);
	m->read_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns;
	if (err == 0)
		err = part_with(m, &r);
	if (err) {
		drop_new(m, &r);
		free(r.list);
		return err;
	}
	free(m->list);
	m->list = r.list;
	m->count = r.count;
	m->last = NULL;
	m->readings++;
	choose_interpreter(m, &r.interpreter);
	return 0;
}
