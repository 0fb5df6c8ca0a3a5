/* SPDX-License-Identifier: Apache-2.0 */
/* The notes of a core: threads and their registers, the process, its mappings of files, its auxiliary vector.
 *
 * Source: fs/binfmt_elf.c of Linux (fill_note_info, fill_files_note); gdb writes the same, in another order. A note that makes no
 * sense is passed over; notes that were cut off are not there. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler/core_state.h"

enum {
	NOTES_MAX = 1 << 21,
	THREADS_MAX = 1 << 16,
	FILE_NOTE_BYTES_MAX = 64 << 20, /* the kernel's default bound is 4 MiB */
	AUXV_MAX = 256,
	NAME_BYTES_MAX = 64,
};

/* Of the signals that end a process with a core (signal(7)). Debuggers write what they stopped it with. */
static bool leaves_core(int number)
{
	static const int numbers[] = {SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,
	                              SIGFPE,  SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i] == number)
			return true;
	return false;
}

/* Both the kernel and gdb write the thread that the signal was delivered to first, and its signal in each thread's note. */
static int take_thread(struct core *core, uint64_t at, uint64_t bytes)
{
	struct elf_prstatus status;
	struct core_thread *thread;

	if (bytes != sizeof(status) || core->thread_count >= THREADS_MAX ||
	    core_pread(core, at, &status, sizeof(status)))
		return 0;
	if (core->thread_count == core->thread_room) {
		size_t room = core->thread_room ? 2 * core->thread_room : 16;
		struct core_thread *threads = realloc(core->threads, room * sizeof(*threads));

		if (!threads)
			return -ENOMEM;
		core->threads = threads;
		core->thread_room = room;
	}
	thread = &core->threads[core->thread_count];
	*thread = (struct core_thread){.tid = status.pr_pid};
	if (core->thread_count == 0 && leaves_core(status.pr_cursig))
		thread->signal = status.pr_cursig;
	memcpy(thread->registers, status.pr_reg, sizeof(thread->registers));
	core->thread_count++;
	return 0;
}

static void take_process(struct core *core, uint64_t at, uint64_t bytes)
{
	struct elf_prpsinfo info;
	struct core_process *process = &core->process;

	if (bytes != sizeof(info) || core_pread(core, at, &info, sizeof(info)))
		return;
	process->pid = info.pr_pid;
	process->parent_pid = info.pr_ppid;
	memcpy(process->name, info.pr_fname, sizeof(info.pr_fname));
	memcpy(process->arguments, info.pr_psargs, sizeof(info.pr_psargs));
}

static int take_auxv(struct core *core, uint64_t at, uint64_t bytes)
{
	size_t count = (size_t)(bytes / sizeof(core->auxv[0]));

	if (core->auxv || count == 0)
		return 0;
	if (count > AUXV_MAX)
		count = AUXV_MAX;
	core->auxv = calloc(count, sizeof(core->auxv[0]));
	if (!core->auxv)
		return -ENOMEM;
	if (core_pread(core, at, core->auxv, count * sizeof(core->auxv[0])) == 0)
		core->auxv_count = count;
	return 0;
}

/* The mapping's file, by name: one file has its mappings in a row, or nearly so. */
static ssize_t file_of(struct core *core, const char *path, size_t path_bytes)
{
	for (size_t i = core->file_count; i-- > 0 && core->file_count - i <= 16;)
		if (strlen(core->files[i].path) == path_bytes && memcmp(core->files[i].path, path, path_bytes) == 0)
			return (ssize_t)i;
	return core_add_mapped(core, path, path_bytes);
}

/* long count, long page size; count times start, end, offset in pages; count names, each with a NUL. */
static int take_files_in(struct core *core, const char *data, size_t bytes)
{
	uint64_t head[2], entry[3], count, page;
	const char *name, *end = data + bytes;

	if (bytes < sizeof(head))
		return 0;
	memcpy(head, data, sizeof(head));
	count = head[0];
	page = head[1];
	if (count > (bytes - sizeof(head)) / sizeof(entry) || page == 0 || page > 1 << 30)
		return 0;
	name = data + sizeof(head) + count * sizeof(entry);
	for (uint64_t i = 0; i < count; i++) {
		const char *stop = name < end ? memchr(name, '\0', (size_t)(end - name)) : NULL;
		ssize_t file;
		int err;

		if (!stop)
			return 0;
		memcpy(entry, data + sizeof(head) + i * sizeof(entry), sizeof(entry));
		if (entry[0] < entry[1] && entry[2] <= INT64_MAX / page) {
			file = file_of(core, name, (size_t)(stop - name));
			err = file < 0 ? (int)file
			               : core_add_map(core, (struct core_map){.start = entry[0],
			                                                      .end = entry[1],
			                                                      .file_off = entry[2] * page,
			                                                      .file = (uint32_t)file});
			if (err)
				return err == -E2BIG ? 0 : err;
		}
		name = stop + 1;
	}
	return 0;
}

static int take_files(struct core *core, uint64_t at, uint64_t bytes)
{
	char *data;
	int err = 0;

	if (core->map_count || bytes > FILE_NOTE_BYTES_MAX || at > core->bytes || bytes > core->bytes - at)
		return 0;
	data = malloc(bytes ? bytes : 1);
	if (!data)
		return -ENOMEM;
	if (core_pread(core, at, data, bytes) == 0)
		err = take_files_in(core, data, (size_t)bytes);
	free(data);
	return err;
}

static int take_note(struct core *core, uint32_t type, uint64_t at, uint64_t bytes)
{
	switch (type) {
	case NT_PRSTATUS:
		return take_thread(core, at, bytes);
	case NT_PRPSINFO:
		take_process(core, at, bytes);
		return 0;
	case NT_AUXV:
		return take_auxv(core, at, bytes);
	case NT_FILE:
		return take_files(core, at, bytes);
	default:
		return 0;
	}
}

static uint64_t aligned(uint64_t bytes)
{
	return (bytes + 3) & ~UINT64_C(3);
}

int core_take_notes(struct core *core, uint64_t at, uint64_t bytes)
{
	uint64_t end;

	if (at > core->bytes)
		return 0;
	end = bytes < core->bytes - at ? at + bytes : core->bytes;
	for (unsigned i = 0; i < NOTES_MAX; i++) {
		Elf64_Nhdr note;
		char name[NAME_BYTES_MAX] = "";
		uint64_t body;
		int err;

		if (end - at < sizeof(note) || core_pread(core, at, &note, sizeof(note)))
			return 0;
		at += sizeof(note);
		if (aligned(note.n_namesz) > end - at)
			return 0;
		body = at + aligned(note.n_namesz);
		if (note.n_namesz < sizeof(name) && core_pread(core, at, name, note.n_namesz))
			return 0;
		if (note.n_descsz > end - body)
			return 0;
		if (strcmp(name, "CORE") == 0) {
			err = take_note(core, note.n_type, body, note.n_descsz);
			if (err)
				return err;
		}
		if (aligned(note.n_descsz) > end - body)
			return 0;
		at = body + aligned(note.n_descsz);
	}
	return 0;
}

uint64_t core_auxv(const struct core *core, uint64_t type)
{
	for (size_t i = 0; i < core->auxv_count; i++)
		if (core->auxv[i].a_type == type)
			return core->auxv[i].a_un.a_val;
	return 0;
}

/* pthread_self() is what the thread's register for its own data holds (x86-64: the base of fs). */
const struct core_thread *core_find_thread(const struct core *core, uint64_t pthread_self, pid_t tid)
{
	for (size_t i = 0; i < core->thread_count; i++) {
#if defined(__x86_64__)
		enum { FS_BASE = 21 }; /* of struct user_regs_struct */

		if (pthread_self && core->threads[i].registers[FS_BASE] == pthread_self)
			return &core->threads[i];
#else
		(void)pthread_self;
#endif
	}
	for (size_t i = 0; i < core->thread_count; i++)
		if (tid > 0 && core->threads[i].tid == tid)
			return &core->threads[i];
	return NULL;
}
