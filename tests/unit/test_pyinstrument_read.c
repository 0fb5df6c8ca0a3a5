/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/read_back.h"

/* A session as pyinstrument 5 writes it; frames are a thread, main, and a method of a class at its line. */
#define HEAD                                                                                                           \
	"{\"session\":1,\"start_time\":1700000000,\"sample_count\":4,\"cpu_time\":0.5,\"start_call_stack\":[],"        \
	"\"target_description\":\"Program: app.py\",\"frame_records\":["
#define MAIN "\"MainThread\\u0000<thread>\\u0000139\",\"main\\u0000/app/app.py\\u000010\\u0001l12\""
#define RUN  "\"run\\u0000/app/app.py\\u000020\\u0001cServer\\u0001l23\\u0001h\""

static const char text[] =
	HEAD "[[" MAIN "," RUN "],0.001],"
	     "[[" MAIN "," RUN "],0.002],"
	     "[[" MAIN ",\"[await]\\u0000\\u00000\"],1.5],"
	     "[[\"worker\\u0000<thread>\\u0000140\",\"run\\u0000/app/app.py\\u000020\\u0001cServer\"],0.25]]}";

static const struct node *child_of(const struct thread_tree *tree, uint32_t parent, const struct profile *profile,
                                   const char *name)
{
	for (uint32_t n = tree->nodes[parent].child; n; n = tree->nodes[n].sibling)
		if (strcmp(profile->symbols[tree->nodes[n].symbol].name, name) == 0)
			return &tree->nodes[n];
	cr_assert_fail("%s is not there", name);
	return NULL;
}

Test(pyinstrument_read, threads_frames_and_times)
{
	struct profile *profile;
	struct fault fault;
	const struct node *main, *run, *waits;

	cr_assert_eq(read_back(&profile, "pyinstrument", text, strlen(text), NULL, &fault), 0, "%s", fault.why);
	cr_assert_eq(profile->thread_count, 2);
	cr_assert_str_eq(profile->processes[0].name, "app.py");
	cr_assert_eq(profile->wall_start_ns, 1700000000000000000);
	cr_assert(profile->imported && profile->uncounted, "a record is no sample");
	cr_assert_str_eq(profile->threads[0].name, "MainThread");
	cr_assert(profile->threads[0].is_main && !profile->threads[1].is_main);
	cr_assert_str_eq(profile->threads[1].name, "worker");
	main = child_of(&profile->threads[0], 0, profile, "main");
	cr_assert_eq(main->line, 12);
	cr_assert_eq(profile->symbols[main->symbol].first_line, 10);
	cr_assert_str_eq(profile->symbols[main->symbol].file, "/app/app.py");
	cr_assert_eq(profile->symbols[main->symbol].kind, FRAME_PYTHON);
	run = child_of(&profile->threads[0], (uint32_t)(main - profile->threads[0].nodes), profile, "Server.run");
	cr_assert_eq(run->line, 23);
	cr_assert_eq(run->self[VALUE_SAMPLES], 2);
	cr_assert_eq(run->self[VALUE_WALL], 3000000);
	waits = child_of(&profile->threads[0], (uint32_t)(main - profile->threads[0].nodes), profile, "[await]");
	cr_assert_eq(profile->symbols[waits->symbol].kind, FRAME_SPECIAL);
	cr_assert_eq(waits->self[VALUE_WALL], 1500000000);
	run = child_of(&profile->threads[1], 0, profile, "Server.run");
	cr_assert_eq(run->line, 20, "without a line it is the first");
	cr_assert_eq(profile_sum(profile, VALUE_WALL), 1753000000);
	cr_assert_eq(note_of(profile, "bad_records"), -1);
	profile_free(profile);
}

/* In time order, as far as it is asked for: each record follows the one before. */
Test(pyinstrument_read, a_window_of_time)
{
	const struct builder_options options = {.memory_max_bytes = 1 << 30, .runs = true, .runs_max = 100};
	struct profile *profile;
	struct fault fault;

	cr_assert_eq(read_back(&profile, "pyinstrument", text, strlen(text), &options, &fault), 0);
	cr_assert(profile->has_runs);
	cr_assert_eq(profile->threads[0].run_count + profile->threads[1].run_count, 4);
	cr_assert_eq(profile->threads[0].runs[1].t_first_ns - profile->threads[0].runs[0].t_first_ns, 2000000);
	cr_assert_eq(profile->threads[1].runs[0].t_first_ns - profile->threads[0].runs[2].t_first_ns, 250000000);
	profile_free(profile);
}

Test(pyinstrument_read, what_makes_no_sense_is_counted_and_the_rest_kept)
{
	static const char bad[] = HEAD "[[" MAIN "],-1],[7,0.1],[[" MAIN "],1e9],[[" MAIN "],0.5],[[],0.25],"
				       "[[\"\",\"\\u0000\\u000099999999999\"],0.125]]}";
	struct profile *profile;
	struct fault fault;

	cr_assert_eq(read_back(&profile, "pyinstrument", bad, strlen(bad), NULL, &fault), 0, "%s", fault.why);
	cr_assert_eq(note_of(profile, "bad_records"), 3);
	cr_assert_eq(profile_sum(profile, VALUE_WALL), 875000000);
	cr_assert_eq(profile_sum(profile, VALUE_SAMPLES), 3);
	for (uint32_t i = 0; i < profile->symbol_count; i++)
		cr_assert_neq(profile->symbols[i].name[0], '\0');
	profile_free(profile);
}

Test(pyinstrument_read, other_files_of_its_are_refused)
{
	static const char tree[] = "{\"start_time\":1,\"sample_count\":4,\"cpu_time\":0.5,\"root_frame\":{}}";
	struct profile *profile;
	struct fault fault;

	cr_assert_eq(read_back(&profile, "pyinstrument", tree, strlen(tree), NULL, &fault), -EPROTO);
	cr_assert_str_eq(fault.why, "it has no \"frame_records\"");
	cr_assert_str_eq(fault.hint, "pyinstrument -r session writes them");
}

Test(pyinstrument_read, damaged)
{
	read_damaged("pyinstrument", text, strlen(text));
}
