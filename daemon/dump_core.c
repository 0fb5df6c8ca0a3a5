/* SPDX-License-Identifier: Apache-2.0 */
/* sampled dump --core FILE [--exe FILE] [--json] [--native] */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "daemon/dump.h"

enum { NAME_COLUMNS_MAX = 1024, FILES_TOLD_MAX = 4 };

/* Why a file that was mapped could not be had, and what helps. */
static void tell_file(const struct core_file *file)
{
	struct buf line = {0};

	if (file->path[0])
		utf8_fit(&line, file->path, NAME_COLUMNS_MAX, false);
	else
		buf_puts(&line, "a file whose name was cut off");
	if (file->state == CORE_FILE_UNPROVEN)
		buf_puts(&line, ": the core does not tell of which build it was, so it is not read");
	else if (file->state == CORE_FILE_MISSING)
		buf_puts(&line, ": not here, so what it holds is missing");
	else
		buf_puts(&line, ": not the one that was mapped, so what it holds is missing");
	if (file->build_id_bytes) {
		buf_puts(&line, " (build id ");
		for (uint32_t i = 0; i < file->build_id_bytes; i++)
			buf_printf(&line, "%02x", file->build_id[i]);
		buf_puts(&line, "; --exe names it where it is)");
	} else {
		buf_puts(&line, " (--exe names the program)");
	}
	error_note("%s", buf_text(&line));
	buf_release(&line);
}

/* The files that were asked for and could not be had, each once. Returns how many they are. */
static unsigned tell_files(const struct core *core)
{
	unsigned count = 0;

	for (size_t i = 0; i < core_file_count(core); i++) {
		const struct core_file file = core_file(core, i);

		if (file.state != CORE_FILE_MISSING && file.state != CORE_FILE_OTHER &&
		    file.state != CORE_FILE_UNPROVEN)
			continue;
		if (count++ < FILES_TOLD_MAX)
			tell_file(&file);
	}
	if (count > FILES_TOLD_MAX)
		error_note("and %u files more", count - FILES_TOLD_MAX);
	return count;
}

static void tell_losses(const struct core *core, const char *path)
{
	uint64_t missing = core_missing_bytes(core);

	if (missing)
		error_note("%s: it was cut: %" PRIu64 " bytes of memory are missing", path, missing);
	if (core_thread_count(core) == 0)
		error_note("%s: its notes are missing, and with them what was mapped and who was the thread that died",
		           path);
}

static enum exit_status dump_opened(struct dump_origin *origin, const struct dump_how *how)
{
	const char *path = origin->core_path;
	struct target *target = NULL;
	struct fault fault = {0};
	enum exit_status status;
	int err = target_open_core(&target, origin->core, &fault);

	if (err) {
		/* To try again does not help, and where a file is missing the memory need not be damaged. */
		if (tell_files(origin->core) > 0 || err == -EAGAIN)
			fault.hint[0] = '\0';
		error_fault(&fault, "cannot read core file %s", path);
		status = error_status(err);
	} else {
		status = dump_target(target, how, origin, path);
		tell_files(origin->core);
	}
	target_free(target);
	return status;
}

static enum exit_status open_core(struct core **ret_core, const char *path, const char *const *files, size_t file_count)
{
	struct fault fault = {0};
	int err = core_open(ret_core, path, &fault);

	if (err) {
		error_fault(&fault, "cannot read core file %s", path);
		return error_status(err);
	}
	for (size_t i = 0; i < file_count; i++)
		if (core_add_file(*ret_core, files[i], &fault)) {
			error_fault(&fault, "--exe %s", files[i]);
			core_free(*ret_core);
			return EXIT_USAGE;
		}
	return EXIT_DONE;
}

enum exit_status dump_core(const char *path, const char *const *files, size_t file_count, const struct dump_how *how)
{
	const struct dump_how of_core = {
		.sampling = {.gc = true, .exceptions = true, .native = how->sampling.native}, .values = how->values, .json = how->json};
	struct dump_origin origin = {.core_path = path};
	enum exit_status status = open_core(&origin.core, path, files, file_count);

	if (status != EXIT_DONE)
		return status;
	tell_losses(origin.core, path);
	origin.naming = naming_new(how->sampling.native, false);
	naming_set_core(origin.naming, origin.core);
	status = dump_opened(&origin, &of_core);
	naming_free(origin.naming);
	core_free(origin.core);
	return status;
}
