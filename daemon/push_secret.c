/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/push_secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static int take(struct push_secret *s, const char *bytes, size_t count, struct fault *fault)
{
	char *text;

	while (count > 0 && (bytes[count - 1] == '\n' || bytes[count - 1] == '\r'))
		count--;
	if (count == 0)
		return fault_set(fault, -EINVAL, "", "it is empty");
	for (size_t i = 0; i < count; i++)
		if ((unsigned char)bytes[i] < ' ' || bytes[i] == 0x7f)
			return fault_set(fault, -EINVAL, "", "it is not one line of text");
	text = strndup(bytes, count);
	if (!text)
		return fault_set(fault, -ENOMEM, "", "out of memory");
	push_secret_release(s);
	s->text = text;
	return 0;
}

void push_secret_path(char *to, size_t room, const char *name)
{
	const char *folder = getenv("CREDENTIALS_DIRECTORY");

	if (strchr(name, '/')) {
		snprintf(to, room, "%s", name);
		return;
	}
	snprintf(to, room, "%s/%s", folder ? folder : PUSH_SECRET_FOLDER, name);
	/* Of a folder that was handed over as a whole, names begin with that of the folder: LoadCredential=credentials:… */
	if (folder && access(to, F_OK) != 0)
		snprintf(to, room, "%s/credentials_%s", folder, name);
}

int push_secret_read(struct push_secret *secret, const char *path, struct fault *fault)
{
	char bytes[PUSH_SECRET_MAX + 1];
	bool was_said = secret->was_said;
	struct stat now;
	ssize_t got;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return fault_set(fault, -errno, "", "%s", strerror(errno));
	if (fstat(fd, &now) != 0)
		err = fault_set(fault, -errno, "", "%s", strerror(errno));
	else if (!S_ISREG(now.st_mode))
		err = fault_set(fault, -EINVAL, "", "it is no regular file");
	if (err || (secret->text && is_same(&now, &secret->seen)))
		goto out;
	got = read(fd, bytes, sizeof(bytes));
	if (got < 0)
		err = fault_set(fault, -errno, "", "%s", strerror(errno));
	else if (got > PUSH_SECRET_MAX)
		err = fault_set(fault, -EFBIG, "", "it is longer than a credential");
	else
		err = take(secret, bytes, (size_t)got, fault);
	explicit_bzero(bytes, sizeof(bytes));
	if (!err)
		*secret = (struct push_secret){
			.text = secret->text, .seen = now, .is_open = (now.st_mode & 077) != 0, .was_said = was_said};
out:
	close(fd);
	return err;
}

void push_secret_release(struct push_secret *secret)
{
	if (secret->text)
		explicit_bzero(secret->text, strlen(secret->text));
	free(secret->text);
	secret->text = NULL;
}
