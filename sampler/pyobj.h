/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the target: strings, bytes, dicts and attributes, read with every length and pointer bounded. */
#ifndef SAMPLED_SAMPLER_PYOBJ_H
#define SAMPLED_SAMPLER_PYOBJ_H

#include <stddef.h>
#include <stdint.h>

#include "sampler/pyabi/pyabi.h"
#include "sampler/pydict.h"
#include "sampler/remote.h"

/* A str as UTF-8 into to[room], NUL-terminated, at most room - 1 bytes; longer text is cut at a character and ends in
 * U+2026 (…). Lone surrogates become U+FFFD; NUL and other control characters below U+0020 become U+FFFD as well.
 * *ret_cut (may be NULL) says whether it was cut. Returns the bytes written without the NUL, or -errno. */
int pyobj_str(const struct remote *r, const struct pyabi *abi, raddr_t str, char *to, size_t room, bool *ret_cut);

/* The code points of a str, as they are: at most room of them. Returns their true count (which can exceed room), or -errno. */
int64_t pyobj_points(const struct remote *r, const struct pyabi *abi, raddr_t str, uint32_t *to, size_t room);

/* The contents of a bytes object: at most room bytes. Returns its true size (which can exceed room), or -errno. */
int64_t pyobj_bytes(const struct remote *r, const struct pyabi *abi, raddr_t bytes, void *to, size_t room);

/* The name of an object's type ("Thread"), from tp_name. Returns its length or -errno. */
int pyobj_type_name(const struct remote *r, const struct pyabi *abi, raddr_t object, char *to, size_t room);

/* dict[key] for a str key: the value's address in *ret_value. -ENOENT: no such key. At most 65,536 entries are looked at. */
int pyobj_dict_get(const struct remote *r, const struct pyabi *abi, raddr_t dict, const char *key, raddr_t *ret_value);

/* The attribute of an ordinary instance (from its values or __dict__, not from its class). -ENOENT: none. */
int pyobj_attr(const struct remote *r, const struct pyabi *abi, raddr_t object, const char *name, raddr_t *ret_value);

/* Calls fn for each attribute that pyobj_attr() finds, in the order of their creation. As pykeys_walk(). */
int pyobj_attrs_walk(const struct remote *r, const struct pyabi *abi, raddr_t object, pykey_fn *fn, void *context);

/* An int object that fits 64 bits unsigned. */
int pyobj_u64(const struct remote *r, const struct pyabi *abi, raddr_t object, uint64_t *ret_value);

/* The threading.Thread objects of these threads (the thread states' thread_id), from threading._active, found through the interpreter's
 * modules dict; 0 where there is none. How many were found, or -errno. */
int pyobj_find_threads(const struct remote *r, const struct pyabi *abi, raddr_t interp, const uint64_t *idents,
                       raddr_t *ret_threads, uint32_t count);

/* The name of a threading.Thread object. Returns bytes written, or -errno. */
int pyobj_thread_name(const struct remote *r, const struct pyabi *abi, raddr_t thread, char *to, size_t room);

#endif
