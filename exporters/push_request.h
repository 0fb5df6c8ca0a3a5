/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as the HTTP request that a profile store takes: where to, and what. Pure: nothing is sent here.
 *
 *   Pyroscope  POST /ingest?name=SERVICE{NAME=VALUE,…}&from=&until=&spyName=sampled&format=pprof, the body packed pprof
 *   … push API POST /push.v1.PusherService/Push, JSON of connect (https://connectrpc.com/docs/protocol), pprof in base64
 *   Parca      POST /api/profiles/writeraw, JSON, pprof in base64
 *   OTLP/HTTP  POST /v1development/profiles, protobuf, gzip */
#ifndef SAMPLED_EXPORTERS_PUSH_REQUEST_H
#define SAMPLED_EXPORTERS_PUSH_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/fault.h"
#include "exporters/label.h"

enum push_type { PUSH_PYROSCOPE, PUSH_PYROSCOPE_PUSH, PUSH_PARCA, PUSH_OTLP, PUSH_TYPES };

/* "pyroscope", "pyroscope-push", "parca", "otlp"; PUSH_TYPES: none of these. */
enum push_type push_type_by_name(const char *name);
const char *push_type_name(enum push_type type);

struct push_profile {
	struct labels labels;
	uint64_t from_ns, until_ns; /* CLOCK_REALTIME */
	const void *packed;         /* pprof, packed with gzip */
	size_t packed_bytes;
};

struct push_request {
	struct buf url;  /* text; the query is in it, without user or password */
	struct buf body; /* owned */
	const char *content_type;
	bool gzip; /* Content-Encoding */
};

/* base is the server's address, "http://HOST:PORT" with or without a path in front of the endpoint's. 0 or -errno with *fault filled: -EPROTO
 * the profile cannot be read (OTLP holds another encoding of it). */
int push_request_make(struct push_request *ret_request, enum push_type type, const char *base,
                      const struct push_profile *profile, struct fault *fault);
void push_request_release(struct push_request *request);

/* What a server that answered with success did not take after all: OTLP's rejected profiles. 0: nothing. */
uint64_t push_answer_rejected(enum push_type type, const void *answer, size_t bytes);

#endif
