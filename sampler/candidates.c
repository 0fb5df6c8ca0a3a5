/* SPDX-License-Identifier: Apache-2.0 */
/* A loader maps the segments of a file in rising order of file offset; when the offset falls back, or another file of that
 * name begins, it is the file's next loading (dlmopen, two copies of libpython). */
#include "sampler/candidates.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/host.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The loading this mapping goes on with, or NULL. */
static struct candidate *find_open(struct candidates *c, const struct proc_map *map)
{
	for (size_t i = c->count; i-- > 0;) {
		const struct candidate *item = &c->items[i];
		const struct proc_map *last = &item->maps[item->maps_count - 1];

		if (last->inode != map->inode || last->dev_major != map->dev_major || last->dev_minor != map->dev_minor)
			continue;
		/* Two segments may share a page of the file, but not the first. */
		return map->file_off && map->file_off >= last->file_off ? &c->items[i] : NULL;
	}
	return NULL;
}

static struct candidate *add_item(struct candidates *c, const struct proc_map *map)
{
	struct candidate *item;

	if (c->count == c->room) {
		size_t room = c->room ? c->room * 2 : 32;
		struct candidate *items = realloc(c->items, room * sizeof(*items));

		if (!items)
			return NULL;
		c->items = items;
		c->room = room;
	}
	item = &c->items[c->count];
	*item = (struct candidate){.path = strdup(map->path)};
	if (!item->path)
		return NULL;
	item->likely = (c->exe_inode && map->inode == c->exe_inode) || strstr(base_name(map->path), "python");
	c->count++;
	return item;
}

int candidates_add(void *context, const struct proc_map *map)
{
	struct candidates *c = context;
	struct candidate *item;

	if (map->inode == 0)
		return 0;
	if (strstr(base_name(map->path), "pypy"))
		c->pypy = true;
	item = find_open(c, map);
	if (!item) {
		if (c->count >= CANDIDATES_MAX)
			return 0;
		item = add_item(c, map);
		if (!item) {
			c->err = -ENOMEM;
			return -ENOMEM;
		}
	}
	item->executable |= map->executable;
	if (item->maps_count < CANDIDATE_MAPS) {
		item->maps[item->maps_count] = *map;
		item->maps[item->maps_count].path = item->path;
		item->maps_count++;
	}
	return 0;
}

int candidates_collect(struct candidates *c, const struct remote *r)
{
	const struct host *host = host_of(r);
	int err;

	*c = (struct candidates){.exe_inode = host->program(r)};
	err = host->maps_each(r, candidates_add, c);
	return err ? err : c->err;
}

void candidates_release(struct candidates *c)
{
	for (size_t i = 0; i < c->count; i++)
		free(c->items[i].path);
	free(c->items);
	*c = (struct candidates){0};
}
