/* SPDX-License-Identifier: Apache-2.0 */
/* What goes over the control socket, one request a connection (a stream of AF_UNIX).
 *
 * A request is a head of four bytes (how many bytes follow, the lowest first) and that many bytes: the words of a command, each ended by a
 * NUL. One descriptor may come with it (SCM_RIGHTS): what `dump` makes is written to it, where who asks may do all. Or the request is the head
 * of an HTTP request, which begins with letters, as no head of four bytes does: "GET /metrics" is answered, by HTTP/1.0.
 *
 * A reply is frames: one byte for the kind, four for how many bytes follow, and these. The last one is CONTROL_END, so that a reply that was
 * cut is known to be. */
#ifndef SAMPLED_DAEMON_CONTROL_PROTOCOL_H
#define SAMPLED_DAEMON_CONTROL_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

#define CONTROL_PATH "/run/sampled/control.sock"

enum {
	CONTROL_HEAD_BYTES = 4,            /* of a request */
	CONTROL_WORDS_BYTES_MAX = 1 << 16, /* behind it */
	CONTROL_WORDS_MAX = 256,
	CONTROL_HTTP_BYTES_MAX = 1 << 14, /* of an HTTP request's head */
	CONTROL_FRAME_HEAD_BYTES = 5,
	CONTROL_FRAME_BYTES_MAX = 1 << 16, /* behind a frame's head */
};

enum control_frame {
	CONTROL_OUTPUT = 'o', /* for standard output, or the file that -o names */
	CONTROL_ERROR = 'e',  /* a line for standard error, without its newline */
	CONTROL_END = 'x',    /* one byte: the exit status. Nothing follows */
};

enum control_kind {
	CONTROL_PARTIAL,     /* more bytes are to come */
	CONTROL_COMMAND,     /* words */
	CONTROL_METRICS,     /* GET /metrics */
	CONTROL_NOT_FOUND,   /* GET of something else, or what began as HTTP and is none */
	CONTROL_NOT_ALLOWED, /* an HTTP method that is not GET */
};

/* A request, taken apart. */
struct control_words {
	int count;
	char *words[CONTROL_WORDS_MAX + 1]; /* point into the bytes; a NULL behind the last one */
};

/* Looks at the first bytes of a request, all that there are so far; `ended`: no more will come. Words are left in place, ended by their NUL.
 * 0 with *ret_kind, or, with *fault filled and *ret_kind for whom to say it to (CONTROL_NOT_FOUND: by HTTP): -EPROTO it is no request, -E2BIG it is too long. Hostile input. */
int control_parse(char *data, size_t bytes, bool ended, enum control_kind *ret_kind, struct control_words *ret_words,
                  struct fault *fault);

static inline void control_put_u32(unsigned char *to, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		to[i] = (unsigned char)(value >> 8 * i);
}

static inline uint32_t control_get_u32(const unsigned char *from)
{
	return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

#endif
