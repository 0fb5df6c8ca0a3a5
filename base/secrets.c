/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the text, from name to name. Where it is not clear how far a value goes, more is masked rather than less. */
#include "base/secrets.h"

#include <string.h>
#include <strings.h>

struct scan {
	struct buf *to;
	const char *text;
	size_t bytes;
	size_t at;       /* all before it is in `to` */
	size_t argument; /* where the argument at `at` begins */
};

static bool is_among(const char *text, size_t bytes, const char *const *words, bool whole)
{
	for (; *words; words++) {
		size_t word_bytes = strlen(*words);

		for (size_t i = 0; i + word_bytes <= bytes; i++)
			if ((!whole || word_bytes == bytes) && strncasecmp(text + i, *words, word_bytes) == 0)
				return true;
	}
	return false;
}

bool secrets_is_name(const char *name, size_t bytes)
{
	static const char *const parts[] = {"pass",   "pwd",  "secret",  "token",     "key",    "auth",
	                                    "cookie", "cred", "session", "signature", "bearer", NULL};

	return is_among(name, bytes, parts, false);
}

/* What stands between a name and a credential in a header: "Authorization: Basic X"; the first may stand without a name. */
static const char *const schemes[] = {"bearer", "basic", "digest", "token", "negotiate", "apikey", NULL};
static const char *const bearer[] = {"bearer", NULL};

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
	       c == '.';
}

static bool is_blank(char c)
{
	return (unsigned char)c <= ' ' && c != '\0';
}

static bool is_quote(char c)
{
	return c == '"' || c == '\'' || c == '`';
}

static size_t skip_blanks(const struct scan *s, size_t i)
{
	while (i < s->bytes && is_blank(s->text[i]))
		i++;
	return i;
}

/* Where the quotes end that begin at i: behind them, or at the argument's end. */
static size_t end_of_quotes(const struct scan *s, size_t i)
{
	char quote = s->text[i++];

	while (i < s->bytes && s->text[i] != '\0' && s->text[i] != quote)
		i += s->text[i] == '\\' && i + 1 < s->bytes && s->text[i + 1] != '\0' ? 2 : 1;
	return i < s->bytes && s->text[i] == quote ? i + 1 : i;
}

/* As a shell has it: quotes within it hold blanks. */
static size_t end_of_word(const struct scan *s, size_t i)
{
	while (i < s->bytes && s->text[i] != '\0' && !is_blank(s->text[i]))
		i = is_quote(s->text[i]) ? end_of_quotes(s, i) : i + 1;
	return i;
}

static size_t end_of_argument(const struct scan *s, size_t i)
{
	const char *end = i < s->bytes ? memchr(s->text + i, '\0', s->bytes - i) : NULL;

	return end ? (size_t)(end - s->text) : s->bytes;
}

static void copy_to(struct scan *s, size_t end)
{
	buf_add(s->to, s->text + s->at, end - s->at);
	s->at = end;
}

static void mask_to(struct scan *s, size_t end)
{
	if (end > s->at)
		buf_puts(s->to, SECRETS_MASK);
	s->at = end;
}

/* The value between quotes that begin at `from`; three of them, as Python has it, go to the argument's end. */
static void mask_quoted(struct scan *s, size_t from)
{
	size_t end = end_of_quotes(s, from);
	bool is_closed = end > from + 1 && s->text[end - 1] == s->text[from];

	if (end == from + 2 && end < s->bytes && s->text[end] == s->text[from]) {
		end = end_of_argument(s, from);
		is_closed = false;
	}
	copy_to(s, from + 1);
	mask_to(s, is_closed ? end - 1 : end);
}

/* A value that begins at `from`, of a name that begins its argument (then it is all the rest of it) or stands within one. */
static void mask_value(struct scan *s, size_t from, bool begins)
{
	size_t end;

	copy_to(s, from);
	if (begins) {
		mask_to(s, end_of_argument(s, from));
	} else if (from < s->bytes && is_quote(s->text[from])) {
		mask_quoted(s, from);
	} else {
		end = end_of_word(s, from);
		if (is_among(s->text + from, end - from, schemes, true) && end < s->bytes && s->text[end] != '\0')
			end = end_of_word(s, skip_blanks(s, end));
		mask_to(s, end);
	}
}

/* A port follows the colon. */
static bool is_port(const struct scan *s, size_t colon)
{
	size_t i = colon + 1;

	while (i < s->bytes && s->text[i] >= '0' && s->text[i] <= '9')
		i++;
	return i - colon > 1 && i - colon <= 6;
}

/* "auth-host:8000", "package.auth:app": what follows a colon at once is no value then. */
static bool is_address(const struct scan *s, size_t name, size_t colon)
{
	return is_port(s, colon) ||
	       (memchr(s->text + name, '.', colon - name) && colon + 1 < s->bytes && !is_blank(s->text[colon + 1]));
}

/* Behind a name, at `end`: "--password X", be X the next argument or the next word. */
static void take_next(struct scan *s, size_t name, size_t end)
{
	bool is_argument = end < s->bytes && s->text[end] == '\0';
	size_t next = is_argument ? end + 1 : skip_blanks(s, end);

	if (next == end || next == s->bytes)
		return;
	if (s->text[name] != '-' && !is_among(s->text + name, end - name, bearer, true))
		return;
	if (s->bytes - next > 2 && s->text[next] == '-' && s->text[next + 1] == '-' && is_name_char(s->text[next + 2]))
		return; /* an option that has no value, and another one */
	mask_value(s, next, is_argument);
}

/* Behind a name in [name, end), which may be in quotes or a subscript: masks its value, if it has one. */
static void take_value(struct scan *s, size_t name, size_t end)
{
	size_t i = end;

	while (i < s->bytes && (is_blank(s->text[i]) || is_quote(s->text[i]) || s->text[i] == ']' || s->text[i] == ')'))
		i++;
	if (i == s->bytes || (s->text[i] != '=' && s->text[i] != ':')) {
		take_next(s, name, end);
		return;
	}
	if (i == end && s->text[i] == ':' && is_address(s, name, i))
		return;
	if (i == end && s->text[i] == '=' && name == s->argument) {
		mask_value(s, i + 1, true); /* whatever it begins with */
		return;
	}
	while (i < s->bytes && (s->text[i] == '=' || s->text[i] == ':' || s->text[i] == '>'))
		i++;
	mask_value(s, skip_blanks(s, i), name == s->argument);
}

/* Behind "://" at `from`: masks the password, and passes over the authority. */
static void take_authority(struct scan *s, size_t from)
{
	bool is_http = from >= 7 && (strncasecmp(s->text + from - 7, "http://", 7) == 0 ||
	                             (from >= 8 && strncasecmp(s->text + from - 8, "https://", 8) == 0));
	size_t end = from, whole, at = 0, colon = 0;

	copy_to(s, from);
	for (whole = from;
	     whole < s->bytes && s->text[whole] != '\0' && !is_blank(s->text[whole]) && !is_quote(s->text[whole]);
	     whole++)
		end = end == whole && !strchr("/?#", s->text[whole]) ? whole + 1 : end;
	for (size_t i = from; i < end; i++) {
		at = s->text[i] == '@' ? i : at;
		colon = s->text[i] == ':' && !colon ? i : colon;
	}
	/* A password may have the characters in it that should end the authority: "://user:p/w@host". */
	if (!at && colon && !is_port(s, colon))
		for (size_t i = end; i < whole; i++)
			at = s->text[i] == '@' ? i : at;
	if (at && colon && colon < at)
		copy_to(s, colon + 1);
	if (at && ((colon && colon < at) || is_http))
		mask_to(s, at);
	copy_to(s, end > s->at ? end : s->at);
}

void secrets_mask(struct buf *to, const char *text, size_t bytes)
{
	struct scan s = {.to = to, .text = text, .bytes = bytes};

	while (s.at < bytes) {
		size_t name = s.at, end = name;

		if (bytes - name > 3 && memcmp(text + name, "://", 3) == 0) {
			take_authority(&s, name + 3);
			continue;
		}
		while (end < bytes && is_name_char(text[end]))
			end++;
		if (end > name) {
			copy_to(&s, end);
			if (secrets_is_name(text + name, end - name))
				take_value(&s, name, end);
			continue;
		}
		copy_to(&s, name + 1);
		if (text[name] == '\0')
			s.argument = s.at;
	}
}
