/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/names_debug.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "exporters/names_library.h"
#include "exporters/names_symbols.h"

#define FILE_BYTES_MAX     (INT64_C(8) << 30)
#define PACKED_BYTES_MAX   (UINT64_C(64) << 20)  /* of .gnu_debugdata */
#define UNPACKED_BYTES_MAX (UINT64_C(256) << 20) /* … and of what is in it */
#define CHECKED_BYTES_MAX  (INT64_C(4) << 30)    /* of a file whose checksum is taken */

static const char debug_folder[] = "/usr/lib/debug";

int open_below(int root_fd, const char *path, int flags)
{
	struct stat st;
	int fd;

	while (root_fd >= 0 && *path == '/')
		path++;
	fd = openat(root_fd >= 0 ? root_fd : AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= FILE_BYTES_MAX)
		return fd;
	close(fd);
	return -EINVAL;
}

int open_elf_fd(struct open_elf *ret_elf, int fd)
{
	struct open_elf opened = {.fd = fd};
	struct stat st;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_BYTES_MAX) {
		close(fd);
		return -EINVAL;
	}
	elf_version(EV_CURRENT);
	/* Mapped: pages that are not looked at cost nothing. A file that is cut short meanwhile ends this process, which counts with that. */
	opened.elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!opened.elf || elf_kind(opened.elf) != ELF_K_ELF) {
		open_elf_close(&opened);
		return -EBADMSG;
	}
	*ret_elf = opened;
	return 0;
}

int open_elf_memory(struct open_elf *ret_elf, char *bytes, size_t count)
{
	struct open_elf opened = {.fd = -1, .memory = bytes};

	elf_version(EV_CURRENT);
	opened.elf = elf_memory(bytes, count);
	if (!opened.elf || elf_kind(opened.elf) != ELF_K_ELF) {
		open_elf_close(&opened);
		return -EBADMSG;
	}
	*ret_elf = opened;
	return 0;
}

void open_elf_close(struct open_elf *elf)
{
	if (elf->elf)
		elf_end(elf->elf);
	if (elf->fd >= 0)
		close(elf->fd);
	free(elf->memory);
	*elf = (struct open_elf){.fd = -1};
}

static size_t build_id_of(Elf_Data *notes, const uint8_t **ret_build_id)
{
	size_t at = 0, name_at, desc_at;
	GElf_Nhdr note;

	while (notes && (at = gelf_getnote(notes, at, &note, &name_at, &desc_at)) > 0)
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    memcmp((const char *)notes->d_buf + name_at, "GNU", 4) == 0) {
			*ret_build_id = (const uint8_t *)notes->d_buf + desc_at;
			return note.n_descsz <= BUILD_ID_MAX ? note.n_descsz : 0;
		}
	return 0;
}

size_t elf_build_id(Elf *elf, const uint8_t **ret_build_id)
{
	size_t count = 0, bytes = 0;
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while (bytes == 0 && (section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_NOTE)
			bytes = build_id_of(elf_getdata(section, NULL), ret_build_id);
	if (elf_getphdrnum(elf, &count))
		count = 0;
	for (size_t i = 0; bytes == 0 && i < count && i < PN_XNUM; i++) {
		GElf_Phdr segment;

		if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_NOTE)
			bytes = build_id_of(elf_getdata_rawchunk(elf, (int64_t)segment.p_offset, segment.p_filesz,
			                                         segment.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR),
			                    ret_build_id);
	}
	return bytes;
}

bool elf_has_section(Elf *elf, const char *name)
{
	Elf_Scn *section;
	GElf_Shdr header;

	return elf_section(elf, name, &section, &header) && header.sh_type != SHT_NOBITS;
}

/* --- separate debug files --- */

struct wanted {
	const uint8_t *build_id;
	size_t build_id_bytes;
	bool check; /* the checksum */
	uint32_t checksum;
};

/* As .gnu_debuglink has it: CRC-32 of the whole file. */
static bool has_checksum(int fd, uint32_t checksum)
{
	static uint8_t piece[1 << 16];
	uLong sum = crc32(0, NULL, 0);
	struct stat st;
	int64_t at = 0;

	if (fstat(fd, &st) != 0 || st.st_size > CHECKED_BYTES_MAX)
		return false;
	while (at < st.st_size) {
		ssize_t got = pread(fd, piece, sizeof(piece), at);

		if (got <= 0)
			return false;
		sum = crc32(sum, piece, (uInt)got);
		at += got;
	}
	return (uint32_t)sum == checksum;
}

/* Takes the descriptor over; keeps it if it is the file that is looked for. */
static bool accept(struct open_elf *ret_elf, int fd, const struct wanted *wanted)
{
	const uint8_t *build_id;
	struct open_elf opened;
	size_t bytes;

	if (fd < 0)
		return false;
	if (wanted->check && !has_checksum(fd, wanted->checksum)) {
		close(fd);
		return false;
	}
	if (open_elf_fd(&opened, fd))
		return false;
	bytes = elf_build_id(opened.elf, &build_id);
	if ((wanted->build_id_bytes == 0 ||
	     (bytes == wanted->build_id_bytes && memcmp(build_id, wanted->build_id, bytes) == 0)) &&
	    (elf_has_section(opened.elf, ".debug_info") || elf_has_section(opened.elf, ".symtab") ||
	     elf_has_section(opened.elf, ".zdebug_info"))) {
		*ret_elf = opened;
		return true;
	}
	open_elf_close(&opened);
	return false;
}

/* The same name below the process' root, and on this host. Its last part may be a link where the build id tells whether it is the right one. */
static bool try_name(struct open_elf *ret_elf, const char *path, const struct wanted *wanted, int root_fd)
{
	int flags = wanted->build_id_bytes ? 0 : O_NOFOLLOW;

	if (root_fd >= 0 && accept(ret_elf, open_below(root_fd, path, flags), wanted))
		return true;
	return accept(ret_elf, open_below(-1, path, flags), wanted);
}

static bool find_by_build_id(struct open_elf *ret_elf, const struct wanted *wanted, int root_fd)
{
	char path[sizeof(debug_folder) + 2 * BUILD_ID_MAX + 32], *to = path;

	if (wanted->build_id_bytes < 2)
		return false;
	to += sprintf(to, "%s/.build-id/%02x/", debug_folder, wanted->build_id[0]);
	for (size_t i = 1; i < wanted->build_id_bytes; i++)
		to += sprintf(to, "%02x", wanted->build_id[i]);
	strcpy(to, ".debug");
	return try_name(ret_elf, path, wanted, root_fd);
}

/* As gdb looks: beside the file, in .debug beside it, and in the same folder below /usr/lib/debug. */
static bool find_by_link(struct open_elf *ret_elf, Elf *of, struct wanted *wanted,
                         const struct code_file_source *source)
{
	const char *slash = source->path[0] == '/' ? strrchr(source->path, '/') : NULL;
	char folder[PATH_MAX], path[2 * PATH_MAX];
	const char *name;
	Elf_Scn *section;
	GElf_Shdr header;
	Elf_Data *data;
	size_t bytes;

	if (!slash || !elf_section(of, ".gnu_debuglink", &section, &header) || !(data = elf_rawdata(section, NULL)))
		return false;
	name = data->d_buf;
	bytes = name ? strnlen(name, data->d_size) : 0;
	if (bytes == 0 || bytes > NAME_MAX || memchr(name, '/', bytes) || strcmp(name, "..") == 0 ||
	    (bytes + 4) / 4 * 4 + 4 > data->d_size)
		return false;
	memcpy(&wanted->checksum, name + (bytes + 4) / 4 * 4, sizeof(wanted->checksum));
	wanted->check = true;
	snprintf(folder, sizeof(folder), "%.*s", (int)(slash - source->path), source->path);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (try_name(ret_elf, path, wanted, source->root_fd))
		return true;
	snprintf(path, sizeof(path), "%s/.debug/%s", folder, name);
	if (try_name(ret_elf, path, wanted, source->root_fd))
		return true;
	snprintf(path, sizeof(path), "%s%s/%s", debug_folder, folder, name);
	return try_name(ret_elf, path, wanted, source->root_fd);
}

int find_debug_file(struct open_elf *ret_elf, Elf *of, const uint8_t *build_id, size_t build_id_bytes,
                    const struct code_file_source *source)
{
	struct wanted wanted = {.build_id = build_id, .build_id_bytes = build_id_bytes};
	struct wanted linked = wanted;

	if (find_by_build_id(ret_elf, &wanted, source->root_fd) || find_by_link(ret_elf, of, &linked, source))
		return 0;
	if (source->fetch && build_id_bytes &&
	    accept(ret_elf, source->fetch(source->context, build_id, build_id_bytes, DEBUG_DATA), &wanted))
		return 0;
	return -ENOENT;
}

int find_packed_symbols(struct open_elf *ret_elf, Elf *of)
{
	__typeof__(&lzma_stream_buffer_decode) unpack = names_library_lzma();
	uint64_t memory = UNPACKED_BYTES_MAX;
	Elf_Scn *section;
	GElf_Shdr header;
	Elf_Data *data;

	if (!unpack || !elf_section(of, ".gnu_debugdata", &section, &header) || !(data = elf_rawdata(section, NULL)) ||
	    !data->d_buf || data->d_size > PACKED_BYTES_MAX)
		return -ENOENT;
	/* Its size is told at its end; a guess is doubled instead of believing it. */
	for (size_t room = data->d_size * 8 + 4096; room <= UNPACKED_BYTES_MAX; room *= 4) {
		size_t in = 0, out = 0;
		char *bytes = malloc(room);
		lzma_ret result;

		if (!bytes)
			break;
		result = unpack(&memory, 0, NULL, data->d_buf, &in, data->d_size, (uint8_t *)bytes, &out, room);
		if (result == LZMA_OK)
			return open_elf_memory(ret_elf, bytes, out) ? -ENOENT : 0;
		free(bytes);
		if (result != LZMA_BUF_ERROR)
			break;
	}
	return -ENOENT;
}
