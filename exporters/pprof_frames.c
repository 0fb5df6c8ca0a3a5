/* SPDX-License-Identifier: Apache-2.0 */
/* The stack of a pprof sample: from ids of locations, leaf first, to a node of the tree. What an id leads to is looked up once, its symbol stays with it. */
#include "exporters/pprof_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *base_name(const char *path, size_t *bytes)
{
	const char *slash = memrchr(path, '/', *bytes);

	if (slash) {
		*bytes -= (size_t)(slash + 1 - path);
		path = slash + 1;
	}
	return path;
}

static const char *string_or_empty(struct pprof_reader *r, uint64_t string, size_t *ret_bytes)
{
	const char *text = pprof_string(&r->tables, string, ret_bytes);

	if (text)
		return text;
	r->doubts.references++;
	*ret_bytes = 0;
	return "";
}

static uint32_t special_symbol(struct pprof_reader *r, const char *name)
{
	return builder_symbol(r->to, name, strlen(name), "", 0, 0, FRAME_SPECIAL, 0);
}

static uint32_t function_symbol(struct pprof_reader *r, uint64_t id)
{
	struct pprof_function *f = pprof_function(&r->tables, id);
	size_t name_bytes, file_bytes;
	const char *name, *file;
	bool is_special;

	if (!f) {
		r->doubts.references++;
		return special_symbol(r, "<unknown>");
	}
	if (f->symbol != BUILDER_NONE)
		return f->symbol;
	name = string_or_empty(r, f->name, &name_bytes);
	if (name_bytes == 0)
		name = string_or_empty(r, f->system_name, &name_bytes);
	file = string_or_empty(r, f->file, &file_bytes);
	is_special = file_bytes == 0 && (name_bytes == 0 || name[0] == '<' || name[0] == '(');
	if (name_bytes == 0) {
		name = "<unknown>";
		name_bytes = strlen(name);
	}
	f->symbol = builder_symbol(r->to, name, name_bytes, file, file_bytes, f->first_line,
	                           is_special ? FRAME_SPECIAL : FRAME_PYTHON, 0);
	return f->symbol;
}

/* A location without functions: its address, in the file that is mapped there. */
static uint32_t address_symbol(struct pprof_reader *r, struct pprof_location *location)
{
	char name[32];
	size_t bytes;
	const char *file;

	if (location->symbol == BUILDER_NONE) {
		file = string_or_empty(r, pprof_mapping_file(&r->tables, location->mapping), &bytes);
		file = base_name(file, &bytes);
		snprintf(name, sizeof(name), "<0x%" PRIx64 ">", location->address);
		location->symbol = builder_symbol(r->to, name, strlen(name), file, bytes, 0,
		                                  bytes > 0 ? FRAME_NATIVE : FRAME_SPECIAL, 0);
	}
	return location->symbol;
}

/* The frames of a location into r->frames behind `depth`, innermost first; the new depth, at most REC_DEPTH_MAX. *cut is set when more would
 * follow. */
static unsigned add_frames(struct pprof_reader *r, unsigned depth, uint64_t id, bool *cut)
{
	struct pprof_location *location = pprof_location(&r->tables, id);
	const struct pprof_line *lines;
	uint32_t taken = 0;

	if (!location) {
		r->doubts.references++;
		r->frames[depth++] = (struct pprof_frame){.symbol = special_symbol(r, "<unknown>")};
		return depth;
	}
	if (location->line_count == 0) {
		r->frames[depth++] = (struct pprof_frame){.symbol = address_symbol(r, location)};
		return depth;
	}
	lines = pprof_lines(&r->tables, location);
	while (taken < location->line_count && depth < REC_DEPTH_MAX) {
		uint32_t symbol = function_symbol(r, lines[taken].function);

		r->frames[depth++] = (struct pprof_frame){.symbol = symbol, .line = lines[taken++].number};
	}
	*cut |= taken < location->line_count;
	return depth;
}

uint32_t pprof_find_node(struct pprof_reader *r, uint32_t thread)
{
	const uint64_t *ids = (const uint64_t *)(const void *)r->ids.data;
	uint64_t count = r->ids.bytes / sizeof(*ids), taken = 0;
	unsigned depth = 0;
	uint32_t node = 0;
	bool cut = false;

	for (; taken < count && depth < REC_DEPTH_MAX; taken++)
		depth = add_frames(r, depth, ids[taken], &cut);
	if (cut || taken < r->id_count) {
		r->doubts.deep++;
		depth = depth == REC_DEPTH_MAX ? depth - 1 : depth;
		node = builder_child(r->to, thread, node, special_symbol(r, "<truncated>"), 0);
	}
	while (depth-- > 0)
		node = builder_child(r->to, thread, node, r->frames[depth].symbol, r->frames[depth].line);
	return node;
}
