/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/gzip.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

struct gzip {
	z_stream z;
	struct writer *to;
	unsigned char out[65536];
};

struct gzip *gzip_new(struct writer *to)
{
	struct gzip *g = calloc(1, sizeof(*g));

	/* 16: a gzip head, in which zlib sets no time */
	if (g && deflateInit2(&g->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(g);
		g = NULL;
	}
	if (g)
		g->to = to;
	else if (!to->err)
		to->err = -ENOMEM;
	return g;
}

static void pack(struct gzip *g, int flush)
{
	do {
		g->z.next_out = g->out;
		g->z.avail_out = sizeof(g->out);
		deflate(&g->z, flush);
		writer_add(g->to, g->out, sizeof(g->out) - g->z.avail_out);
	} while (g->z.avail_out == 0);
}

void gzip_add(struct gzip *g, const void *data, size_t bytes)
{
	const unsigned char *from = data;

	while (bytes > 0 && !g->to->err) {
		size_t piece = bytes < INT_MAX ? bytes : INT_MAX;

		g->z.next_in = (unsigned char *)(uintptr_t)from; /* zlib only reads it */
		g->z.avail_in = (uInt)piece;
		pack(g, Z_NO_FLUSH);
		from += piece;
		bytes -= piece;
	}
}

void gzip_finish(struct gzip *g)
{
	if (!g)
		return;
	if (!g->to->err)
		pack(g, Z_FINISH);
	deflateEnd(&g->z);
	free(g);
}
