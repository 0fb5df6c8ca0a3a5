/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "base/secrets.h"

/* NULs, which divide arguments, are written as | on both sides. */
static void expect(const char *text, const char *shown)
{
	struct buf to = {0};
	char *copy = strdup(text);
	size_t bytes = strlen(text);

	for (size_t i = 0; i < bytes; i++)
		copy[i] = copy[i] == '|' ? '\0' : copy[i];
	secrets_mask(&to, copy, bytes);
	for (size_t i = 0; i < to.bytes; i++)
		to.data[i] = to.data[i] == '\0' ? '|' : to.data[i];
	cr_expect_str_eq(buf_text(&to), shown, "%s: %s", text, buf_text(&to));
	buf_release(&to);
	free(copy);
}

Test(secrets, options)
{
	expect("app|--password=a b|--rate|5", "app|--password=***|--rate|5");
	expect("app|--password|a b|--rate|5", "app|--password|***|--rate|5");
	expect("app|--db-passwd|x", "app|--db-passwd|***");
	expect("app|-api_key|x|y", "app|-api_key|***|y");
	expect("app|--TOKEN|-x9", "app|--TOKEN|***");
	expect("app|--enable-auth|--port|80", "app|--enable-auth|--port|80");
	expect("app|--enable-auth|--secret|80", "app|--enable-auth|--secret|***");
	expect("app|--password|", "app|--password|");
	expect("app|--password", "app|--password");
	expect("app --password hunter2 --rate 5", "app --password *** --rate 5");
	expect("app --password='a b' -x", "app --password='***' -x");
	expect("app|--cookie|", "app|--cookie|");
}

Test(secrets, variables_and_headers)
{
	expect("env|AWS_SECRET_ACCESS_KEY=a/b+c=|python", "env|AWS_SECRET_ACCESS_KEY=***|python");
	expect("-DauthToken=x", "-DauthToken=***");
	expect("curl|-H|Authorization: Bearer a.b.c|http://h/", "curl|-H|Authorization: ***|http://h/");
	expect("curl -H 'Authorization: Basic YTpi' http://h/", "curl -H 'Authorization: ***");
	expect("x {\"password\": \"a \\\" b\", \"user\": \"me\"}", "x {\"password\": \"***\", \"user\": \"me\"}");
	expect("x {'api_key':'k'}", "x {'api_key':'***'}");
	expect("-c|os.environ['SECRET'] = 'a b'; go()", "-c|os.environ['SECRET'] = '***'; go()");
	expect("-c|f(password=b'a b', user=1)", "-c|f(password=*** user=1)");
	expect("-c|password = '''a'''; go()", "-c|password = ***");
	expect("-c|x; password = '''a'''; go()", "-c|x; password = '***");
	expect("it wants Bearer abc.def now", "it wants Bearer *** now");
	expect("GET /x?user=me&access_token=abc", "GET /x?user=me&access_token=***");
}

Test(secrets, addresses)
{
	expect("-b|redis://:pw@cache:6379/0", "-b|redis://:***@cache:6379/0");
	expect("amqp://me:p@w:x@h//v other", "amqp://me:***@h//v other");
	expect("--dsn=postgres://me:p/w?#@h/db", "--dsn=postgres://me:***@h/db");
	expect("https://ghp_abc@github.com/a/b", "https://***@github.com/a/b");
	expect("ssh://git@host/a", "ssh://git@host/a");
	expect("http://host:8000/users/@me", "http://host:8000/users/@me");
	expect("http://auth.example:80/a", "http://auth.example:80/a");
	expect("http://me:@host/", "http://me:@host/");
	expect("://", "://");
	expect("a://", "a://");
	expect("a://@", "a://@");
}

Test(secrets, what_is_none)
{
	expect("python3|-m|gunicorn|my.auth:app|--bind|auth-host:8000",
	       "python3|-m|gunicorn|my.auth:app|--bind|auth-host:8000");
	expect("/opt/auth/bin/python3|/srv/keys/main.py|token", "/opt/auth/bin/python3|/srv/keys/main.py|token");
	expect("ThreadPoolExecutor-0_1", "ThreadPoolExecutor-0_1");
	expect("", "");
	expect("||", "||");
	cr_expect(!secrets_is_name("user", 4));
	cr_expect(!secrets_is_name("", 0));
	cr_expect(secrets_is_name("myApiKey", 8));
}
