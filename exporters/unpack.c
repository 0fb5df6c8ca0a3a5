/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/unpack.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

enum { PACKED_BYTES = 65536 };

struct packing {
	z_stream z;
#ifdef HAVE_ZSTD
	ZSTD_DStream *zstd;
#endif
	bool is_zstd;
	bool open;    /* a member has begun and not ended */
	bool drained; /* the file has no more */
	size_t at, end;
	unsigned char data[PACKED_BYTES];
};

ssize_t read_some(int fd, void *to, size_t bytes)
{
	ssize_t done;

	do {
		done = read(fd, to, bytes);
		/* Whoever shares the pipe with us may have made it non-blocking. */
		if (done < 0 && errno == EAGAIN)
			poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
	} while (done < 0 && (errno == EINTR || errno == EAGAIN));
	return done < 0 ? -errno : done;
}

void packing_free(struct packing *p)
{
	if (!p)
		return;
	if (!p->is_zstd)
		inflateEnd(&p->z);
#ifdef HAVE_ZSTD
	ZSTD_freeDStream(p->zstd);
#endif
	free(p);
}

enum packed packed_as(const unsigned char *head, size_t bytes)
{
	if (bytes >= 2 && head[0] == 0x1f && head[1] == 0x8b)
		return PACKED_GZIP;
	if (bytes >= 4 && memcmp(head, "\x28\xb5\x2f\xfd", 4) == 0)
		return PACKED_ZSTD;
	return PACKED_NOT;
}

int packing_new(struct packing **ret_packing, enum packed as, const unsigned char *begun, size_t bytes, bool drained)
{
	struct packing *p;

	if (bytes > sizeof(p->data))
		return -EINVAL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->is_zstd = as == PACKED_ZSTD;
	if (p->is_zstd) {
#ifdef HAVE_ZSTD
		p->zstd = ZSTD_createDStream();
		if (!p->zstd) {
			free(p);
			return -ENOMEM;
		}
#else
		free(p);
		return -ENOTSUP;
#endif
	} else if (inflateInit2(&p->z, 15 + 16) != Z_OK) { /* 16: a gzip head */
		free(p);
		return -ENOMEM;
	}
	memcpy(p->data, begun, bytes);
	p->end = bytes;
	p->drained = drained;
	*ret_packing = p;
	return 0;
}

/* Unpacks into [to, to + room): how much came, 0 when more packed bytes are needed, or -errno. */
static ssize_t unpack_gzip(struct packing *p, unsigned char *to, size_t room)
{
	int result;

	p->z.next_in = p->data + p->at;
	p->z.avail_in = (uInt)(p->end - p->at);
	p->z.next_out = to;
	p->z.avail_out = (uInt)room;
	result = inflate(&p->z, Z_NO_FLUSH);
	p->at = p->end - p->z.avail_in;
	if (result == Z_STREAM_END) { /* another member may follow */
		p->open = false;
		if (inflateReset(&p->z) != Z_OK)
			return -EPROTO;
	} else if (result == Z_MEM_ERROR) {
		return -ENOMEM;
	} else if (result != Z_OK && result != Z_BUF_ERROR) {
		return -EPROTO;
	} else {
		p->open = true;
	}
	return (ssize_t)(room - p->z.avail_out);
}

static ssize_t unpack_zstd(struct packing *p, unsigned char *to, size_t room)
{
#ifdef HAVE_ZSTD
	ZSTD_inBuffer from = {.src = p->data, .size = p->end, .pos = p->at};
	ZSTD_outBuffer out = {.dst = to, .size = room};
	size_t result = ZSTD_decompressStream(p->zstd, &out, &from);

	p->at = from.pos;
	if (ZSTD_isError(result))
		return -EPROTO;
	p->open = result != 0;
	return (ssize_t)out.pos;
#else
	(void)p;
	(void)to;
	(void)room;
	return -ENOTSUP;
#endif
}

ssize_t packing_read(struct packing *p, int fd, unsigned char *to, size_t room)
{
	for (;;) {
		ssize_t got;

		if (p->at < p->end || p->open) {
			got = p->is_zstd ? unpack_zstd(p, to, room) : unpack_gzip(p, to, room);
			if (got != 0)
				return got;
		}
		if (p->at < p->end)
			continue;
		if (p->drained)
			return p->open ? -EPROTO : 0; /* it is cut off */
		got = read_some(fd, p->data, sizeof(p->data));
		if (got < 0)
			return got;
		p->at = 0;
		p->end = (size_t)got;
		p->drained = got == 0;
	}
}
