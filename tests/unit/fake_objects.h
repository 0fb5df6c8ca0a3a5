/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of CPython laid out by hand in the test's own memory, in an old and several newer layouts; process_vm_readv
 * works on oneself. All objects lie in one arena that fake_reset() empties. */
#ifndef SAMPLED_TESTS_UNIT_FAKE_OBJECTS_H
#define SAMPLED_TESTS_UNIT_FAKE_OBJECTS_H

#include <stddef.h>
#include <stdint.h>

#include "sampler/pyabi/pyabi.h"
#include "sampler/remote.h"
#include "sampler/thread.h"

enum fake_layout { FAKE_38, FAKE_311, FAKE_312, FAKE_313, FAKE_LAYOUTS };

enum fake_keys { FAKE_GENERAL, FAKE_UNICODE, FAKE_SPLIT };

/* The layout, as far as objects go; static. */
const struct pyabi *fake_abi(enum fake_layout layout);
/* This process. */
const struct remote *fake_remote(void);

void fake_reset(void);
/* Zeroed memory, aligned to 16 bytes. */
raddr_t fake_alloc(size_t bytes);
void fake_put(raddr_t at, const void *data, size_t bytes);
void fake_put_u64(raddr_t at, uint64_t value);
/* An address that is not mapped. */
raddr_t fake_unmapped(void);

raddr_t fake_type(const struct pyabi *abi, const char *name, uint64_t flags);
/* A compact str of `count` code points of `kind` bytes each. */
raddr_t fake_str_of(const struct pyabi *abi, unsigned kind, const void *units, uint64_t count);
raddr_t fake_str(const struct pyabi *abi, const char *ascii);
raddr_t fake_int(const struct pyabi *abi, uint64_t value);
/* A keys object; where values are kept elsewhere (FAKE_SPLIT), `values` is not used. */
raddr_t fake_keys(const struct pyabi *abi, enum fake_keys kind, const raddr_t *keys, const raddr_t *values, size_t count);
/* A dict object; with FAKE_SPLIT with an array of values. */
raddr_t fake_dict(const struct pyabi *abi, enum fake_keys kind, const raddr_t *keys, const raddr_t *values, size_t count);
/* A data stack of one chunk, of which copy_bytes are copied, for a thread that has none; owned by it. Its address. */
raddr_t fake_data_stack(struct thread *t, uint32_t bytes, uint32_t copy_bytes);

#endif
