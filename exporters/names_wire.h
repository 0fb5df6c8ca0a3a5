/* SPDX-License-Identifier: Apache-2.0 */
/* What the naming child and who asks it say to each other: messages over a SOCK_SEQPACKET pair, each whole and bounded, checked on both sides.
 *
 *     asking side                      child
 *     ADD module, its descriptors  →
 *     ASK module, offsets          →
 *                                  ←   ANSWERS frames of some of them, as often as it takes
 *                                  ←   DONE
 *
 * Host byte order: the two are one program. */
#ifndef SAMPLED_EXPORTERS_NAMES_WIRE_H
#define SAMPLED_EXPORTERS_NAMES_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporters/names_file.h"

enum wire_type { WIRE_ADD = 1, WIRE_ASK, WIRE_ANSWERS, WIRE_DONE, WIRE_FETCH, WIRE_FETCHED };

enum {
	WIRE_BYTES_MAX = 64 << 10,
	WIRE_OFFSETS_MAX = 1024, /* of one ASK */
	WIRE_MODULES_MAX = 4096, /* module numbers are below it */
	WIRE_FDS = 3,
};

struct wire_head {
	uint32_t type; /* enum wire_type */
	uint32_t module;
	uint32_t sequence; /* of the ASK */
	uint32_t count;    /* of offsets, or of answers in this message */
};

/* ADD: which descriptors come with it, in this order. */
enum { WIRE_HAS_FILE = 1, WIRE_HAS_ROOT = 2, WIRE_HAS_PERF_MAP = 4 };

struct wire_add {
	struct wire_head head;
	uint32_t flags; /* MAPPING_* */
	uint32_t has;   /* WIRE_HAS_* */
	uint64_t start;
	uint32_t path_bytes, build_id_bytes;
	char text[REC_TEXT_MAX + BUILD_ID_MAX]; /* path, then build id; what is used of it is sent */
};

struct wire_ask {
	struct wire_head head;
	uint32_t offsets[WIRE_OFFSETS_MAX]; /* as many as head.count are sent */
};

/* Without the arrays. */
enum { WIRE_ADD_BYTES = offsetof(struct wire_add, text), WIRE_ASK_BYTES = offsetof(struct wire_ask, offsets) };

struct wire_fetch { /* and its answer, with a descriptor where it was found */
	struct wire_head head;
	uint32_t kind; /* enum debug_kind */
	uint32_t build_id_bytes;
	uint8_t build_id[BUILD_ID_MAX];
};

/* A message on its way in; aligned for all of them. */
union wire_message {
	struct wire_head head;
	struct wire_add add;
	struct wire_ask ask;
	struct wire_fetch fetch;
	char bytes[WIRE_BYTES_MAX];
};

/* 0 or -errno; -EAGAIN: there is no room, and wait was not asked for. Descriptors stay the caller's; those below 0 are not sent. */
int wire_send(int socket_fd, const void *message, size_t bytes, const int fds[WIRE_FDS], bool wait);
/* One message and what came with it, -1 where nothing did. Its length; 0: the other side is gone; or -errno. */
long wire_receive(int socket_fd, union wire_message *to, int ret_fds[WIRE_FDS], bool wait);

/* Whether a message is what its type says, as long as it says, and within all bounds. */
bool wire_is_sound(const union wire_message *message, size_t bytes);

/* ANSWERS in the making, and sent whenever the next answer finds no room. */
struct wire_answers {
	int socket_fd;
	struct wire_head head;
	size_t used;
	union wire_message message;
	int err; /* sticky */
};

void wire_answers_begin(struct wire_answers *answers, int socket_fd, uint32_t module, uint32_t sequence);
/* The frames of the index-th offset; none: nothing is known, and nothing need be said. */
void wire_answers_add(struct wire_answers *answers, uint32_t index, const struct code_frame *frames, size_t count);
/* Sends what is left, and DONE. 0 or the first error. */
int wire_answers_end(struct wire_answers *answers);

/* Calls fn for each answer of a message that came in, in order; stops at the first that makes no sense, or when fn returns not 0. index is below
 * offset_count, frames are at least 1 and at most DEBUG_FRAMES_MAX; texts are NUL-terminated, and of the call only. 0, -EPROTO, or what fn
 * returned. */
int wire_answers_each(const union wire_message *message, size_t bytes, uint32_t offset_count,
                      int (*fn)(void *context, uint32_t index, const struct code_frame *frames, size_t count),
                      void *context);

#endif
