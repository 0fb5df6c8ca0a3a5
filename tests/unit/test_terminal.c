/* SPDX-License-Identifier: Apache-2.0 */
/* What a hostile process calls itself and its functions must not steer the terminal of whoever profiles it. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>
#include <string.h>

#include "daemon/doctor.h"
#include "daemon/summary.h"
#include "daemon/terminal.h"
#include "base/utf8.h"
#include "tests/unit/build_profile.h"

/* An escape, an eight-bit CSI as UTF-8 and as a bare byte, an override of the direction, a character cut in two. */
#define HOSTILE "x\x1b[2J\xc2\x9b" "2J\x9b" "1m\xe2\x80\xae" "y\xe2\x82"
#define HARMLESS "x\xef\xbf\xbd[2J\xef\xbf\xbd" "2J\xef\xbf\xbd" "1m\xef\xbf\xbdy\xef\xbf\xbd\xef\xbf\xbd"

/* What was printed since the redirection, NUL-terminated; up to 64 KiB. */
static const char *printed(FILE *from)
{
	static char text[65536];
	size_t bytes = fread(text, 1, sizeof(text) - 1, from);

	text[bytes] = '\0';
	return text;
}

static void check_safe(const char *text)
{
	size_t left = strlen(text);

	while (left > 0) {
		uint32_t c;
		size_t length = utf8_next(text, left, &c);

		cr_assert(c == '\n' || !utf8_is_unsafe(c), "U+%04X", c);
		cr_assert(c != 0xfffd || length == 3, "broken UTF-8");
		text += length;
		left -= length;
	}
}

Test(terminal, a_line_is_made_safe, .init = cr_redirect_stderr)
{
	terminal_line(HOSTILE);
	cr_assert_stderr_eq_str(HARMLESS "\n");
}

Test(terminal, a_finding_and_its_mend_are_made_safe, .init = cr_redirect_stdout)
{
	struct doctor doctor = {0};

	doctor_line(&doctor, VERDICT_WARN, HOSTILE, "in %s", HOSTILE);
	cr_assert_eq(doctor.err, 0);
	cr_assert_stdout_eq_str("warn  in " HARMLESS " (" HARMLESS ")\n");
}

Test(terminal, the_summary_is_safe_and_cut_at_characters, .init = cr_redirect_stderr)
{
	struct profile *p = built_new();
	uint32_t t, gc;
	char name[400] = "";
	const char *text;

	for (int i = 0; i < 90; i++) /* of three bytes: neither 80 nor 100 bytes end between two */
		strcat(name, "\xe1\x88\xb4");
	t = built_thread(p, built_process(p, 1, name), 0, 1, NULL);
	gc = built_symbol(p, "<GC>", "", 0);
	p->symbols[gc].kind = FRAME_SPECIAL;
	built_sample(p, t, built_child(p, t, 0, gc, 0), 9, 0);
	built_sample(p, t, built_child(p, t, 0, built_symbol(p, name, "a.py", 7), 8), 5, 0);
	built_sample(p, t, built_child(p, t, 0, built_symbol(p, HOSTILE, HOSTILE, 1), 2), 2, 0);
	summary_print(p, &(struct summary_options){.figures = true});
	text = printed(cr_get_redirected_stderr());
	check_safe(text);
	cr_assert_not_null(strstr(text, "%  <GC>\n"), "%s", text);
	cr_assert_not_null(strstr(text, "\xe1\x88\xb4\xe2\x80\xa6  a.py:7\n"), "%s", text);
	cr_assert_not_null(strstr(text, "%  " HARMLESS " "), "%s", text);
	cr_assert_not_null(strstr(text, " " HARMLESS ":1\n"), "%s", text);
	built_free(p);
}
