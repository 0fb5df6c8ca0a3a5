/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a core file, and its memory: the segments it holds, and where it holds none the files that were mapped. The file is read
 * with pread(), never mapped: one that is cut meanwhile would kill the reader. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampler/core_state.h"

enum {
	HEADERS_MAX = 1 << 20, /* the kernel's default is 65,530 mappings */
	NOTE_SEGMENTS_MAX = 64,
};

int core_pread(const struct core *core, uint64_t at, void *to, uint64_t bytes)
{
	uint64_t done = 0;

	if (at > core->bytes || bytes > core->bytes - at)
		return -EFAULT;
	while (done < bytes) {
		ssize_t got = pread(core->fd, (char *)to + done, bytes - done, (off_t)(at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -EFAULT;
		done += (uint64_t)got;
	}
	return 0;
}

static int compare_segments(const void *left, const void *right)
{
	const struct core_segment *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return (a->file_off > b->file_off) - (a->file_off < b->file_off);
}

/* In rising order, each beginning where the one before it has ended: of two that overlap, the lower one stands. */
static void settle_segments(struct core *core)
{
	size_t kept = 0;
	raddr_t end = 0;

	if (core->segment_count)
		qsort(core->segments, core->segment_count, sizeof(core->segments[0]), compare_segments);
	for (size_t i = 0; i < core->segment_count; i++) {
		const struct core_segment *segment = &core->segments[i];

		if (segment->start < end)
			continue;
		end = segment->start + segment->memory_bytes;
		core->segments[kept++] = *segment;
	}
	core->segment_count = kept;
}

/* Notes one PT_LOAD, and what of it the file lacks. */
static void take_segment(struct core *core, const Elf64_Phdr *header)
{
	uint64_t there = header->p_offset < core->bytes ? core->bytes - header->p_offset : 0;

	/* Those that are empty, or leave the address space, say nothing. */
	if (header->p_memsz == 0 || header->p_memsz > UINT64_MAX - header->p_vaddr)
		return;
	if (header->p_filesz > there && core->missing_bytes <= UINT64_MAX - (header->p_filesz - there))
		core->missing_bytes += header->p_filesz - there;
	core->segments[core->segment_count++] = (struct core_segment){
		.start = header->p_vaddr,
		.memory_bytes = header->p_memsz,
		.file_bytes = header->p_filesz < header->p_memsz ? header->p_filesz : header->p_memsz,
		.file_off = header->p_offset,
		.writable = header->p_flags & PF_W,
		.executable = header->p_flags & PF_X,
	};
}

/* Cores of more than 65,534 mappings have their number elsewhere (elf(5), PN_XNUM). */
static int count_headers(const struct core *core, const Elf64_Ehdr *file, uint64_t *ret_count)
{
	Elf64_Shdr first;

	*ret_count = file->e_phnum;
	if (file->e_phnum != PN_XNUM)
		return 0;
	if (core_pread(core, file->e_shoff, &first, sizeof(first)))
		return -EFAULT;
	*ret_count = first.sh_info;
	return 0;
}

/* The program headers: memory first, since notes are understood with it. 0, -ENOEXEC or -ENOMEM. */
static int take_headers(struct core *core, const Elf64_Ehdr *file, struct fault *fault)
{
	Elf64_Phdr *headers;
	unsigned notes = 0;
	uint64_t count, bytes;
	int err = 0;

	if (count_headers(core, file, &count) || file->e_phoff > core->bytes ||
	    (count && file->e_phentsize != sizeof(*headers)))
		return fault_set(fault, -ENOEXEC, "", "it was cut within its headers");
	if (count > HEADERS_MAX)
		return fault_set(fault, -ENOEXEC, "", "its headers make no sense");
	bytes = count * sizeof(*headers);
	if (bytes > core->bytes - file->e_phoff)
		return fault_set(fault, -ENOEXEC, "", "it was cut within its headers");
	headers = calloc(count ? count : 1, sizeof(*headers));
	core->segments = calloc(count ? count : 1, sizeof(core->segments[0]));
	if (!headers || !core->segments) {
		free(headers);
		return fault_set(fault, -ENOMEM, "", "out of memory");
	}
	if (core_pread(core, file->e_phoff, headers, bytes))
		err = fault_set(fault, -EIO, "", "it cannot be read");
	for (uint64_t i = 0; !err && i < count; i++)
		if (headers[i].p_type == PT_LOAD)
			take_segment(core, &headers[i]);
	if (!err)
		settle_segments(core);
	for (uint64_t i = 0; !err && i < count && notes < NOTE_SEGMENTS_MAX; i++) {
		if (headers[i].p_type != PT_NOTE)
			continue;
		notes++;
		if (core_take_notes(core, headers[i].p_offset, headers[i].p_filesz))
			err = fault_set(fault, -ENOMEM, "", "out of memory");
	}
	free(headers);
	return err;
}

/* What it is when it is not an ELF file. */
static int explain(const unsigned char *magic, struct fault *fault)
{
	static const struct {
		unsigned char magic[6];
		size_t bytes;
		const char *name, *mend;
	} packers[] = {
		{{0x28, 0xb5, 0x2f, 0xfd}, 4, "zstd", "unpack it first: zstd -d FILE, or coredumpctl dump -o core"},
		{{0x1f, 0x8b}, 2, "gzip", "unpack it first: gunzip FILE"},
		{{0xfd, '7', 'z', 'X', 'Z', 0}, 6, "xz", "unpack it first: xz -d FILE"},
		{{0x04, 0x22, 0x4d, 0x18}, 4, "lz4", "unpack it first: lz4 -d FILE, or coredumpctl dump -o core"},
		{{'B', 'Z', 'h'}, 3, "bzip2", "unpack it first: bunzip2 FILE"},
	};

	for (size_t i = 0; i < sizeof(packers) / sizeof(packers[0]); i++)
		if (memcmp(magic, packers[i].magic, packers[i].bytes) == 0)
			return fault_set(fault, -ENOEXEC, packers[i].mend, "it is compressed with %s", packers[i].name);
	return fault_set(fault, -ENOEXEC, "", "it is not a core file");
}

static int check_header(const struct core *core, Elf64_Ehdr *file, struct fault *fault)
{
	memset(file, 0, sizeof(*file));
	if (core_pread(core, 0, file, core->bytes < sizeof(*file) ? core->bytes : sizeof(*file)))
		return fault_set(fault, -EIO, "", "it cannot be read");
	if (memcmp(file->e_ident, ELFMAG, SELFMAG) != 0)
		return explain(file->e_ident, fault);
	if (core->bytes < sizeof(*file))
		return fault_set(fault, -ENOEXEC, "", "it was cut within its headers");
	if (file->e_ident[EI_CLASS] != ELFCLASS64 || file->e_ident[EI_DATA] != ELFDATA2LSB ||
	    file->e_machine != CORE_MACHINE)
		return fault_set(fault, -ENOEXEC, "it takes a sampled of that machine",
		                 "it is of another kind of machine");
	if (file->e_type != ET_CORE)
		return fault_set(fault, -ENOEXEC, "--exe names the program",
		                 "it is a program or a library, not a core file");
	return 0;
}

static int open_regular(const char *path, struct stat *ret_st, struct fault *fault)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int err;

	if (fd < 0) {
		err = -errno;
		return fault_set(fault, err, "", "%s", strerror(-err));
	}
	if (fstat(fd, ret_st) < 0)
		err = fault_set(fault, -errno, "", "%s", strerror(errno));
	else if (!S_ISREG(ret_st->st_mode))
		err = fault_set(fault, -ENOEXEC, "", "it is not a core file");
	else
		return fd;
	close(fd);
	return err;
}

int core_open(struct core **ret_core, const char *path, struct fault *fault)
{
	struct stat st;
	Elf64_Ehdr file;
	struct core *core;
	int err, fd = open_regular(path, &st, fault);

	if (fd < 0)
		return fd;
	core = calloc(1, sizeof(*core));
	if (!core) {
		close(fd);
		return fault_set(fault, -ENOMEM, "", "out of memory");
	}
	*core = (struct core){.fd = fd, .bytes = (uint64_t)st.st_size, .uid = st.st_uid, .gid = st.st_gid};
	pthread_mutex_init(&core->lock, NULL);
	err = check_header(core, &file, fault);
	if (!err)
		err = take_headers(core, &file, fault);
	if (!err && core_settle_maps(core))
		err = fault_set(fault, -ENOMEM, "", "out of memory");
	if (err) {
		core_free(core);
		return err;
	}
	*ret_core = core;
	return 0;
}

void core_free(struct core *core)
{
	if (!core)
		return;
	for (size_t i = 0; i < core->file_count; i++) {
		if (core->files[i].fd >= 0)
			close(core->files[i].fd);
		free(core->files[i].path);
	}
	free(core->files);
	free(core->maps);
	free(core->segments);
	free(core->threads);
	free(core->auxv);
	pthread_mutex_destroy(&core->lock);
	close(core->fd);
	free(core);
}

const struct core_segment *core_find_segment(const struct core *core, raddr_t addr,
                                             const struct core_segment **ret_next)
{
	size_t low = 0, high = core->segment_count;

	while (low < high) { /* the first that begins above addr */
		size_t middle = low + (high - low) / 2;

		if (core->segments[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_next = low < core->segment_count ? &core->segments[low] : NULL;
	if (low == 0 || addr - core->segments[low - 1].start >= core->segments[low - 1].memory_bytes)
		return NULL;
	return &core->segments[low - 1];
}

size_t core_read_own(const struct core *core, raddr_t addr, void *to, size_t bytes)
{
	const struct core_segment *next, *segment = core_find_segment(core, addr, &next);
	uint64_t into, at;
	ssize_t got;

	if (!segment)
		return 0;
	into = addr - segment->start;
	at = segment->file_off + into;
	if (into >= segment->file_bytes || segment->file_off > core->bytes || into >= core->bytes - segment->file_off)
		return 0;
	if (bytes > segment->file_bytes - into)
		bytes = (size_t)(segment->file_bytes - into);
	if (bytes > core->bytes - at)
		bytes = (size_t)(core->bytes - at);
	do
		got = pread(core->fd, to, bytes, (off_t)at);
	while (got < 0 && errno == EINTR);
	return got > 0 ? (size_t)got : 0;
}

/* What the file that was mapped there has: bytes of it that the process had changed are in the core, unless that was cut. */
static ssize_t read_mapped(struct core *core, raddr_t addr, void *to, size_t bytes)
{
	const struct core_segment *next, *segment = core_find_segment(core, addr, &next);
	const struct core_map *map = core_find_map(core, addr);
	ssize_t got;
	int fd;

	if (!map || (segment && segment->writable && addr - segment->start < segment->file_bytes))
		return -EFAULT;
	if (bytes > map->end - addr)
		bytes = (size_t)(map->end - addr);
	if (next && bytes > next->start - addr)
		bytes = (size_t)(next->start - addr);
	if (map->file_off > INT64_MAX || addr - map->start > INT64_MAX - map->file_off)
		return -EFAULT;
	fd = core_file_fd(core, map->file);
	if (fd < 0)
		return -EFAULT;
	do
		got = pread(fd, to, bytes, (off_t)(map->file_off + (addr - map->start)));
	while (got < 0 && errno == EINTR);
	return got > 0 ? got : -EFAULT;
}

ssize_t core_read_some(struct core *core, raddr_t addr, void *to, size_t bytes)
{
	size_t done = 0;

	/* On across the seams of segments, which readers of a process never meet. */
	while (done < bytes && addr <= UINT64_MAX - done) {
		size_t own = core_read_own(core, addr + done, (char *)to + done, bytes - done);
		ssize_t got = own ? (ssize_t)own : read_mapped(core, addr + done, (char *)to + done, bytes - done);

		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done ? (ssize_t)done : -EFAULT;
}

size_t core_thread_count(const struct core *core)
{
	return core->thread_count;
}

const struct core_thread *core_thread(const struct core *core, size_t i)
{
	return &core->threads[i];
}

const struct core_process *core_process(const struct core *core)
{
	return &core->process;
}

void core_owner(const struct core *core, uid_t *ret_uid, gid_t *ret_gid)
{
	*ret_uid = core->uid;
	*ret_gid = core->gid;
}

uint64_t core_missing_bytes(const struct core *core)
{
	return core->missing_bytes;
}
