/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/dump_name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char letters[] = "pnth%";

int dump_name_check(const char *pattern, struct fault *fault)
{
	const char *at = pattern;

	if (!*pattern || strlen(pattern) > DUMP_PATTERN_MAX_BYTES)
		return fault_set(fault, -EINVAL, "", "name: of 1 to %d bytes", DUMP_PATTERN_MAX_BYTES);
	if (*pattern == '.')
		return fault_set(fault, -EINVAL, "", "name = %s: begins with a dot", pattern);
	if (strchr(pattern, '/'))
		return fault_set(fault, -EINVAL, "directory = says where it is", "name = %s: holds a /", pattern);
	for (; *at; at++) {
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			return fault_set(fault, -EINVAL, "", "name: holds a control character");
		if (*at != '%')
			continue;
		at++;
		if (!*at || !strchr(letters, *at))
			return fault_set(fault, -EINVAL, "%p process number, %n name, %t time, %h host, %% a %",
			                 "name = %s: %%%s means nothing", pattern, *at ? (char[]){*at, '\0'} : "");
	}
	return 0;
}

struct making {
	char *to;
	size_t used, room; /* without the NUL */
};

static void put(struct making *m, char c)
{
	if (m->used < m->room)
		m->to[m->used++] = c;
}

static void put_text(struct making *m, const char *text)
{
	while (*text)
		put(m, *text++);
}

/* Text of others: what is no letter, digit or -_+@= of ASCII becomes _, and so does a dot in front of the name. */
static void put_foreign(struct making *m, const char *text)
{
	for (size_t i = 0; i < DUMP_PART_MAX_BYTES && text[i]; i++) {
		unsigned char c = (unsigned char)text[i];
		int harmless = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
		               strchr("-_+@=", c) || (c == '.' && m->used > 0);

		put(m, harmless ? (char)c : '_');
	}
}

static void put_part(struct making *m, char letter, const struct dump_subject *subject)
{
	char text[32] = "%";
	struct tm utc = {0};

	switch (letter) {
	case 'n':
		put_foreign(m, *subject->name ? subject->name : "unnamed");
		return;
	case 'h':
		put_foreign(m, *subject->host ? subject->host : "unnamed");
		return;
	case 'p':
		snprintf(text, sizeof(text), subject->pid ? "%d" : "all", (int)subject->pid);
		break;
	case 't':
		gmtime_r(&subject->time, &utc);
		strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &utc);
		break;
	default:
		break;
	}
	put_text(m, text);
}

void dump_name_make(char *to, const char *pattern, const struct dump_subject *subject, unsigned sequence,
                    const char *suffix)
{
	char end[48] = "";
	struct making m = {.to = to, .room = DUMP_NAME_MAX_BYTES};

	if (sequence > 1)
		snprintf(end, sizeof(end), ".%u", sequence);
	snprintf(end + strlen(end), sizeof(end) - strlen(end), "%s", suffix);
	m.room -= strlen(end);
	for (; *pattern; pattern++) {
		if (*pattern == '%' && pattern[1])
			put_part(&m, *++pattern, subject);
		else
			put(&m, *pattern);
	}
	m.room = DUMP_NAME_MAX_BYTES;
	put_text(&m, end);
	to[m.used] = '\0';
}
