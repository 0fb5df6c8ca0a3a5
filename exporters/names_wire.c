/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/names_wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* How an answer lies in ANSWERS: this, then its frames, each this and its two texts with their NULs. */
struct packed_answer {
	uint32_t index, frames;
};

struct packed_frame {
	uint32_t first_line, line;
	uint16_t name_bytes, file_bytes; /* with NUL */
};

enum { TEXT_MAX = REC_TEXT_MAX };

int wire_send(int socket_fd, const void *message, size_t bytes, const int fds[WIRE_FDS], bool wait)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(WIRE_FDS * sizeof(int))];
	} control;
	struct iovec piece = {(void *)(uintptr_t)message, bytes}; /* NOLINT(performance-no-int-to-ptr) */
	struct msghdr head = {.msg_iov = &piece, .msg_iovlen = 1};
	unsigned count = 0;
	int sent[WIRE_FDS];
	ssize_t done;

	for (unsigned i = 0; fds && i < WIRE_FDS; i++)
		if (fds[i] >= 0)
			sent[count++] = fds[i];
	if (count) {
		memset(&control, 0, sizeof(control));
		head.msg_control = control.room;
		head.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.head = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(count * sizeof(int))};
		memcpy(CMSG_DATA(&control.head), sent, count * sizeof(int));
	}
	do
		done = sendmsg(socket_fd, &head, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
	while (done < 0 && errno == EINTR);
	return done < 0 ? -errno : 0;
}

long wire_receive(int socket_fd, union wire_message *to, int ret_fds[WIRE_FDS], bool wait)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(WIRE_FDS * sizeof(int))];
	} control;
	struct iovec piece = {to, sizeof(*to)};
	struct msghdr head = {
		.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof(control)};
	ssize_t got;

	do
		got = recvmsg(socket_fd, &head, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
	while (got < 0 && errno == EINTR);
	for (unsigned i = 0; i < WIRE_FDS; i++)
		ret_fds[i] = -1;
	if (got < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&head); c; c = CMSG_NXTHDR(&head, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			memcpy(ret_fds, CMSG_DATA(c), (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) * sizeof(int));
	return head.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EPROTO : (long)got;
}

bool wire_is_sound(const union wire_message *message, size_t bytes)
{
	const struct wire_head *head = &message->head;

	if (bytes < sizeof(*head) || bytes > WIRE_BYTES_MAX || head->module >= WIRE_MODULES_MAX)
		return false;
	switch (head->type) {
	case WIRE_ADD:
		return bytes >= WIRE_ADD_BYTES && message->add.path_bytes <= REC_TEXT_MAX &&
		       message->add.build_id_bytes <= BUILD_ID_MAX &&
		       bytes == WIRE_ADD_BYTES + message->add.path_bytes + message->add.build_id_bytes &&
		       !memchr(message->add.text, '\0', message->add.path_bytes);
	case WIRE_ASK:
		return head->count <= WIRE_OFFSETS_MAX && bytes == WIRE_ASK_BYTES + head->count * sizeof(uint32_t);
	case WIRE_ANSWERS:
		return head->count <= WIRE_OFFSETS_MAX;
	case WIRE_DONE:
		return bytes == sizeof(*head);
	case WIRE_FETCH:
	case WIRE_FETCHED:
		return bytes == sizeof(message->fetch) && message->fetch.build_id_bytes <= BUILD_ID_MAX &&
		       message->fetch.kind <= DEBUG_EXECUTABLE;
	default:
		return false;
	}
}

/* --- answers out --- */

void wire_answers_begin(struct wire_answers *answers, int socket_fd, uint32_t module, uint32_t sequence)
{
	answers->socket_fd = socket_fd;
	answers->head = (struct wire_head){WIRE_ANSWERS, module, sequence, 0};
	answers->used = sizeof(answers->head);
	answers->err = 0;
}

static void flush(struct wire_answers *a)
{
	if (a->head.count == 0 || a->err)
		return;
	memcpy(a->message.bytes, &a->head, sizeof(a->head));
	a->err = wire_send(a->socket_fd, a->message.bytes, a->used, NULL, true);
	a->head.count = 0;
	a->used = sizeof(a->head);
}

static void put(struct wire_answers *a, const void *bytes, size_t count)
{
	memcpy(a->message.bytes + a->used, bytes, count);
	a->used += count;
}

static void put_text(struct wire_answers *a, const char *text, size_t bytes)
{
	put(a, text, bytes - 1);
	put(a, "", 1);
}

static size_t text_bytes(const char *text, size_t most)
{
	return strnlen(text, most) + 1;
}

void wire_answers_add(struct wire_answers *answers, uint32_t index, const struct code_frame *frames, size_t count)
{
	struct packed_answer answer = {.index = index, .frames = (uint32_t)count};
	/* However many there are, they fit into one message. */
	size_t fair = (WIRE_BYTES_MAX - 1024) / (count ? count * 2 : 2) - sizeof(struct packed_frame);
	size_t most = fair < TEXT_MAX ? fair : TEXT_MAX, bytes = sizeof(answer);

	if (count == 0 || count > DEBUG_FRAMES_MAX)
		return;
	for (size_t i = 0; i < count; i++)
		bytes += sizeof(struct packed_frame) + text_bytes(frames[i].name, most) +
		         text_bytes(frames[i].file, most);
	if (answers->used + bytes > WIRE_BYTES_MAX)
		flush(answers);
	put(answers, &answer, sizeof(answer));
	for (size_t i = 0; i < count; i++) {
		struct packed_frame frame = {.first_line = frames[i].first_line,
		                             .line = frames[i].line,
		                             .name_bytes = (uint16_t)text_bytes(frames[i].name, most),
		                             .file_bytes = (uint16_t)text_bytes(frames[i].file, most)};

		put(answers, &frame, sizeof(frame));
		put_text(answers, frames[i].name, frame.name_bytes);
		put_text(answers, frames[i].file, frame.file_bytes);
	}
	answers->head.count++;
}

int wire_answers_end(struct wire_answers *answers)
{
	struct wire_head done = {WIRE_DONE, answers->head.module, answers->head.sequence, 0};

	flush(answers);
	if (!answers->err)
		answers->err = wire_send(answers->socket_fd, &done, sizeof(done), NULL, true);
	return answers->err;
}

/* --- answers in --- */

struct reading {
	const char *at;
	size_t left;
};

static bool take(struct reading *r, void *to, size_t bytes)
{
	if (r->left < bytes)
		return false;
	memcpy(to, r->at, bytes);
	r->at += bytes;
	r->left -= bytes;
	return true;
}

static const char *take_text(struct reading *r, size_t bytes)
{
	const char *text = r->at;

	if (bytes == 0 || bytes > r->left || bytes > TEXT_MAX + 1 || memchr(text, '\0', bytes) != text + bytes - 1)
		return NULL;
	r->at += bytes;
	r->left -= bytes;
	return text;
}

static bool take_frame(struct reading *r, struct code_frame *to)
{
	struct packed_frame packed;

	if (!take(r, &packed, sizeof(packed)))
		return false;
	to->first_line = packed.first_line;
	to->line = packed.line;
	to->name = take_text(r, packed.name_bytes);
	to->file = to->name ? take_text(r, packed.file_bytes) : NULL;
	return to->file != NULL;
}

int wire_answers_each(const union wire_message *message, size_t bytes, uint32_t offset_count,
                      int (*fn)(void *context, uint32_t index, const struct code_frame *frames, size_t count),
                      void *context)
{
	struct reading r = {message->bytes + sizeof(message->head), bytes - sizeof(message->head)};
	struct code_frame frames[DEBUG_FRAMES_MAX];

	for (uint32_t n = 0; n < message->head.count; n++) {
		struct packed_answer answer;
		int err;

		if (!take(&r, &answer, sizeof(answer)) || answer.index >= offset_count || answer.frames == 0 ||
		    answer.frames > DEBUG_FRAMES_MAX)
			return -EPROTO;
		for (uint32_t i = 0; i < answer.frames; i++)
			if (!take_frame(&r, &frames[i]))
				return -EPROTO;
		err = fn(context, answer.index, frames, answer.frames);
		if (err)
			return err;
	}
	return r.left == 0 ? 0 : -EPROTO;
}
