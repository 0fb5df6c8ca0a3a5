/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a request: no read out of bounds, the same answer whatever pieces it comes in, and a dump's words that are taken are those that are sent
 * for the same. */
#include <stdlib.h>
#include <string.h>

#include "daemon/control_options.h"
#include "daemon/control_protocol.h"
#include "tests/fuzz/common.h"

#define NOW_NS (UINT64_C(1795324800000000000))

static void check_dump(struct control_words *words)
{
	struct dump_request request, again;
	struct control_words sent = {0};
	struct buf text = {0};
	struct fault fault = {0};

	if (dump_request_parse(&request, words->count, words->words, NOW_NS, &fault)) {
		expect(fault.why[0] != '\0');
		return;
	}
	expect(request.format && !(request.last_ns && request.from_ns) && strlen(request.rule) < sizeof(request.rule));
	dump_request_words(&request, &text);
	for (size_t at = 0; at < text.bytes; at += strlen(text.data + at) + 1)
		sent.words[sent.count++] = text.data + at;
	expect(dump_request_parse(&again, sent.count, sent.words, NOW_NS + 1, &fault) == 0);
	expect(again.pid == request.pid && strcmp(again.rule, request.rule) == 0 && again.from_ns == request.from_ns &&
	       again.to_ns == request.to_ns && again.last_ns == request.last_ns && again.format == request.format &&
	       again.all == request.all && again.merge == request.merge);
	buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *copy = malloc(bytes + 1);
	struct control_words words;
	enum control_kind kind;
	struct fault fault = {0};
	int err = 0;

	expect(copy != NULL);
	memcpy(copy, data, bytes);
	/* As a stream would bring it: the first prefix that is a request, or none, decides. */
	for (size_t some = 0; some <= bytes; some++) {
		bool ended = some == bytes;

		err = control_parse(copy, some, ended, &kind, &words, &fault);
		expect(err <= 0 && (!err || fault.why[0]));
		if (err || kind != CONTROL_PARTIAL)
			break;
		expect(!ended);
	}
	if (!err && kind == CONTROL_COMMAND) {
		expect(words.count > 0 && words.words[words.count] == NULL && words.words[0][0] != '\0');
		check_dump(&words);
	}
	free(copy);
	return 0;
}
