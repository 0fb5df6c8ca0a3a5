/* SPDX-License-Identifier: Apache-2.0 */
/* The service's configuration: what the files say, what holds where they say nothing, and each mistake with its place. */
#include "daemon/config.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "daemon/nearest.h"

/* A folder with a main file and drop-ins. */
static char folder[64], path[96];

static void write_file(const char *name, const char *text)
{
	char file[160];
	FILE *to;

	snprintf(file, sizeof(file), "%s/%s", folder, name);
	to = fopen(file, "w");
	cr_assert(to);
	fputs(text, to);
	fclose(to);
}

static void make_folder(const char *text)
{
	char drop_ins[96];

	strcpy(folder, "/tmp/test_config.XXXXXX");
	cr_assert(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/sampled.conf", folder);
	snprintf(drop_ins, sizeof(drop_ins), "%s/conf.d", folder);
	cr_assert_eq(mkdir(drop_ins, 0700), 0);
	write_file("sampled.conf", text);
}

static void remove_folder(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	cr_assert_eq(system(command), 0);
}

/* Mistakes, a line each, without the folder. */
static struct buf mistakes;

static void hear(void *context, const struct fault *fault)
{
	const char *why = fault->why;

	(void)context;
	if (strncmp(why, folder, strlen(folder)) == 0)
		why += strlen(folder) + 1;
	buf_printf(&mistakes, "%s (%s)\n", why, fault->hint);
}

static struct config *read_folder(void)
{
	struct config *config = NULL;
	int err;

	mistakes.bytes = 0;
	err = config_read(&config, path, hear, NULL);
	cr_assert_eq(err, 0, "%s", buf_text(&mistakes));
	cr_assert_eq(mistakes.bytes, 0);
	return config;
}

static struct config *read_text(const char *text)
{
	struct config *config;

	make_folder(text);
	config = read_folder();
	remove_folder();
	return config;
}

static void refuse(const char *text, const char *expected)
{
	struct config *config = NULL;

	make_folder(text);
	mistakes.bytes = 0;
	cr_assert_lt(config_read(&config, path, hear, NULL), 0, "%s was taken", text);
	cr_assert_null(config);
	cr_assert_str_eq(buf_text(&mistakes), expected);
	remove_folder();
}

Test(config, defaults)
{
	struct config *c = read_text("");

	cr_assert_eq(c->service.interval_ns, NS_PER_S / 49);
	cr_assert_eq(c->service.mode, MODE_WALL);
	cr_assert(c->service.jitter && c->service.gc);
	cr_assert_float_eq(c->budget.cpu, 0.01, 1e-9);
	cr_assert_eq(c->budget.memory_bytes, 64 << 20);
	cr_assert_eq(c->budget.disk_bytes, 1 << 30);
	cr_assert_eq(c->history.slice_ns, 10 * NS_PER_S);
	cr_assert_str_eq(c->dump.directory, "/var/lib/sampled");
	cr_assert_str_eq(c->dump.name, "sampled-%n-%p-%t");
	cr_assert_eq(c->dump.formats.count, 1);
	cr_assert_str_eq(c->dump.formats.items[0]->name, "flamegraph");
	cr_assert_eq(c->dump.keep_count, 100);
	cr_assert_eq(c->dump.keep_bytes, 500 << 20);
	cr_assert_eq(c->dump.keep_age_ns, 30 * 86400 * NS_PER_S);
	cr_assert_eq(c->dump.last_ns, 0);
	cr_assert_null(c->push.spool);
	cr_assert_eq(c->push.interval_ns, 60 * NS_PER_S);
	cr_assert_eq(c->rule_count, 1, "all Pythons");
	cr_assert_str_eq(c->rules[0].name, "all");
	cr_assert_eq(c->rules[0].interval_ns, NS_PER_S / 49);
	cr_assert_eq(c->trigger_count, 0);
	config_free(c);
	config_free(NULL);
}

Test(config, all_keys)
{
	struct config *c = read_text(
		"[service]\nrate = 100\nmode = cpu\njitter = no\ngc = off\n[budget]\ncpu = 2.5%\nvisits = 0.5%\nmemory = 128MiB\ndisk "
		"= "
		"2G\n[history]\nslice = 30s\n[dump]\ndirectory = /srv/d\nformat = pprof collapsed\nname = "
		"%h\nkeep-count = "
		"0\nkeep-size = 1.5G\nkeep-age = 0\nlast = 5m\n[push]\nspool = /srv/s\ninterval = 2m\nspool-size = "
		"1M\nper = rule\n[rule web]\ncommand = *gunicorn* \"*celery worker*\"\nexecutable = /opt/*\nuser = "
		"root "
		"4711\nunit = web@*.service\ncgroup = /a/*\ncontainer = ab*\nversion = 3.11 3.8-3.9\naction = "
		"include\nrate = 10\nmode = gil\nlabel.team = the web\nlabel.tier=1\n[rule none]\naction = "
		"exclude\n[trigger hot]\nrule = none web\ncpu = 80%\nfor = 10s\nevery = 1h\nlast = 2m\n[trigger "
		"slow]\nfunction = solve\nshare = 20%\n[trigger wait]\ngil-wait = 50%\n");
	const struct config_rule *web = &c->rules[0];

	cr_assert_eq(c->service.interval_ns, 10 * NS_PER_MS);
	cr_assert_eq(c->service.mode, MODE_CPU);
	cr_assert(!c->service.jitter && !c->service.gc);
	cr_assert_float_eq(c->budget.cpu, 0.025, 1e-9);
	cr_assert_float_eq(c->budget.visits, 0.005, 1e-9);
	cr_assert_eq(c->budget.memory_bytes, 128 << 20);
	cr_assert_eq(c->history.slice_ns, 30 * NS_PER_S);
	cr_assert_eq(c->dump.formats.count, 2);
	cr_assert_str_eq(c->dump.formats.items[1]->name, "collapsed");
	cr_assert_eq(c->dump.keep_count, 0);
	cr_assert_eq(c->dump.keep_bytes, UINT64_C(3) << 29);
	cr_assert_eq(c->dump.keep_age_ns, 0);
	cr_assert_eq(c->dump.last_ns, 300 * NS_PER_S);
	cr_assert_str_eq(c->push.spool, "/srv/s");
	cr_assert_eq(c->push.per, PER_RULE);
	cr_assert_eq(c->rule_count, 2);
	cr_assert_str_eq(web->name, "web");
	cr_assert_eq(web->command.count, 2);
	cr_assert_str_eq(web->command.items[1], "*celery worker*");
	cr_assert_eq(web->users.count, 2);
	cr_assert_eq(web->users.items[0], 0);
	cr_assert_eq(web->users.items[1], 4711);
	cr_assert_eq(web->versions.items[0].from, 0x30b);
	cr_assert_eq(web->versions.items[1].to, 0x309);
	cr_assert_eq(web->interval_ns, 100 * NS_PER_MS);
	cr_assert_eq(web->mode, MODE_GIL);
	cr_assert_eq(web->label_count, 2);
	cr_assert_str_eq(web->labels[0].value, "the web");
	cr_assert_eq(c->rules[1].action, RULE_EXCLUDE);
	cr_assert_eq(c->rules[1].mode, MODE_CPU, "the service's");
	cr_assert_eq(c->triggers[0].kind, TRIGGER_CPU);
	cr_assert_eq(c->triggers[0].rules[0], 1);
	cr_assert_eq(c->triggers[0].rules[1], 0);
	cr_assert_eq(c->triggers[1].kind, TRIGGER_FUNCTION);
	cr_assert_float_eq(c->triggers[1].above, 0.2, 1e-9);
	cr_assert_eq(c->triggers[2].kind, TRIGGER_GIL_WAIT);
	cr_assert_eq(c->triggers[2].for_ns, 30 * NS_PER_S);
	config_free(c);
}

Test(config, later_files_override_keys_and_add_to_lists)
{
	struct config *c;

	make_folder("[service]\nrate = 10\n[rule a]\ncommand = 1\nuser = 1\nlabel.x = 1\nlabel.y = 1\n[dump]\nformat = "
	            "svg\n");
	write_file("conf.d/20.conf", "[service]\nrate = 25\nmode = gil\n[rule a]\nuser =\nlabel.x =\n[rule b]\n");
	write_file("conf.d/10.conf",
	           "[service]\nrate = 20\nmode = cpu\n[rule a]\ncommand = 2\nlabel.y = 2\n[dump]\nformat =\n");
	write_file("conf.d/30.conf.bak", "nonsense");
	write_file("conf.d/.hidden.conf", "nonsense");
	c = read_folder();
	remove_folder();
	cr_assert_eq(c->file_count, 3);
	cr_assert_eq(c->service.interval_ns, 40 * NS_PER_MS);
	cr_assert_eq(c->service.mode, MODE_GIL);
	cr_assert_eq(c->rule_count, 2);
	cr_assert_eq(c->rules[0].command.count, 2);
	cr_assert_eq(c->rules[0].users.count, 0);
	cr_assert_eq(c->rules[0].label_count, 1);
	cr_assert_str_eq(c->rules[0].labels[0].key, "y");
	cr_assert_str_eq(c->rules[0].labels[0].value, "2");
	cr_assert_str_eq(c->dump.formats.items[0]->name, "flamegraph");
	config_free(c);
}

Test(config, disk_is_shared_in_proportion)
{
	struct config *c =
		read_text("[budget]\ndisk = 300M\n[dump]\nkeep-size = 400M\n[push]\nspool = /s\nspool-size = 200M\n");

	cr_assert_eq(c->dump.keep_bytes, 200 << 20);
	cr_assert_eq(c->push.spool_bytes, 100 << 20);
	config_free(c);
}

Test(config, sections_and_keys_that_there_are_not)
{
	refuse("[servcie]\nrate = 1\n[what]\n",
	       "sampled.conf:1: [servcie]: no such section (is it service?)\n"
	       "sampled.conf:3: [what]: no such section (service, budget, history, dump, "
	       "push, rule, trigger)\n");
	refuse("[service]\nrat = 1\nquality = 1\n",
	       "sampled.conf:2: [service] rat: no such key (is it rate?)\n"
	       "sampled.conf:3: [service] quality: no such key (rate, mode, jitter, gc, command-line)\n");
	refuse("[service x]\n[rule]\n[rule a/b]\n",
	       "sampled.conf:1: [service] takes no name ()\n"
	       "sampled.conf:2: rule: without a name ()\n"
	       "sampled.conf:3: rule a/b: not a name (letters and digits of ASCII; also "
	       "some of -_.)\n");
}

Test(config, values_out_of_range)
{
	static const char *const bad[] = {
		"[service]\nrate = 0.5",
		"[service]\nrate = 1001",
		"[service]\nrate = max",
		"[service]\nmode = best",
		"[service]\ngc = perhaps",
		"[budget]\ncpu = 1",
		"[budget]\ncpu = 101%",
		"[budget]\nmemory = 1M",
		"[budget]\nmemory = 64X",
		"[history]\nslice = 2h",
		"[dump]\ndirectory = here",
		"[dump]\nformat = pdf",
		"[dump]\nformat = chrome",
		"[dump]\nname = a/b",
		"[dump]\nname = .%p",
		"[dump]\nname = %q",
		"[dump]\nkeep-count = -1",
		"[dump]\nkeep-size = 0",
		"[push]\ninterval = 0",
		"[push]\nper = thread",
		"[rule a]\nuser = nobody-of-that-name",
		"[rule a]\nversion = 3",
		"[rule a]\nversion = 3.11.4",
		"[rule a]\nversion = 3.9-3.8",
		"[rule a]\ncommand = \"x",
		"[rule a]\ncommand = \"\"",
		"[rule a]\nlabel.1 = x",
		"[rule a]\nlabel.__a = x",
		"[rule a]\nlabel. = x",
		"[rule a]\naction = stop",
		"[rule a]\ncommand = x -w",
		"[rule a]\nlabel.a-b = x",
		"[trigger a]\ncpu = 80%\nfor = 0",
		"[trigger a]\ncpu = 5%\ngil-wait = 2",
		"[trigger a]\nfunction = x",
		"[trigger a]\nshare = 5%\ncpu = 5%",
		"[trigger a]\ncpu = 5%\ngil-wait = 5%",
		"[trigger a]",
		"[trigger a]\nrule = b\ncpu = 5%",
		"[push]\nspool = s",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct config *config = NULL;
		unsigned lines = 0;

		make_folder(bad[i]);
		mistakes.bytes = 0;
		cr_assert_eq(config_read(&config, path, hear, NULL), -EINVAL, "%s was taken", bad[i]);
		for (const char *at = buf_text(&mistakes); *at; at++)
			lines += *at == '\n';
		cr_assert_eq(lines, 1, "%s: %s", bad[i], buf_text(&mistakes));
		remove_folder();
	}
	refuse("[service]\nrate = 49 # a comment\n",
	       "sampled.conf:2: rate = 49 # a comment: not a rate (comments have lines of their own)\n");
}

Test(config, rules_and_triggers_that_cannot_act)
{
	refuse("[rule a]\n[rule b]\nuser = 1\n[rule a]\nbad = 1\n",
	       "sampled.conf:4: rule a: twice in this file (the first is in line 1)\n"
	       "sampled.conf:2: rule b: never reached, rule a takes all (the first rule that matches decides)\n");
	refuse("[rule a]\naction = exclude\n",
	       "sampled.conf:1: no rule includes anything, so nothing would be profiled (a "
	       "last rule without conditions takes all others)\n");
	refuse("[rule a]\n[trigger t]\ncpu = 5%\nrule = a b\n", "sampled.conf:4: trigger t: there is no rule b ()\n");
}

Test(config, files_that_cannot_be_read)
{
	struct config *config = NULL;

	make_folder("");
	mistakes.bytes = 0;
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(config_read(&config, path, hear, NULL), -ENOENT);
	cr_assert_str_eq(buf_text(&mistakes), "sampled.conf: No such file or directory ()\n");
	remove_folder();
}

/* What is found for a word among "rate", "interval" and "duration"; "" where none is near. */
static const char *meant(const char *word)
{
	struct nearest near = {.word = word};

	nearest_offer(&near, "rate");
	nearest_offer(&near, "interval");
	nearest_offer(&near, "duration");
	return nearest_word(&near) ? nearest_word(&near) : "";
}

Test(nearest, a_slip_or_a_beginning)
{
	cr_assert_str_eq(meant("rate"), "rate");
	cr_assert_str_eq(meant("rtae"), "rate");
	cr_assert_str_eq(meant("rat"), "rate");
	cr_assert_str_eq(meant("tar"), "");
	cr_assert_str_eq(meant(""), "");
	cr_assert_str_eq(meant("intervall"), "interval");
	cr_assert_str_eq(meant("dur"), "duration");
	cr_assert_str_eq(meant("d"), "", "one letter says nothing");
	cr_assert_str_eq(meant("durat1on-of-nothing"), "");
}
