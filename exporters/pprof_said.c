/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/pprof_said.h"

#include <stdlib.h>
#include <string.h>

#include "aggregator/aggregator.h"

/* Facts that stay true of the profile whatever it was written to. Those of filtering, memory and time are in the profile itself. */
static const struct {
	const char *key, *label;
	bool loss;
} facts[] = {
	{"ticks", "ticks", false},
	{"ticks_credited", "idle intervals, not read", false},
	{"ticks_late", "ticks late", true},
	{"ticks_missed", "ticks missed", true},
	{"ticks_saved", "ticks left out (CPU budget)", true},
	{"attempts", "samples tried", false},
	{"samples", "samples taken", false},
	{"lost_torn", "lost: torn", true},
	{"lost_unreadable", "lost: memory not readable", true},
	{"lost_invalid", "lost: data not valid", true},
	{"lost_gone", "lost: thread or process ended", true},
	{"lost_dropped", "lost: dropped, ring full", true},
	{"truncated", "stacks truncated", true},
	{"native", "with all native frames", false},
	{"native_cut", "with the innermost native frames", false},
	{"native_mismatched", "native frames do not fit", true},
	{"native_failed", "native frames not had", true},
	{"stops", "threads stopped", false},
	{"stops_given_up", "stops given up", true},
	{"eintr_risk", "may have interrupted a call", true},
	{"unsampled_ns", "thread time not sampled, ns", true},
};

/* "12,345 (0.1 %)": 12345. */
static uint64_t count_of(const char *text)
{
	uint64_t count = 0;

	for (; (*text >= '0' && *text <= '9') || *text == ','; text++)
		if (*text != ',') {
			if (count > UINT64_MAX / 100)
				break;
			count = count * 10 + (uint64_t)(*text - '0');
		}
	return count;
}

static void add_process(struct pprof_said *said, const char *text)
{
	char *end;
	long pid = strtol(text, &end, 10);
	unsigned count = said->process_count;
	struct said_process *processes = said->processes;

	if (end == text || end[0] != ':' || end[1] != ' ' || pid < 0 || pid > INT32_MAX ||
	    count == PPROF_SAID_PROCESSES_MAX)
		return;
	if ((count & (count - 1)) == 0) /* doubles at powers of two */
		processes = realloc(processes, (count ? 2 * (size_t)count : 1) * sizeof(*processes));
	if (!processes)
		return;
	said->processes = processes;
	processes[count] = (struct said_process){.pid = (int32_t)pid, .name = strdup(end + 2)};
	if (processes[count].name)
		said->process_count++;
}

static void take_comment(struct pprof_said *said, const char *text, struct builder *to)
{
	struct profile *p = builder_profile(to);
	const char *colon = strstr(text, ": ");
	size_t key_bytes = colon ? (size_t)(colon - text) : 0;

	if (strncmp(text, "process ", 8) == 0)
		add_process(said, text + 8);
	for (size_t i = 0; i < SAMPLE_MODES; i++)
		if (strncmp(text, "mode: ", 6) == 0 && strcmp(text + 6, sample_mode_names[i]) == 0)
			p->mode = sample_mode_names[i];
	if (strncmp(text, "filtered: ", 10) == 0)
		p->filtered = count_of(text + 10);
	if (strncmp(text, "omitted: ", 9) == 0)
		p->omitted = count_of(text + 9);
	if (strncmp(text, "out_of_memory: ", 15) == 0)
		p->out_of_memory = count_of(text + 15);
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]) && colon; i++)
		if (strlen(facts[i].key) == key_bytes && memcmp(text, facts[i].key, key_bytes) == 0)
			builder_note(to, facts[i].key, facts[i].label, (double)count_of(colon + 2), facts[i].loss);
}

void pprof_said_read(struct pprof_said *said, const struct pprof_tables *t, struct builder *to)
{
	const uint64_t *comments = (const uint64_t *)(const void *)t->comments.data;
	size_t count = t->comments.bytes / sizeof(*comments);
	struct buf text = {0};

	for (size_t i = 0; i < count; i++) {
		if (i == 0 && !pprof_is_text(t, comments[i], "written by: sampled"))
			break;
		take_comment(said, pprof_text(t, &text, comments[i]), to);
	}
	buf_release(&text);
}

void pprof_said_release(struct pprof_said *said)
{
	for (unsigned i = 0; i < said->process_count; i++)
		free(said->processes[i].name);
	free(said->processes);
}

char *pprof_said_name(const struct pprof_said *said, int32_t pid)
{
	for (unsigned i = 0; i < said->process_count; i++)
		if (said->processes[i].pid == pid)
			return said->processes[i].name;
	return NULL;
}
