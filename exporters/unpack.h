/* SPDX-License-Identifier: Apache-2.0 */
/* Packed files on their way in: gzip (RFC 1952), of any number of members, and zstd where we are built with it, unpacked as they are read. */
#ifndef SAMPLED_EXPORTERS_UNPACK_H
#define SAMPLED_EXPORTERS_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum packed { PACKED_NOT, PACKED_GZIP, PACKED_ZSTD };

/* As what the file with this head is packed; four bytes are enough to tell. */
enum packed packed_as(const unsigned char *head, size_t bytes);

struct packing;

/* Goes on behind what was read of the file already: `bytes` from its first, at most 65,536, which are copied. drained: it has no more. 0 or -errno;
 * -ENOTSUP: we are built without zstd. */
int packing_new(struct packing **ret_packing, enum packed as, const unsigned char *begun, size_t bytes, bool drained);
void packing_free(struct packing *packing);

/* Unpacks some into [to, to + room), reading of fd what it needs. How much came, 0 at the end, or -errno; -EPROTO: it is damaged or cut off. */
ssize_t packing_read(struct packing *packing, int fd, unsigned char *to, size_t room);

/* read(), which waits where it would not. How much came, 0 at the end, or -errno. */
ssize_t read_some(int fd, void *to, size_t bytes);

#endif
