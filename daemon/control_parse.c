/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "daemon/control_protocol.h"

static int parse_words(char *data, size_t bytes, struct control_words *ret_words, struct fault *fault)
{
	char *const end = data + bytes;

	if (bytes == 0 || end[-1] != '\0')
		return fault_set(fault, -EPROTO, "", "not a request: its last word has no end");
	ret_words->count = 0;
	for (char *at = data; at < end; at += strlen(at) + 1) {
		if (ret_words->count == CONTROL_WORDS_MAX)
			return fault_set(fault, -E2BIG, "", "more than %d words", CONTROL_WORDS_MAX);
		ret_words->words[ret_words->count++] = at;
	}
	ret_words->words[ret_words->count] = NULL;
	if (*data == '\0')
		return fault_set(fault, -EPROTO, "", "not a request: it names no command");
	return 0;
}

/* The first line alone is looked at, once the empty line behind the head is there: who asks has said all then, and nothing that comes later
 * gets in the way of the answer. */
static int parse_http(const char *data, size_t bytes, bool ended, enum control_kind *ret_kind, struct fault *fault)
{
	static const char get[] = "GET ", metrics[] = "/metrics";
	bool whole = memmem(data, bytes, "\r\n\r\n", 4) || memmem(data, bytes, "\n\n", 2);
	const char *end = memchr(data, '\n', bytes);
	size_t line = end ? (size_t)(end - data) : bytes;

	*ret_kind = CONTROL_NOT_FOUND;
	if (!whole && bytes >= CONTROL_HTTP_BYTES_MAX)
		return fault_set(fault, -E2BIG, "", "the head is longer than %d bytes", CONTROL_HTTP_BYTES_MAX);
	if (!whole && !end && ended)
		return fault_set(fault, -EPROTO, "", "the request was cut short");
	if (!whole && !ended) {
		*ret_kind = CONTROL_PARTIAL;
		return 0;
	}
	if (line < strlen(get) || memcmp(data, get, strlen(get)) != 0) {
		*ret_kind = CONTROL_NOT_ALLOWED;
		return 0;
	}
	data += strlen(get);
	line -= strlen(get);
	if (line >= strlen(metrics) && memcmp(data, metrics, strlen(metrics)) == 0 &&
	    (line == strlen(metrics) || (data[strlen(metrics)] && strchr(" \r?", data[strlen(metrics)]))))
		*ret_kind = CONTROL_METRICS;
	return 0;
}

int control_parse(char *data, size_t bytes, bool ended, enum control_kind *ret_kind, struct control_words *ret_words,
                  struct fault *fault)
{
	uint32_t words_bytes;

	if (bytes < CONTROL_HEAD_BYTES) {
		*ret_kind = CONTROL_PARTIAL;
		return ended ? fault_set(fault, -EPROTO, "", "the request was cut short") : 0;
	}
	words_bytes = control_get_u32((const unsigned char *)data);
	if (data[0] >= 'A' && data[0] <= 'Z' && data[3] >= ' ')
		return parse_http(data, bytes, ended, ret_kind, fault);
	if (words_bytes > CONTROL_WORDS_BYTES_MAX)
		return fault_set(fault, -E2BIG, "", "a request of more than %d bytes", CONTROL_WORDS_BYTES_MAX);
	if (bytes < CONTROL_HEAD_BYTES + (size_t)words_bytes) {
		*ret_kind = CONTROL_PARTIAL;
		return ended ? fault_set(fault, -EPROTO, "", "the request was cut short") : 0;
	}
	*ret_kind = CONTROL_COMMAND;
	return parse_words(data + CONTROL_HEAD_BYTES, words_bytes, ret_words, fault);
}
