/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/push_setup.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/version.h"
#include "daemon/push_log.h"
#include "daemon/push_send.h"

enum { CONNECT_TIMEOUT_MS = 10000, ANSWER_MAX_BYTES = 1 << 20 };

/* Keeps the beginning, on one line; what nobody would read ends the transfer. */
static size_t take_answer(char *data, size_t size, size_t count, void *context)
{
	struct push_sender *s = context;
	size_t bytes = size * count, room = PUSH_ANSWER_KEPT - s->answer_kept;
	size_t kept = bytes < room ? bytes : room;

	memcpy(s->answer + s->answer_kept, data, kept);
	s->answer_kept += kept;
	s->answer[s->answer_kept] = '\0';
	s->answer_bytes += bytes;
	s->answer_cut = s->answer_bytes > ANSWER_MAX_BYTES;
	return s->answer_cut ? 0 : bytes;
}

static int read_secret(struct push_sender *s, struct push_secret *secret, const char *name, struct fault *fault)
{
	struct fault why = {0};
	char path[PATH_MAX];
	int err;

	push_secret_path(path, sizeof(path), name);
	err = push_secret_read(secret, path, &why);

	if (err)
		return fault_set(fault, err, why.hint, "cannot read %s: %s", path, why.why);
	if (secret->is_open && !secret->was_said)
		push_log(&s->log, PUSH_SAY_ALWAYS, "%s can be read by others than its owner (chmod 0600)", path);
	secret->was_said = true;
	return 0;
}

static int set_credentials(struct push_sender *s, struct fault *fault)
{
	const struct push_destination *d = s->to;
	int err;

	if (!d->password_file)
		return 0;
	err = read_secret(s, &s->password, d->password_file, fault);
	if (err)
		return err;
	s->curl->easy_setopt(s->easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
	s->curl->easy_setopt(s->easy, CURLOPT_USERNAME, d->user);
	s->curl->easy_setopt(s->easy, CURLOPT_PASSWORD, s->password.text);
	return 0;
}

static int add_header(struct push_sender *s, const char *name, const char *value)
{
	struct buf line = {0};
	struct curl_slist *more;

	buf_printf(&line, "%s:%s%s", name, *value ? " " : "", value);
	more = s->curl->slist_append(s->headers, buf_text(&line));
	if (line.data)
		explicit_bzero(line.data, line.bytes); /* it may be a credential */
	buf_release(&line);
	if (!more)
		return -ENOMEM;
	s->headers = more;
	return 0;
}

static int set_headers(struct push_sender *s, struct fault *fault)
{
	const struct push_destination *d = s->to;
	int err = 0;

	s->curl->slist_free_all(s->headers);
	s->headers = NULL;
	err = add_header(s, "Content-Type", s->request.content_type);
	err = err ? err : add_header(s, "Expect", ""); /* no round trip before the body */
	if (!err && s->request.gzip)
		err = add_header(s, "Content-Encoding", "gzip");
	if (!err && d->type == PUSH_PYROSCOPE_PUSH)
		err = add_header(s, "Connect-Protocol-Version", "1");
	if (!err && d->tenant)
		err = add_header(s, "X-Scope-OrgID", d->tenant);
	if (!err && d->bearer_file) {
		char value[PUSH_SECRET_MAX + 16];

		err = read_secret(s, &s->bearer, d->bearer_file, fault);
		if (err)
			return err;
		snprintf(value, sizeof(value), "Bearer %s", s->bearer.text);
		err = add_header(s, "Authorization", value);
		explicit_bzero(value, sizeof(value));
	}
	if (err)
		return fault_set(fault, err, "", "out of memory");
	s->curl->easy_setopt(s->easy, CURLOPT_HTTPHEADER, s->headers);
	return 0;
}

/* What is the same whoever it goes to. The server's certificate is checked, which is libcurl's default and said here all the same. */
static void set_transfer(struct push_sender *s)
{
	const struct push_destination *d = s->to;

	s->curl->easy_setopt(s->easy, CURLOPT_PROTOCOLS_STR, "http,https");
	s->curl->easy_setopt(s->easy, CURLOPT_FOLLOWLOCATION, 0L);
	s->curl->easy_setopt(s->easy, CURLOPT_SSL_VERIFYPEER, 1L);
	s->curl->easy_setopt(s->easy, CURLOPT_SSL_VERIFYHOST, 2L);
	s->curl->easy_setopt(s->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (d->ca_file)
		s->curl->easy_setopt(s->easy, CURLOPT_CAINFO, d->ca_file);
	s->curl->easy_setopt(s->easy, CURLOPT_PROXY, d->proxy ? d->proxy : ""); /* not the environment's */
	s->curl->easy_setopt(s->easy, CURLOPT_NOSIGNAL, 1L);
	s->curl->easy_setopt(s->easy, CURLOPT_QUICK_EXIT, 1L); /* a name that is being looked up does not keep us */
	s->curl->easy_setopt(s->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
	s->curl->easy_setopt(s->easy, CURLOPT_TIMEOUT_MS, (long)(d->timeout_ns / NS_PER_MS));
	s->curl->easy_setopt(s->easy, CURLOPT_USERAGENT, "sampled/" SAMPLED_VERSION);
	s->curl->easy_setopt(s->easy, CURLOPT_WRITEFUNCTION, take_answer);
	s->curl->easy_setopt(s->easy, CURLOPT_WRITEDATA, s);
	s->curl->easy_setopt(s->easy, CURLOPT_ERRORBUFFER, s->error);
	s->curl->easy_setopt(s->easy, CURLOPT_PRIVATE, s);
}

int push_setup(struct push_sender *sender, struct fault *fault)
{
	struct push_sender *s = sender;
	int err;

	s->curl->easy_reset(s->easy); /* connections stay */
	s->answer_bytes = s->answer_kept = 0;
	s->answer_cut = false;
	s->answer[0] = s->error[0] = '\0';
	set_transfer(s);
	s->curl->easy_setopt(s->easy, CURLOPT_URL, s->request.url.data);
	s->curl->easy_setopt(s->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)s->request.body.bytes);
	s->curl->easy_setopt(s->easy, CURLOPT_POSTFIELDS, s->request.body.data);
	err = set_credentials(s, fault);
	return err ? err : set_headers(s, fault);
}
