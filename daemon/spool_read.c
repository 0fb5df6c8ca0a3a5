/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spool_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yajl/yajl_parse.h>

#include "daemon/spool_write.h"

/* --- the line of an item --- */

enum member { MEMBER_OTHER, MEMBER_LABELS, MEMBER_FROM, MEMBER_UNTIL, MEMBER_BYTES };

/* Labels are kept as offsets into texts while that grows. */
struct line {
	struct spool_reader *reader;
	unsigned depth; /* of objects: 1 the item, 2 its labels */
	enum member member;
	unsigned seen; /* 1 << enum member */
	size_t names[SPOOL_LABELS_MAX], values[SPOOL_LABELS_MAX];
	size_t labels, values_seen;
	uint64_t from_ns, until_ns, bytes;
	const char *wrong; /* why parsing was ended; static */
};

static int wrong(struct line *l, const char *why)
{
	l->wrong = why;
	return 0;
}

static int on_start_map(void *context)
{
	struct line *l = context;

	if (l->depth == 0 || (l->depth == 1 && l->member == MEMBER_LABELS)) {
		l->depth++;
		return 1;
	}
	return wrong(l, "an object where none belongs");
}

static int on_end_map(void *context)
{
	struct line *l = context;

	l->depth--;
	return 1;
}

static bool equals(const unsigned char *text, size_t bytes, const char *what)
{
	return bytes == strlen(what) && memcmp(text, what, bytes) == 0;
}

static bool is_name(const unsigned char *text, size_t bytes)
{
	if (bytes == 0 || bytes > SPOOL_LABEL_NAME_MAX || (text[0] >= '0' && text[0] <= '9'))
		return false;
	for (size_t i = 0; i < bytes; i++)
		if (!(text[i] >= 'a' && text[i] <= 'z') && !(text[i] >= 'A' && text[i] <= 'Z') &&
		    !(text[i] >= '0' && text[i] <= '9') && text[i] != '_' && text[i] != '.')
			return false;
	return true;
}

static size_t keep(struct line *l, const unsigned char *text, size_t bytes)
{
	size_t at = l->reader->texts.bytes;

	buf_add(&l->reader->texts, text, bytes);
	buf_putc(&l->reader->texts, '\0');
	return at;
}

static int on_key(void *context, const unsigned char *key, size_t bytes)
{
	static const struct {
		const char *name;
		enum member member;
	} members[] = {{"labels", MEMBER_LABELS},
	               {"from_ns", MEMBER_FROM},
	               {"until_ns", MEMBER_UNTIL},
	               {"bytes", MEMBER_BYTES}};
	struct line *l = context;

	if (l->depth == 2) {
		if (l->labels == SPOOL_LABELS_MAX)
			return wrong(l, "more labels than may be");
		if (!is_name(key, bytes))
			return wrong(l, "a label's name that is none");
		for (size_t i = 0; i < l->labels; i++)
			if (equals(key, bytes, l->reader->texts.data + l->names[i]))
				return wrong(l, "a label twice");
		l->names[l->labels++] = keep(l, key, bytes);
		return 1;
	}
	l->member = MEMBER_OTHER;
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (equals(key, bytes, members[i].name))
			l->member = members[i].member;
	if (l->member != MEMBER_OTHER && l->seen & 1u << l->member)
		return wrong(l, "a member twice");
	l->seen |= 1u << l->member;
	return 1;
}

/* Decimal digits alone, up to INT64_MAX: times and sizes. */
static int take_number(struct line *l, const char *text, size_t bytes, uint64_t *ret)
{
	uint64_t value = 0;

	if (bytes == 0 || bytes > 19)
		return wrong(l, "a number that is none");
	for (size_t i = 0; i < bytes; i++) {
		if (text[i] < '0' || text[i] > '9')
			return wrong(l, "a number that is none");
		value = value * 10 + (uint64_t)(text[i] - '0');
	}
	if (value > INT64_MAX)
		return wrong(l, "a number that is too large");
	*ret = value;
	return 1;
}

static int on_string(void *context, const unsigned char *text, size_t bytes)
{
	struct line *l = context;

	if (l->depth == 2) {
		if (bytes > SPOOL_LABEL_VALUE_MAX || memchr(text, '\0', bytes))
			return wrong(l, "a label's value that is none");
		l->values[l->values_seen++] = keep(l, text, bytes);
		return 1;
	}
	if (l->depth == 1 && (l->member == MEMBER_FROM || l->member == MEMBER_UNTIL))
		return take_number(l, (const char *)text, bytes, l->member == MEMBER_FROM ? &l->from_ns : &l->until_ns);
	return l->depth == 1 && l->member == MEMBER_OTHER ? 1 : wrong(l, "a text where none belongs");
}

static int on_number(void *context, const char *text, size_t bytes)
{
	struct line *l = context;

	if (l->depth == 1 && l->member == MEMBER_BYTES)
		return take_number(l, text, bytes, &l->bytes);
	return l->depth == 1 && l->member == MEMBER_OTHER ? 1 : wrong(l, "a number where none belongs");
}

static int on_start_array(void *context)
{
	return wrong(context, "a list where none belongs");
}

static int on_null(void *context)
{
	return wrong(context, "null where it does not belong");
}

static int on_boolean(void *context, int value)
{
	(void)value;
	return wrong(context, "a truth value where none belongs");
}

static int parse_line(struct line *l)
{
	static const yajl_callbacks callbacks = {.yajl_null = on_null,
	                                         .yajl_boolean = on_boolean,
	                                         .yajl_number = on_number,
	                                         .yajl_string = on_string,
	                                         .yajl_start_map = on_start_map,
	                                         .yajl_map_key = on_key,
	                                         .yajl_end_map = on_end_map,
	                                         .yajl_start_array = on_start_array};
	enum { NEEDED = 1 << MEMBER_LABELS | 1 << MEMBER_FROM | 1 << MEMBER_UNTIL | 1 << MEMBER_BYTES };
	struct spool_reader *r = l->reader;
	yajl_handle parser = yajl_alloc(&callbacks, NULL, l);
	yajl_status status;

	if (!parser)
		return -ENOMEM;
	status = yajl_parse(parser, (const unsigned char *)r->line.data, r->line.bytes);
	if (status == yajl_status_ok)
		status = yajl_complete_parse(parser);
	yajl_free(parser);
	if (r->texts.err)
		return r->texts.err;
	if (status != yajl_status_ok)
		return -EPROTO;
	if ((l->seen & NEEDED) != NEEDED)
		l->wrong = "a member is missing";
	else if (l->until_ns < l->from_ns)
		l->wrong = "it ends before it begins";
	return l->wrong ? -EPROTO : 0;
}

/* --- the file --- */

static int refuse(const struct spool_reader *r, const char *why, struct fault *fault)
{
	return fault_set(fault, -EPROTO, "", "it is malformed at byte %llu: %s", (unsigned long long)r->at, why);
}

/* Exactly `bytes` from where we are. */
static int read_exactly(struct spool_reader *r, void *to, uint64_t bytes, struct fault *fault)
{
	char *at = to;

	while (bytes > 0) {
		ssize_t got = pread(r->fd, at, bytes, (off_t)r->at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return fault_set(fault, -errno, "", "%s", strerror(errno));
		if (got == 0)
			return refuse(r, "it is cut off", fault);
		at += got;
		bytes -= (uint64_t)got;
		r->at += (uint64_t)got;
	}
	return 0;
}

int spool_reader_open_fd(struct spool_reader *ret_reader, int fd, struct fault *fault)
{
	struct spool_reader r = {.fd = fd};
	char head[sizeof(SPOOL_HEAD) - 1];
	struct stat status;
	int err;

	if (fstat(fd, &status) != 0)
		return fault_set(fault, -errno, "", "%s", strerror(errno));
	if (!S_ISREG(status.st_mode))
		return fault_set(fault, -EPROTO, "", "it is no regular file");
	r.size = (uint64_t)status.st_size;
	err = read_exactly(&r, head, sizeof(head), fault);
	if (err)
		return err;
	if (memcmp(head, SPOOL_HEAD, sizeof(head)) != 0)
		return fault_set(fault, -EPROTO, "", "it does not begin as a spool file does");
	*ret_reader = r;
	return 0;
}

int spool_reader_open(struct spool_reader *ret_reader, int dir_fd, const char *name, struct fault *fault)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), err;

	if (fd < 0)
		return fault_set(fault, -errno, "", "%s", strerror(errno));
	err = spool_reader_open_fd(ret_reader, fd, fault);
	if (err)
		close(fd);
	return err;
}

void spool_reader_close(struct spool_reader *reader)
{
	close(reader->fd);
	buf_release(&reader->line);
	buf_release(&reader->texts);
	buf_release(&reader->packed);
	reader->fd = -1;
}

/* The next line, without its end, into r->line. */
static int read_line(struct spool_reader *r, struct fault *fault)
{
	r->line.bytes = 0;
	for (;;) {
		uint64_t left = r->size - r->at, piece = left < 4096 ? left : 4096;
		char *to = buf_reserve(&r->line, (size_t)piece), *end;
		int err;

		if (!to)
			return fault_set(fault, -ENOMEM, "", "out of memory");
		if (piece == 0)
			return refuse(r, "a line without end", fault);
		err = read_exactly(r, to, piece, fault);
		if (err)
			return err;
		end = memchr(to, '\n', piece);
		if (end) {
			r->line.bytes += (size_t)(end - to);
			r->at -= piece - (uint64_t)(end - to) - 1;
			return 0;
		}
		r->line.bytes += piece;
		if (r->line.bytes > SPOOL_LINE_MAX)
			return refuse(r, "a line without end", fault);
	}
}

static int read_packed(struct spool_reader *r, uint64_t bytes, struct fault *fault)
{
	const unsigned char *head;
	void *to;
	int err;

	if (bytes < 18 || bytes > SPOOL_PACKED_MAX || bytes > r->size - r->at)
		return refuse(r, "a size that cannot be", fault);
	r->packed.bytes = 0;
	to = buf_reserve(&r->packed, (size_t)bytes);
	if (!to)
		return fault_set(fault, -ENOMEM, "", "out of memory");
	err = read_exactly(r, to, bytes, fault);
	if (err)
		return err;
	r->packed.bytes = (size_t)bytes;
	head = to;
	return head[0] == 0x1f && head[1] == 0x8b ? 0 : refuse(r, "a profile that is not packed with gzip", fault);
}

int spool_reader_next(struct spool_reader *reader, struct spool_read_item *ret_item, struct fault *fault)
{
	struct spool_reader *r = reader;
	struct line *l;
	int err;

	if (r->at >= r->size)
		return 0;
	err = read_line(r, fault);
	if (err)
		return err;
	l = calloc(1, sizeof(*l));
	if (!l)
		return fault_set(fault, -ENOMEM, "", "out of memory");
	l->reader = r;
	r->texts.bytes = 0;
	err = parse_line(l);
	if (err == -ENOMEM)
		fault_set(fault, err, "", "out of memory");
	else if (err)
		refuse(r, l->wrong ? l->wrong : "a line that is no JSON", fault);
	else
		err = read_packed(r, l->bytes, fault);
	for (size_t i = 0; !err && i < l->labels; i++)
		r->labels[i] =
			(struct label){.name = r->texts.data + l->names[i], .value = r->texts.data + l->values[i]};
	if (!err)
		*ret_item = (struct spool_read_item){.labels = {r->labels, l->labels},
		                                     .from_ns = l->from_ns,
		                                     .until_ns = l->until_ns,
		                                     .packed = r->packed.data,
		                                     .packed_bytes = r->packed.bytes};
	free(l);
	return err ? err : 1;
}
