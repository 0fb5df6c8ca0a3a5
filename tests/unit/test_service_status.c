/* SPDX-License-Identifier: Apache-2.0 */
/* What the service says of itself: text, JSON that jq reads, metrics that promtool takes. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/service_status.h"

#define HOSTILE "x\x1b[2J\"\\\n<y>\xe2\x82"

static const struct target_status targets[] = {
	{.pid = 4711,
         .start_time = 99,
         .uid = 0,
         .name = "uwsgi",
         .rule = "web",
         .unit = "uwsgi.service",
         .version = 0x030b02,
         .interval_asked_ns = NS_PER_S / 50,
         .interval_now_ns = NS_PER_S / 25,
         .parked = 0.75,
         .facts = {.samples = 12345, .attempts = 12346, .lost[LOSS_TORN] = 1}},
	{.pid = 12,
         .uid = 1000,
         .name = HOSTILE,
         .rule = "we\"b\\\n2",
         .state = TARGET_FAILED,
         .why = HOSTILE,
         .parked = -1},
	{.pid = 13, .uid = 1000, .state = TARGET_SAMPLED, .rule = "gone", .parked = -1, .interval_now_ns = NS_PER_S},
};
static const char *const rules[] = {"web", "we\"b\\\n2"};
static const struct trigger_status triggers[] = {{"hot", 3, 1}, {HOSTILE, 0, 0}};

static const struct service_status status = {
	.version = "0.1.0",
	.started_realtime_ns = 1795324800 * NS_PER_S,
	.started_ns = NS_PER_S,
	.now_ns = 100 * NS_PER_S,
	.targets = targets,
	.target_count = 3,
	.rules = rules,
	.rule_count = 2,
	.processes = 300,
	.not_python = 297,
	.total = {.samples = 1234567, .attempts = 1234570, .lost = {[LOSS_TORN] = 2, [LOSS_DROPPED] = 1}},
	.ring_dropped = 1,
	.cpu_budget = 0.01,
	.cpu_share = 0.0085,
	.cpu_ns = NS_PER_S / 2,
	.slowdown = 2,
	.memory_budget_bytes = 64 << 20,
	.resident_bytes = 20 << 20,
	.history = {.used_bytes = 3 << 20,
                    .max_bytes = 48 << 20,
                    .slices = {6, 5, 4, 3},
                    .oldest_ns = 40 * NS_PER_S,
                    .steps = {[HISTORY_MERGED_MINUTE] = 12}},
	.disk_budget_bytes = 1 << 30,
	.dumps_written = 7,
	.dump_bytes = 5 << 20,
	.triggers = triggers,
	.trigger_count = 2,
	.triggers_unfollowed = 9,
	.reloads = 1,
	.log_suppressed = 8,
};
static const struct status_view all = {.all = true}, user = {.uid = 1000}, other = {.uid = 7};

typedef void print_status(const struct service_status *status, const struct status_view *view, struct buf *to);

static const char *print(print_status *printer, const struct status_view *view)
{
	static struct buf text;

	text.bytes = 0;
	printer(&status, view, &text);
	cr_assert_eq(text.err, 0);
	return buf_text(&text);
}

/* Whether the program takes the text; where it is missing the test is skipped. */
static int feed(const char *program, const char *arguments, const char *text)
{
	char command[512];
	FILE *pipe;

	snprintf(command, sizeof(command), "command -v %s >/dev/null", program);
	if (system(command) != 0)
		cr_skip_test("no %s here", program);
	snprintf(command, sizeof(command), "%s %s", program, arguments);
	pipe = popen(command, "w");
	fputs(text, pipe);
	return pclose(pipe);
}

static void expect(const char *text, const char *part)
{
	cr_assert_not_null(strstr(text, part), "no %s in\n%s", part, text);
}

Test(service_status, text)
{
	const char *text = print(status_print, &all);

	expect(text, "targets     2 sampled, 0 waiting, 1 failed, 0 excluded\n");
	expect(text, "processes   300, of which 297 no Python\n");
	expect(text, "lost        3 (<0.01 %), torn 2, dropped 1\n");
	expect(text, "CPU         0.85 % of a core over the last 10 s, budget 1 %\n");
	expect(text, "one tick in 2 is taken\n");
	expect(text, "history     3.0 MiB of 48.0 MiB, back to 60.00 s ago\n");
	expect(text, "merged_minute 12\n");
	expect(text, "            9 slices above a bound were not followed: too many processes at a time\n");
	cr_assert_null(strchr(text, '\x1b'));
	expect(print(status_print, &user),
	       "targets     1 sampled, 0 waiting, 1 failed, 0 excluded (those of others are not shown)\n");
}

Test(service_status, list)
{
	const char *text = print(status_print_list, &all);

	expect(text, "   4711 3.11.2   sampled   uwsgi            web                25 Hz    75 %       12,345  "
	             "uwsgi.service\n");
	cr_assert_null(strchr(text, '\x1b'));
	text = print(status_print_list, &user);
	cr_assert_null(strstr(text, "4711"));
	expect(text, "     13 ");
	text = print(status_print_list, &other);
	cr_assert_eq(strchr(text, '\n')[1], '\0', "the heading alone");
}

Test(service_status, what_rules_exclude_does_not_drown_the_list)
{
	static struct target_status some[3];
	struct service_status with = status;
	struct buf text = {0};

	some[0] = targets[0];
	some[1] = (struct target_status){.pid = 21, .name = "bash", .state = TARGET_EXCLUDED};
	some[2] = (struct target_status){.pid = 22, .name = "cron", .state = TARGET_EXCLUDED};
	with.targets = some;
	status_print_list(&with, &all, &text);
	cr_assert_null(strstr(buf_text(&text), "bash"), "%s", buf_text(&text));
	expect(buf_text(&text), "uwsgi.service\nand 2 that rules exclude, Pythons or not (--json lists them)\n");
	text.bytes = 0;
	status_print_list_json(&with, &all, &text);
	expect(buf_text(&text), "\"bash\"");
	buf_release(&text);
}

Test(service_status, json_is_read_by_jq)
{
	const char *text = print(status_print_json, &all);

	cr_assert_eq(feed("jq",
	                  "-e '.targets.sampled == 2 and .total.lost.torn == 2 and .cpu.slowdown == 2 and "
	                  "(.triggers | length) == 2 and .triggers_unfollowed == 9 and .history.reach_s == 60' >/dev/null",
	                  text),
	             0, "%s", text);
	text = print(status_print_list_json, &all);
	cr_assert_eq(
		feed("jq",
	             "-e 'length == 3 and .[0].python == \"3.11.2\" and .[1].parked == null and .[0].facts.samples "
	             "== 12345' >/dev/null",
	             text),
		0, "%s", text);
	cr_assert_eq(feed("jq", "-e 'length == 2' >/dev/null", print(status_print_list_json, &user)), 0);
	cr_assert_eq(feed("jq", "-e 'length == 0' >/dev/null", print(status_print_list_json, &other)), 0);
}

Test(service_status, metrics)
{
	static struct buf text;
	const char *promtool = getenv("PROMTOOL");

	metrics_print(&status, &text);
	expect(buf_text(&text), "sampled_samples_total 1234567\n");
	expect(buf_text(&text), "sampled_lost_samples_total{cause=\"torn\"} 2\n");
	expect(buf_text(&text), "sampled_rule_targets{rule=\"web\"} 1\n");
	expect(buf_text(&text), "sampled_rule_targets{rule=\"we\\\"b\\\\\\n2\"} 0\n");
	expect(buf_text(&text), "sampled_rule_targets{rule=\"\"} 1\n");
	expect(buf_text(&text), "sampled_rate_hertz 26\n");
	expect(buf_text(&text), "sampled_trigger_unfollowed_total 9\n");
	cr_assert_null(strstr(buf_text(&text), "uwsgi"), "nothing of single processes");
	cr_assert_eq(feed(promtool ? promtool : "promtool", "check metrics", buf_text(&text)), 0);
	buf_release(&text);
}
