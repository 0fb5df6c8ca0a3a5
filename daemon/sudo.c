/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/sudo.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "daemon/terminal.h"
#include "sampler/permission.h"

/* Text that no shell changes. */
static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:=,@%+-";

static void add_word(struct buf *to, const char *word)
{
	buf_putc(to, ' ');
	if (*word && word[strspn(word, plain)] == '\0') {
		buf_puts(to, word);
		return;
	}
	buf_putc(to, '\'');
	for (; *word; word++)
		if (*word == '\'')
			buf_puts(to, "'\\''");
		else
			buf_putc(to, *word);
	buf_putc(to, '\'');
}

void sudo_line(struct buf *to, const char *program, char **arguments)
{
	buf_puts(to, "sudo");
	add_word(to, program);
	for (; *arguments; arguments++)
		add_word(to, *arguments);
}

/* sudo looks for programs in these folders, whatever the caller's PATH is (secure_path of Debian's and Fedora's sudoers). */
static bool sudo_finds(const char *path)
{
	static const char *const folders[] = {"/usr/local/sbin/", "/usr/local/bin/", "/usr/sbin/",
	                                      "/usr/bin/",        "/sbin/",          "/bin/"};
	size_t bytes = (size_t)(strrchr(path, '/') + 1 - path);

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (strlen(folders[i]) == bytes && strncmp(folders[i], path, bytes) == 0)
			return true;
	return false;
}

void sudo_suggest(char **argv)
{
	const char *program = argv[0];
	struct permission ours;
	struct buf line = {0};
	char path[PATH_MAX];
	ssize_t bytes;

	permission_gather(&ours, getpid());
	if (ours.our_uid == 0 || ours.have_ptrace_cap || ours.ptrace_scope == 3)
		return;
	if (!strchr(program, '/') && (bytes = readlink("/proc/self/exe", path, sizeof(path) - 1)) > 0 && path[0] == '/') {
		path[bytes] = '\0';
		if (!sudo_finds(path))
			program = path;
	}
	buf_puts(&line, "    ");
	sudo_line(&line, program, argv + 1);
	terminal_line(buf_text(&line));
	buf_release(&line);
}
