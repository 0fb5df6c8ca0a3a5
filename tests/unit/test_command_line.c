/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "sampler/command_line.h"

/* Arguments are divided by |. */
static void expect(const char *arguments, const char *full, const char *program)
{
	char copy[256], shown[256];
	size_t bytes = strlen(arguments);

	memcpy(copy, arguments, bytes + 1);
	for (size_t i = 0; i < bytes; i++)
		copy[i] = copy[i] == '|' ? '\0' : copy[i];
	cr_expect_eq(command_line_show(shown, sizeof(shown), copy, bytes, COMMAND_LINE_FULL), strlen(shown));
	cr_expect_str_eq(shown, full);
	cr_expect_eq(command_line_show(shown, sizeof(shown), copy, bytes, COMMAND_LINE_PROGRAM), strlen(shown));
	cr_expect_str_eq(shown, program);
}

Test(command_line, scripts_and_modules)
{
	expect("python3|app.py|--password|x|a|", "python3 app.py --password *** a", "python3 app.py");
	expect("/usr/bin/python3.11|-u|-W|ignore|-Xdev|/srv/app.py|a",
	       "/usr/bin/python3.11 -u -W ignore -Xdev /srv/app.py a", "/usr/bin/python3.11 /srv/app.py");
	expect("python3|-Im|shop.web|me@x", "python3 -Im shop.web me@x", "python3 -m shop.web");
	expect("python3|-mshop.web|a", "python3 -mshop.web a", "python3 -m shop.web");
	expect("python3|-Bc|go('a')|b", "python3 -Bc go('a') b", "python3 -c");
	expect("python3|-c|go(token='a b')|b", "python3 -c go(token='***') b", "python3 -c");
	expect("python3|--check-hash-based-pycs|always|a.py|x", "python3 --check-hash-based-pycs always a.py x",
	       "python3 a.py");
	expect("python3|-", "python3 -", "python3 -");
	expect("python3|-W", "python3 -W", "python3");
	expect("python3|-m", "python3 -m", "python3 -m");
	expect("pypy3|a b.py|x", "pypy3 a b.py x", "pypy3 a b.py");
	expect("uwsgi|--http|:80", "uwsgi --http :80", "uwsgi");
	expect("[kworker/0:1]", "[kworker/0:1]", "[kworker/0:1]");
	expect("", "", "");
	expect("|||", "", "");
}

Test(command_line, titles)
{
	expect("gunicorn: worker [shop]|||||", "gunicorn: worker [shop]", "gunicorn: worker [shop]");
	expect("[celeryd: celery@h:MainProcess] -active- (worker -b redis://:x@h)",
	       "[celeryd: celery@h:MainProcess] -active- (worker -b redis://:***@h)",
	       "[celeryd: celery@h:MainProcess]");
	expect("python3 /srv/app.py --token x", "python3 /srv/app.py --token ***", "python3 /srv/app.py");
	expect("job 1 2 3 4 5", "job 1 2 3 4 5", "job 1 2 3");
	expect("job user=me", "job user=me", "job");
	expect("job  secret=a b", "job  secret=*** b", "job");
}

Test(command_line, is_cut_and_cleaned)
{
	char shown[8];

	cr_expect_eq(command_line_show(shown, sizeof(shown), "a\x1b\xff", 3, COMMAND_LINE_FULL), 5);
	cr_expect_str_eq(shown, "a \xef\xbf\xbd");
	cr_expect_eq(command_line_show(shown, sizeof(shown), "abcdefgh", 8, COMMAND_LINE_PROGRAM), 7);
	cr_expect_eq(command_line_show(shown, 1, "abc", 3, COMMAND_LINE_FULL), 0);
}
