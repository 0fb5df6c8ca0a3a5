/* SPDX-License-Identifier: Apache-2.0 */
/* Text of the target: str and bytes objects, and type names.
 *
 * A str is read in pieces, its head and the first of its text in one call, so that a short one costs one system call
 * and a long one no more memory than a piece. Only what fits the caller's buffer is read: a length is never trusted
 * with more than ending the loop. */
#include "sampler/pyobj.h"

#include <errno.h>
#include <string.h>

enum {
	PIECE_BYTES = 1024,    /* read at once */
	FIRST_BYTES = 256,     /* read with the head */
	WIDE_POINTER_OFF = 40, /* wchar_t *wstr of PyASCIIObject, to 3.11 */
	REPLACEMENT = 0xfffd,
	ELLIPSIS_BYTES = 3,
};

/* No object is larger: what claims to be is not what it was taken for. */
#define OBJECT_BYTES_MAX (UINT64_C(1) << 40)

/* UTF-8 being written; remembers where it can be cut so that an ellipsis still fits. */
struct text {
	char *to;
	size_t room; /* without the NUL */
	size_t at, cut_at;
	bool full;
};

static size_t encode(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* Adds one character, or cuts the text and sets full. */
static void text_add(struct text *text, uint32_t c)
{
	char bytes[4];
	size_t n;

	if (c < 0x20 || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		c = REPLACEMENT;
	n = encode(bytes, c);
	if (n > text->room - text->at) {
		text->full = true;
		if (text->room >= ELLIPSIS_BYTES) {
			text->at = text->cut_at;
			text->at += encode(text->to + text->at, 0x2026);
		}
		return;
	}
	memcpy(text->to + text->at, bytes, n);
	text->at += n;
	if (text->room - text->at >= ELLIPSIS_BYTES)
		text->cut_at = text->at;
}

static uint32_t unit_at(const unsigned char *from, size_t i, unsigned kind)
{
	uint16_t two;
	uint32_t four;

	switch (kind) {
	case 1:
		return from[i];
	case 2:
		memcpy(&two, from + 2 * i, sizeof(two));
		return two;
	default:
		memcpy(&four, from + 4 * i, sizeof(four));
		return four;
	}
}

static void text_add_units(struct text *text, const unsigned char *from, size_t count, unsigned kind)
{
	for (size_t i = 0; i < count && !text->full; i++)
		text_add(text, unit_at(from, i, kind));
}

static int text_end(struct text *text, bool *ret_cut)
{
	text->to[text->at] = '\0';
	if (ret_cut != NULL)
		*ret_cut = text->full;
	return (int)text->at;
}

/* Where a str's code points lie, and how wide they are. */
struct units {
	raddr_t at;
	uint64_t count;
	unsigned kind;  /* bytes a code point: 1, 2, 4 */
	size_t in_head; /* offset of the text in the head as read; 0: elsewhere */
};

static uint64_t word_at(const unsigned char *bytes, int32_t off)
{
	uint64_t word;

	memcpy(&word, bytes + off, sizeof(word));
	return word;
}

/* Understands a str's head, of which `got` bytes were read. The text is compact (behind the head), or elsewhere: that of a str's
 * subclass always, and before 3.12 what old interfaces of C made, which may not even have its final form ("not ready",
 * kind 0: then wchar_t, with a count of its own). */
static int find_units(struct units *ret_units, const struct pyabi *abi, raddr_t str, const unsigned char *head,
                      size_t got)
{
	struct units u = {.count = word_at(head, abi->str.length)};
	uint32_t state;
	bool compact, ascii;

	memcpy(&state, head + abi->str.state, sizeof(state));
	u.kind = state >> 2 & 7;
	compact = (state >> 5 & 1) != 0;
	ascii = (state >> 6 & 1) != 0;
	if (u.kind == 0 && !compact && abi->str_layout == STR_TO_311) {
		if (got < (size_t)abi->str.text)
			return -EFAULT;
		u.kind = sizeof(wchar_t);
		u.at = word_at(head, WIDE_POINTER_OFF);
		u.count = word_at(head, abi->str.text - 8);
	} else if (!compact) {
		if (got < (size_t)abi->str.text + 8)
			return -EFAULT;
		u.at = word_at(head, abi->str.text);
	} else {
		u.in_head = (size_t)(ascii ? abi->str.ascii_text : abi->str.text);
		u.at = str + u.in_head;
	}
	if ((u.kind != 1 && u.kind != 2 && u.kind != 4) || (ascii && u.kind != 1) || u.count > OBJECT_BYTES_MAX)
		return -EPROTO;
	if (!compact && u.at == 0 && u.count != 0)
		return -EPROTO;
	*ret_units = u;
	return 0;
}

int pyobj_str(const struct remote *r, const struct pyabi *abi, raddr_t str, char *to, size_t room, bool *ret_cut)
{
	unsigned char piece[PIECE_BYTES];
	struct text text = {.to = to, .room = room - 1};
	struct units u;
	uint64_t done = 0;
	ssize_t got;
	int err;

	if (room == 0)
		return -EINVAL;
	got = remote_read_some(r, str, piece, FIRST_BYTES);
	if (got < 0)
		return (int)got;
	if (got < abi->str.state + 4 || got < abi->str.length + 8)
		return -EFAULT;
	err = find_units(&u, abi, str, piece, (size_t)got);
	if (err != 0)
		return err;
	if (u.in_head != 0 && (size_t)got > u.in_head) {
		done = ((size_t)got - u.in_head) / u.kind;
		if (done > u.count)
			done = u.count;
		text_add_units(&text, piece + u.in_head, (size_t)done, u.kind);
	}
	/* Each turn writes at least one byte or ends: at most `room` turns, in practice room / PIECE_BYTES. */
	while (done < u.count && !text.full) {
		uint64_t want = u.count - done, most = text.room - text.at + 1;

		if (want > most)
			want = most;
		if (want > PIECE_BYTES / u.kind)
			want = PIECE_BYTES / u.kind;
		err = remote_read(r, u.at + done * u.kind, piece, (size_t)want * u.kind);
		if (err != 0)
			return err;
		text_add_units(&text, piece, (size_t)want, u.kind);
		done += want;
	}
	return text_end(&text, ret_cut);
}

int64_t pyobj_points(const struct remote *r, const struct pyabi *abi, raddr_t str, uint32_t *to, size_t room)
{
	unsigned char head[FIRST_BYTES], piece[PIECE_BYTES];
	struct units u;
	ssize_t got = remote_read_some(r, str, head, sizeof(head));
	int err;

	if (got < 0)
		return got;
	if (got < abi->str.state + 4 || got < abi->str.length + 8)
		return -EFAULT;
	err = find_units(&u, abi, str, head, (size_t)got);
	if (err != 0)
		return err;
	for (uint64_t done = 0; done < u.count && done < room;) {
		uint64_t want = (u.count < room ? u.count : room) - done;

		if (want > PIECE_BYTES / u.kind)
			want = PIECE_BYTES / u.kind;
		err = remote_read(r, u.at + done * u.kind, piece, (size_t)want * u.kind);
		if (err != 0)
			return err;
		for (uint64_t i = 0; i < want; i++, done++)
			to[done] = unit_at(piece, i, u.kind);
	}
	return (int64_t)u.count;
}

int64_t pyobj_bytes(const struct remote *r, const struct pyabi *abi, raddr_t bytes, void *to, size_t room)
{
	uint64_t size;
	int err = remote_read_u64(r, bytes + (raddr_t)abi->bytes.size, &size);

	if (err != 0)
		return err;
	if (size > OBJECT_BYTES_MAX)
		return -EPROTO;
	if (size < room)
		room = (size_t)size;
	if (room > 0)
		err = remote_read(r, bytes + (raddr_t)abi->bytes.data, to, room);
	return err != 0 ? err : (int64_t)size;
}

/* One character of UTF-8 that may be anything: what does not decode is U+FFFD, one byte long. */
static uint32_t decode(const unsigned char *from, size_t bytes, size_t *ret_used)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned n = from[0] < 0x80   ? 1
	             : from[0] < 0xc0 ? 0
	             : from[0] < 0xe0 ? 2
	             : from[0] < 0xf0 ? 3
	             : from[0] < 0xf8 ? 4
	                              : 0;
	uint32_t c = n <= 1 ? from[0] : from[0] & (0x7fu >> n);

	*ret_used = 1;
	if (n == 0 || n > bytes)
		return REPLACEMENT;
	for (unsigned i = 1; i < n; i++) {
		if ((from[i] & 0xc0) != 0x80)
			return REPLACEMENT;
		c = c << 6 | (from[i] & 0x3f);
	}
	if (c < smallest[n])
		return REPLACEMENT;
	*ret_used = n;
	return c;
}

/* tp_name is "Thread" in a class made by Python, "collections.OrderedDict" in one made by C: what type.__name__ says is
 * the last part. Names longer than a piece are cut. */
int pyobj_type_name(const struct remote *r, const struct pyabi *abi, raddr_t object, char *to, size_t room)
{
	unsigned char name[PIECE_BYTES];
	struct text text = {.to = to, .room = room - 1};
	const unsigned char *last_dot;
	uint64_t type, at;
	size_t bytes, from = 0;
	ssize_t got;
	int err;

	if (room == 0)
		return -EINVAL;
	err = remote_read_u64(r, object + (raddr_t)abi->type.type, &type);
	if (err == 0)
		err = remote_read_u64(r, type + (raddr_t)abi->type.name, &at);
	if (err != 0)
		return err;
	got = remote_read_some(r, at, name, sizeof(name));
	if (got < 0)
		return (int)got;
	bytes = strnlen((const char *)name, (size_t)got);
	last_dot = memrchr(name, '.', bytes);
	if (last_dot != NULL)
		from = (size_t)(last_dot - name) + 1;
	while (from < bytes && !text.full) {
		size_t used;

		text_add(&text, decode(name + from, bytes - from, &used));
		from += used;
	}
	return text_end(&text, NULL);
}
