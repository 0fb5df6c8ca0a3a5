/* SPDX-License-Identifier: Apache-2.0 */
/* What the bytes of a client mean, at each point at which they may end so far. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "daemon/control_protocol.h"

static struct control_words words;
static struct fault fault;

static int parse(const char *text, size_t bytes, bool ended, enum control_kind *ret_kind)
{
	char data[CONTROL_HTTP_BYTES_MAX + 1] = "";

	memcpy(data, text, bytes);
	return control_parse(data, bytes, ended, ret_kind, &words, &fault);
}

static enum control_kind kind_of(const char *text)
{
	enum control_kind kind;

	cr_assert_eq(parse(text, strlen(text), true, &kind), 0, "%s: %s", text, fault.why);
	return kind;
}

/* Whatever is there of it so far, and more may come: it is waited for. Once no more comes, it was cut short. */
static void expect_awaited(const char *text, size_t bytes)
{
	for (size_t so_far = 0; so_far < bytes; so_far++) {
		enum control_kind kind = CONTROL_COMMAND;

		cr_assert_eq(parse(text, so_far, false, &kind), 0, "%zu bytes: %s", so_far, fault.why);
		cr_assert_eq(kind, CONTROL_PARTIAL, "%zu bytes", so_far);
	}
}

Test(control_parse, a_request_is_waited_for_until_it_is_whole)
{
	static const char http[] = "GET /metrics HTTP/1.0\r\n\r\n", command[] = "\7\0\0\0list\0-v";
	enum control_kind kind;

	expect_awaited(http, strlen(http));
	expect_awaited(command, 4);
	for (size_t bytes = 0; bytes < 11; bytes++)
		cr_assert_eq(parse(command, bytes, true, &kind), -EPROTO, "%zu bytes", bytes);
	cr_assert_str_eq(fault.why, "the request was cut short");
	for (size_t bytes = 4; bytes < 21; bytes++)
		cr_assert_eq(parse(http, bytes, true, &kind), -EPROTO, "%zu bytes: a line without its end", bytes);
}

Test(control_parse, http_as_short_as_it_may_be)
{
	cr_assert_eq(kind_of("GET /metrics\n\n"), CONTROL_METRICS, "of HTTP 0.9");
	cr_assert_eq(kind_of("GET /metrics HTTP/1.0\r\n"), CONTROL_METRICS, "the client has said all");
	cr_assert_eq(kind_of("GET /metrics?a=b\r\n\r\n"), CONTROL_METRICS);
	cr_assert_eq(kind_of("GET /abcdefg HTTP/1.0\r\n\r\n"), CONTROL_NOT_FOUND, "what sorts before it");
	cr_assert_eq(kind_of("GET /zzzzzzz HTTP/1.0\r\n\r\n"), CONTROL_NOT_FOUND, "and behind it");
	cr_assert_eq(kind_of("GETS /metrics\n\n"), CONTROL_NOT_ALLOWED);
	cr_assert_eq(kind_of("ACL / HTTP/1.1\n\n"), CONTROL_NOT_ALLOWED, "a method, and no length of words");
	cr_assert_eq(kind_of("ZZZ / HTTP/1.1\n\n"), CONTROL_NOT_ALLOWED);
}

Test(control_parse, words)
{
	static const char request[] = "\12\0\0\0\xc3\xa9t\0-f\0\0x", none[] = "\1\0\0\0";
	enum control_kind kind;

	cr_assert_eq(parse(request, 14, false, &kind), 0, "%s", fault.why);
	cr_assert_eq(kind, CONTROL_COMMAND);
	cr_assert_eq(words.count, 4, "%zu", (size_t)words.count);
	cr_assert_str_eq(words.words[0], "\xc3\xa9t", "of any bytes: who looks for commands says that there is none");
	cr_assert_str_eq(words.words[2], "", "an empty one is one");
	cr_assert_null(words.words[4]);
	cr_assert_eq(parse(none, 5, false, &kind), -EPROTO);
	cr_assert_str_eq(fault.why, "not a request: it names no command");
}
