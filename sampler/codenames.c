/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/codenames.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sampler/bytecode.h"

void codenames_note(struct code *code, const char *text, size_t bytes)
{
	const char *last = memrchr(text, '.', bytes);
	size_t before = last ? (size_t)(last - text) : 0, from = last ? before + 1 : 0;
	const char *owner = last ? memrchr(text, '.', before) : NULL;
	size_t owner_from = owner ? (size_t)(owner - text) + 1 : 0;

	if (bytes - from < CALLNAME_BYTES)
		code->name = callname_hash(text + from, bytes - from);
	if (last && before - owner_from < CALLNAME_BYTES)
		code->owner = callname_hash(text + owner_from, before - owner_from);
}

static void read_callnames(struct codes *codes, const struct pyabi *abi, const struct remote *r, struct code *code)
{
	uint64_t started_ns = clock_now_ns();
	uint8_t *bytes = code->bytecode_bytes <= SCANNED_MAX ? malloc(code->bytecode_bytes) : NULL;
	int count = 0;

	code->callnames_read = true;
	if (bytes && remote_read(r, code->bytecode, bytes, code->bytecode_bytes) == 0)
		count = callnames_find_all(abi, r, code->names, code->consts, code->owner, bytes, code->bytecode_bytes, &code->callnames);
	/* The names of one that went meanwhile may be others'. */
	code->callname_count = count > 0 && codes_is_alive(codes, r, code) ? (uint32_t)count : 0;
	free(bytes);
	codes_decoded(codes, started_ns);
}

static bool is_init(const struct code *code)
{
	return code->name == callname_hash("__init__", strlen("__init__"));
}

enum named codenames_calls(struct codes *codes, const struct pyabi *abi, const struct remote *r, struct code *code, int64_t offset,
                           const struct code *callee, bool resumes)
{
	const struct callname *name;

	if (!code->callnames_read && r && code->names && codes_may_decode(codes))
		read_callnames(codes, abi, r, code);
	name = callnames_at(code->callnames, code->callname_count, offset);
	if (name && resumes && name->made != 0 && name->made == callee->addr)
		return NAMED_SINGLE;
	if (name && resumes && name->argument != 0 && name->argument == callee->name)
		return name->argument_single ? NAMED_SINGLE : NAMED_AMONG;
	if (!name || name->name == 0 || (name->kind == CALLNAME_RESUME) != resumes)
		return NAMED_NOT;
	if (name->name != callee->name && !(name->name == callee->owner && is_init(callee)))
		return NAMED_NOT;
	return name->single ? NAMED_SINGLE : NAMED_AMONG;
}

bool codenames_excludes(const struct code *code, int64_t offset, const struct code *generator)
{
	const struct callname *name = callnames_at(code->callnames, code->callname_count, offset);

	if (name && name->made != 0)
		return name->made != generator->addr;
	for (uint32_t i = 0; i < code->callname_count; i++)
		if (code->callnames[i].made == generator->addr)
			return true;
	return false;
}

bool codenames_resumes(const struct code *code, const struct code *callee)
{
	for (uint32_t i = 0; i < code->callname_count; i++)
		if (code->callnames[i].kind == CALLNAME_RESUME && code->callnames[i].single && code->callnames[i].name == callee->name)
			return true;
	return false;
}
