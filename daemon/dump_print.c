/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "daemon/credentials.h"
#include "daemon/dump.h"
#include "exporters/source.h"
#include "base/utf8.h"
#include "sampler/host.h"
#include "sampler/procfs.h"

enum {
	TEXT_COLUMNS_MAX = 4096,
	SOURCE_COLUMNS_MAX = 160,
	SOURCES_MAX = 256, /* files kept while a dump is printed */
	COMMAND_BYTES_MAX = 4096,
};

#define SOURCES_BYTES_MAX (UINT64_C(64) << 20)

/* Files read so far; NULL-path entries do not exist. */
struct sources {
	struct source_place place;
	bool allowed; /* the owner's credentials are taken, place is open */
	struct {
		const char *path; /* the symbol's */
		struct buf text;
	} files[SOURCES_MAX];
	size_t count;
	uint64_t bytes;
};

static const struct {
	uint16_t bit;
	const char *word, *key;
} states[] = {
	{STATUS_RUNNABLE, "runnable", "runnable"},
	{STATUS_GIL, "holds the GIL", "gil"},
	{STATUS_GIL_WAIT, "waits for the GIL", "gil_wait"},
	{STATUS_IDLE, "idle", "idle"},
	{STATUS_UNKNOWN, "state unknown", "unknown"},
	{STATUS_GC, "collects garbage", "gc"},
	{STATUS_EXCEPTION, "handles an exception", "exception"},
};

/* The text of a file, read at first use; NULL: not to be had. */
static const struct buf *find_source(struct sources *s, const char *path)
{
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->files[i].path, path) == 0)
			return &s->files[i].text;
	if (!s->allowed || s->count == SOURCES_MAX || s->bytes >= SOURCES_BYTES_MAX)
		return NULL;
	s->files[s->count].path = path;
	/* A file that cannot be read stays empty, and is not tried again. */
	(void)source_read(&s->files[s->count].text, &s->place, path);
	s->bytes += s->files[s->count].text.bytes;
	return &s->files[s->count++].text;
}

/* A frame's source line without its indentation, or NULL. Valid while *line is. */
static const char *source_text(struct sources *s, const char *file, uint32_t number, struct buf *line)
{
	const struct buf *source = find_source(s, file);
	size_t bytes = 0;
	const char *text = source ? source_line(source, number, &bytes) : NULL;

	while (text && bytes > 0 && (*text == ' ' || *text == '\t' || *text == '\f')) {
		text++;
		bytes--;
	}
	if (!text || bytes == 0)
		return NULL;
	line->bytes = 0;
	buf_add(line, text, bytes);
	return buf_text(line);
}

/* Names in a core are those of a host and a time: they are looked up here and now, with the rights of the core's owner. Relative ones say
 * nothing. */
static int core_place(struct source_place *ret_place, struct credentials *ret_owner, const struct core *core)
{
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	*ret_place = (struct source_place){.root_fd = fd, .cwd_fd = -1};
	*ret_owner = (struct credentials){0};
	core_owner(core, &ret_owner->uid, &ret_owner->gid);
	return 0;
}

static void sources_open(struct sources *s, const struct dump_origin *origin, struct credentials *saved)
{
	struct credentials owner;

	if (origin->core) {
		if (core_place(&s->place, &owner, origin->core))
			return;
		s->allowed = true;
	} else {
		if (source_place_open(&s->place, (int32_t)origin->proc->pid))
			return;
		s->allowed = credentials_of(&owner, origin->proc->pid) == 0;
	}
	s->allowed = s->allowed && credentials_assume(&owner, saved) == 0;
	if (!s->allowed)
		source_place_close(&s->place);
}

static void sources_release(struct sources *s, const struct credentials *saved)
{
	if (s->allowed) {
		credentials_restore(saved);
		source_place_close(&s->place);
	}
	for (size_t i = 0; i < s->count; i++)
		buf_release(&s->files[i].text);
}

static const struct dump_symbol *find_symbol(const struct dump *d, const struct frame *frame)
{
	static char unknown[] = "<unknown>", none[] = "";
	static const struct dump_symbol missing = {.name = unknown, .file = none};

	return frame->id < d->symbol_room && d->symbols[frame->id].name ? &d->symbols[frame->id] : &missing;
}

static void print_safely(struct writer *to, const char *text, unsigned columns)
{
	struct buf safe = {0};

	utf8_fit(&safe, text, columns, false);
	writer_puts(to, buf_text(&safe));
	buf_release(&safe);
}

/* The signal that ended the process, where it came to this thread ("SIGSEGV"); NULL. */
static const char *signal_of(const struct dump_thread *thread, const struct dump_origin *origin, char *to, size_t room)
{
	const struct core_thread *found =
		origin->core && thread->tid ? core_find_thread(origin->core, 0, (pid_t)thread->tid) : NULL;
	const char *name = found && found->signal ? sigabbrev_np(found->signal) : NULL;

	if (!name)
		return NULL;
	snprintf(to, room, "SIG%s", name);
	return to;
}

static void print_thread_head(const struct dump_thread *thread, const struct dump_origin *origin, bool color,
                              struct writer *to)
{
	char name[32];
	const char *comma = "", *signal_name = signal_of(thread, origin, name, sizeof(name));

	writer_puts(to, color ? "\n\033[1mThread " : "\nThread ");
	if (thread->tid)
		writer_u64(to, thread->tid);
	else
		writer_putc(to, '?');
	if (thread->name) {
		writer_puts(to, " \"");
		print_safely(to, thread->name, TEXT_COLUMNS_MAX);
		writer_putc(to, '"');
	}
	writer_puts(to, color ? "\033[0m" : "");
	if (thread->interpreter)
		writer_printf(to, " in interpreter %" PRId64, thread->interpreter);
	writer_puts(to, ": ");
	if (signal_name) {
		writer_puts(to, signal_name);
		comma = ", ";
	}
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (thread->status & states[i].bit) {
			writer_printf(to, "%s%s", comma, states[i].word);
			comma = ", ";
		}
	if (thread->syscall)
		writer_printf(to, " in %s", thread->syscall);
	if (!thread->sampled)
		writer_printf(to, "%sits stack could not be read", comma);
	writer_putc(to, '\n');
}

static void print_frame(const struct dump *d, const struct frame *frame, const struct frame_locals *locals,
                        struct sources *sources, struct buf *line, struct writer *to)
{
	const struct dump_symbol *symbol = find_symbol(d, frame);
	const char *text;

	writer_puts(to, "    ");
	print_safely(to, symbol->name, TEXT_COLUMNS_MAX);
	if (symbol->mapped)
		writer_printf(to, "+0x%" PRIx32, frame->where);
	if (symbol->file[0]) {
		writer_puts(to, " (");
		print_safely(to, symbol->file, TEXT_COLUMNS_MAX);
		if (frame->where || frame->kind != FRAME_NATIVE) {
			writer_putc(to, ':');
			writer_u64(to, frame->where);
		}
		writer_putc(to, ')');
	}
	writer_putc(to, '\n');
	text = frame->kind == FRAME_PYTHON ? source_text(sources, symbol->file, frame->where, line) : NULL;
	if (text) {
		writer_puts(to, "        ");
		print_safely(to, text, SOURCE_COLUMNS_MAX);
		writer_putc(to, '\n');
	}
	if (locals)
		dump_print_locals(locals, to);
}

/* Empty where it is not to be had. */
static void command_of(const struct dump_origin *origin, char *to, size_t room)
{
	struct remote remote = {.pid = origin->proc->pid, .mem_fd = -1};

	to[0] = '\0';
	if (origin->core)
		remote_open_core(&remote, origin->core);
	(void)host_of(&remote)->command_line(&remote, COMMAND_LINE_FULL, to, room);
}

void dump_print_text(const struct dump *dump, const struct dump_origin *origin, bool color, struct writer *to)
{
	const struct pyproc *proc = origin->proc;
	struct sources *sources = calloc(1, sizeof(*sources));
	struct credentials saved;
	struct buf line = {0};
	char command[COMMAND_BYTES_MAX];

	if (!sources) {
		to->err = to->err ? to->err : -ENOMEM;
		return;
	}
	command_of(origin, command, sizeof(command));
	writer_printf(to, "Process %d: ", (int)proc->pid);
	print_safely(to, command, TEXT_COLUMNS_MAX);
	writer_printf(to, "\nPython %s (", proc->version_text);
	print_safely(to, proc->binary, TEXT_COLUMNS_MAX);
	writer_puts(to, ")\n");
	sources_open(sources, origin, &saved);
	for (uint32_t i = 0; i < dump->thread_count; i++) {
		const struct dump_thread *thread = &dump->threads[i];

		print_thread_head(thread, origin, color, to);
		for (uint32_t at = thread->depth; at-- > 0;)
			print_frame(dump, &thread->frames[at], thread->locals ? thread->locals[at] : NULL, sources, &line, to);
	}
	sources_release(sources, &saved);
	buf_release(&line);
	free(sources);
}

static void json_frame(const struct dump *d, const struct frame *frame, const struct frame_locals *locals,
                       struct sources *sources, struct buf *line, struct writer *to)
{
	const struct dump_symbol *symbol = find_symbol(d, frame);
	const char *text = frame->kind == FRAME_PYTHON ? source_text(sources, symbol->file, frame->where, line) : NULL;

	writer_puts(to, "{\"name\":");
	line->bytes = symbol->mapped ? 0 : line->bytes;
	if (symbol->mapped)
		buf_printf(line, "%s+0x%" PRIx32, symbol->name, frame->where);
	writer_json_string(to, symbol->mapped ? buf_text(line) : symbol->name);
	writer_puts(to, ",\"file\":");
	writer_json_string(to, symbol->file);
	writer_printf(to, ",\"line\":%" PRIu32 ",\"first_line\":%" PRIu32, symbol->mapped ? 0 : frame->where,
	              symbol->mapped ? 0 : symbol->first_line);
	if (symbol->module) {
		writer_puts(to, ",\"kind\":\"native\",\"module\":");
		writer_json_string(to, symbol->module);
		writer_puts(to, ",\"build_id\":");
		writer_json_string(to, symbol->build_id);
	}
	if (symbol->mapped)
		writer_printf(to, ",\"offset\":%" PRIu32, frame->where);
	if (text) {
		writer_puts(to, ",\"source\":");
		writer_json_string(to, text);
	}
	if (locals)
		dump_json_locals(locals, to);
	writer_putc(to, '}');
}

static void json_thread(const struct dump *d, const struct dump_thread *thread, const struct dump_origin *origin,
                        struct sources *sources, struct buf *line, struct writer *to)
{
	char name[32];
	const char *comma = "", *signal_name = signal_of(thread, origin, name, sizeof(name));

	writer_printf(to, "{\"tid\":%" PRIu64 ",\"name\":", thread->tid);
	if (thread->name)
		writer_json_string(to, thread->name);
	else
		writer_puts(to, "null");
	writer_printf(to, ",\"interpreter\":%" PRId64 ",\"main\":%s,\"sampled\":%s,\"truncated\":%s,\"status\":[",
	              thread->interpreter, thread->is_main ? "true" : "false", thread->sampled ? "true" : "false",
	              thread->truncated ? "true" : "false");
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (thread->status & states[i].bit) {
			writer_printf(to, "%s\"%s\"", comma, states[i].key);
			comma = ",";
		}
	writer_puts(to, "]");
	if (thread->syscall)
		writer_printf(to, ",\"syscall\":\"%s\"", thread->syscall);
	if (origin->core && signal_name)
		writer_printf(to, ",\"signal\":\"%s\"", signal_name);
	else if (origin->core)
		writer_puts(to, ",\"signal\":null");
	if (thread->locals)
		writer_printf(to, ",\"locals_whole\":%s", thread->locals_whole ? "true" : "false");
	writer_puts(to, ",\"frames\":[");
	for (uint32_t at = thread->depth; at-- > 0;) {
		json_frame(d, &thread->frames[at], thread->locals ? thread->locals[at] : NULL, sources, line, to);
		writer_puts(to, at ? "," : "");
	}
	writer_puts(to, "]}");
}

void dump_print_json(const struct dump *dump, const struct dump_origin *origin, struct writer *to)
{
	const struct pyproc *proc = origin->proc;
	struct sources *sources = calloc(1, sizeof(*sources));
	struct credentials saved;
	struct buf line = {0};
	char command[COMMAND_BYTES_MAX];

	if (!sources) {
		to->err = to->err ? to->err : -ENOMEM;
		return;
	}
	command_of(origin, command, sizeof(command));
	writer_printf(to, "{\"pid\":%d,\"command\":", (int)proc->pid);
	writer_json_string(to, command);
	writer_puts(to, ",\"version\":");
	writer_json_string(to, proc->version_text);
	writer_puts(to, ",\"binary\":");
	writer_json_string(to, proc->binary);
	if (origin->core) {
		writer_puts(to, ",\"core\":");
		writer_json_string(to, origin->core_path);
	}
	writer_puts(to, ",\"threads\":[");
	sources_open(sources, origin, &saved);
	for (uint32_t i = 0; i < dump->thread_count; i++) {
		writer_puts(to, i ? ",\n" : "\n");
		json_thread(dump, &dump->threads[i], origin, sources, &line, to);
	}
	sources_release(sources, &saved);
	writer_puts(to, "\n]}\n");
	buf_release(&line);
	free(sources);
}
