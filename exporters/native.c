/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/native.h"

#include <inttypes.h>
#include <string.h>

#include "aggregator/transform.h"
#include "base/buf.h"

const char *native_module_name(const char *module)
{
	const char *slash = strrchr(module, '/');

	return slash && slash[1] ? slash + 1 : module;
}

static bool is_without_file(const struct symbol *symbol)
{
	return symbol->kind == FRAME_NATIVE && !symbol->mapped && symbol->module[0] && !symbol->file[0] &&
	       !strstr(symbol->name, "+0x");
}

bool native_needs_showing(const struct profile *profile)
{
	for (uint32_t i = 0; i < profile->symbol_count; i++)
		if (profile->symbols[i].mapped || is_without_file(&profile->symbols[i]))
			return true;
	return false;
}

static size_t show(void *text, const struct profile *profile, const struct node *node, struct named_frame *to,
                   size_t room)
{
	const struct symbol *symbol = &profile->symbols[node->symbol];
	struct buf *name = text;

	if (room < 1 || !(symbol->mapped || is_without_file(symbol)))
		return FRAMES_SAME;
	*to = (struct named_frame){.name = symbol->name,
	                           .file = native_module_name(symbol->module),
	                           .first_line = symbol->first_line,
	                           .line = node->line,
	                           .kind = FRAME_NATIVE,
	                           .module = symbol->module,
	                           .build_id = symbol->build_id};
	if (symbol->mapped) {
		name->bytes = 0;
		buf_printf(name, "%s+0x%" PRIx32, symbol->name, node->line);
		to->name = buf_text(name);
		to->file = "";
		to->first_line = to->line = 0;
	}
	return 1;
}

int native_show(const struct profile *profile, struct profile **ret_shown)
{
	struct builder_options options = {.runs = profile->has_runs};
	struct buf text = {0};
	struct builder *builder;
	int err = builder_new(&builder, &options);

	if (err)
		return err;
	err = transform_add(builder, profile, &(struct transform){.frames = show, .frames_context = &text});
	if (!err)
		err = builder_finish(builder, ret_shown);
	builder_free(builder);
	buf_release(&text);
	return err;
}

bool native_has_line(const struct symbol *symbol, uint32_t line)
{
	return line || !symbol->module[0];
}
