/* SPDX-License-Identifier: Apache-2.0 */
/* The maps are read, not watched: a file that is loaded is met by a program counter that lies nowhere; one that goes is missed for half a second at
 * most, and what is unwound by its tables in between fails a check of the unwinder's, or is one wrong stack of code that is no longer there. */
#include "sampler/modules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "sampler/module_file.h"
#include "sampler/modules_maps.h"

enum {
	FILE_TABLES_MAX = 32 << 20, /* bytes of one file's tables; the largest seen have 20 MB */
	ALL_TABLES_MAX = 64 << 20,
	READING_SHARE = 100, /* maps are not read again for so many times the CPU time that it took: it gets a hundredth of one CPU at most */
};
#define AGE_OLD_NS   (500 * NS_PER_MS)
#define AGE_YOUNG_NS (10 * NS_PER_MS)

int modules_new(struct modules **ret_modules, const struct remote *remote, const struct pyproc *proc,
                struct symtab *symbols, uint32_t target_id)
{
	struct modules *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->remote = remote;
	m->proc = proc;
	m->symbols = symbols;
	m->target = target_id;
	*ret_modules = m;
	return 0;
}

void modules_forget(struct modules *m)
{
	for (size_t i = 0; i < m->gone_count; i++)
		modules_release(m, m->gone[i]);
	m->gone_count = 0;
}

void modules_free(struct modules *m)
{
	if (!m)
		return;
	modules_forget(m);
	for (size_t i = 0; i < m->count; i++)
		modules_release(m, m->list[i]);
	free(m->list);
	free(m->gone);
	free(m);
}

/* Reads the maps when they are older than age_ns, and than a hundred times what reading them cost. */
static bool refresh(struct modules *m, uint64_t age_ns)
{
	uint64_t now_ns = clock_now_ns();

	if (age_ns < m->read_ns * READING_SHARE)
		age_ns = m->read_ns * READING_SHARE;
	if (m->t_read_ns && now_ns - m->t_read_ns < age_ns)
		return false;
	m->t_read_ns = now_ns;
	return modules_read_maps(m) == 0;
}

struct module *modules_find(struct modules *m, raddr_t pc)
{
	struct module *module = m->last;

	if (!module || pc < module->start || pc >= module->end)
		module = modules_look_up(m, pc);
	if (!module && refresh(m, AGE_YOUNG_NS))
		module = modules_look_up(m, pc);
	if (!module)
		return NULL;
	if (!module->examined)
		modules_examine(m, module);
	m->last = module;
	return module;
}

void modules_check(struct modules *m)
{
	refresh(m, AGE_OLD_NS);
}

void modules_doubt(struct modules *m)
{
	refresh(m, AGE_YOUNG_NS);
}

uint64_t modules_generation(const struct modules *m)
{
	return m->generation;
}

uint64_t modules_readings(const struct modules *m)
{
	return m->readings;
}

static uint32_t intern(struct modules *m, const struct module *module)
{
	const struct module_file *file = module->file;
	const struct elfhead *head = file->head;
	struct symbol_mapping mapping = {
		.target = m->target,
		.dev_major = file->map.dev_major,
		.dev_minor = file->map.dev_minor,
		.start = module->start,
		.end = module->end,
		.file_off = module->file_off,
		.inode = file->map.inode,
	};
	struct symbol_text text = {
		.name = head ? (const char *)head->build_id : "",
		.file = file->path,
		.name_bytes = head ? head->build_id_bytes : 0,
		.file_bytes = (uint32_t)strlen(file->path),
		.first_line = symtab_mapping_key(&mapping, !(file->flags & MAPPING_MEMORY)),
		.kind = FRAME_NATIVE,
		.flags = (uint8_t)module->flags,
		.mapping = &mapping,
	};

	return symtab_intern(m->symbols, &text);
}

uint32_t modules_use(struct modules *m, struct module *module)
{
	if (!module->file->id)
		module->file->id = intern(m, module);
	module->id = module->file->id;
	return module->id;
}

uint32_t modules_where(const struct module *module, raddr_t pc)
{
	uint64_t off = pc - module->start;

	if (!(module->flags & MAPPING_MEMORY))
		off += module->file_off;
	return off < UINT32_MAX ? (uint32_t)off : UINT32_MAX;
}

const char *modules_path(const struct module *module)
{
	return module->file->path;
}

static size_t tables_bytes(const struct modules *m)
{
	size_t bytes = 0;

	for (const struct module_file *file = m->files; file; file = file->next)
		bytes += file->pieces_bytes;
	return bytes;
}

/* Until there is room for `bytes`: the tables that were not asked for the longest go first. */
static void make_room(struct modules *m, size_t bytes)
{
	while (tables_bytes(m) + bytes > ALL_TABLES_MAX) {
		struct module_file *oldest = NULL;

		for (struct module_file *file = m->files; file; file = file->next)
			if (file->pieces_bytes && (!oldest || file->used < oldest->used))
				oldest = file;
		if (!oldest)
			return;
		module_file_unload(oldest);
	}
}

const struct unwind_tables *modules_tables(struct modules *m, struct module *module)
{
	struct module_file *file = module->file;
	struct proc_map map = file->map;

	file->used = ++m->uses;
	if (file->tables_good)
		return &file->tables;
	if (file->tables_failed || !file->head)
		return NULL;
	map.start = module->start;
	map.end = module->end;
	make_room(m, FILE_TABLES_MAX);
	file->tables_failed = module_file_load(file, m->remote, &map, FILE_TABLES_MAX) != 0;
	return file->tables_good ? &file->tables : NULL;
}

bool modules_is_start(const struct module *module, raddr_t pc)
{
	const struct elfhead *head = module->file->head;
	uint64_t addr = pc - module->bias;

	return head && head->entry && addr >= head->entry && addr - head->entry < 64;
}

ssize_t modules_code(struct modules *m, raddr_t pc, uint8_t *to, size_t bytes)
{
	return remote_read_some(m->remote, pc, to, bytes);
}

static const struct evalloop *eval_at(struct modules *m, raddr_t pc, uint64_t *ret_addr)
{
	const struct module *module = m->interpreter ? modules_find(m, pc) : NULL;

	if (!module || module->file != m->interpreter)
		return NULL;
	*ret_addr = pc - module->bias;
	return module->file->eval;
}

bool modules_is_eval(struct modules *m, raddr_t pc)
{
	uint64_t addr;
	const struct evalloop *loop = eval_at(m, pc, &addr);

	return loop && evalloop_has(loop, addr);
}

bool modules_is_eval_inner(struct modules *m, raddr_t pc)
{
	uint64_t addr;
	const struct evalloop *loop = eval_at(m, pc, &addr);

	return loop && evalloop_has_inner(loop, addr);
}

bool modules_know_eval(struct modules *m)
{
	modules_check(m);
	return m->interpreter && m->interpreter->eval;
}
