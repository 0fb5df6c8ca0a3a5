/* SPDX-License-Identifier: Apache-2.0 */
/* The closing summary's figures: all there are, for -v, and what reading cost, for --stats. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "daemon/summary.h"
#include "daemon/terminal.h"

static const char *fact_text(const struct facts *facts, const char *key)
{
	for (size_t i = 0; i < facts->count; i++)
		if (strcmp(facts->items[i].key, key) == 0)
			return facts->items[i].text;
	return "?";
}

__attribute__((format(printf, 1, 2))) static void print(const char *format, ...)
{
	char *line;
	va_list args;

	va_start(args, format);
	if (vasprintf(&line, format, args) >= 0) {
		terminal_line(line);
		free(line);
	}
	va_end(args);
}

static void print_losses(const struct facts *facts)
{
	print("  rate         asked %s, reached %s; ticks late %s, missed %s", fact_text(facts, "asked_hz"),
	      fact_text(facts, "reached_hz"), fact_text(facts, "ticks_late"), fact_text(facts, "ticks_missed"));
	print("  tried        %s: taken %s; lost: torn %s, unreadable %s, invalid %s, ended %s, dropped %s",
	      fact_text(facts, "attempts"), fact_text(facts, "samples"), fact_text(facts, "lost_torn"),
	      fact_text(facts, "lost_unreadable"), fact_text(facts, "lost_invalid"), fact_text(facts, "lost_gone"),
	      fact_text(facts, "lost_dropped"));
	print("  excluded     by options %s, by --omit %s, because memory was full %s; stacks truncated %s",
	      fact_text(facts, "filtered"), fact_text(facts, "omitted"), fact_text(facts, "out_of_memory"),
	      fact_text(facts, "truncated"));
	print("  not sampled  %s of thread time", fact_text(facts, "unsampled_ns"));
}

/* What was asked for by --native and --blocking; else nothing. */
static void print_native(const struct facts *facts)
{
	const struct rec_facts *sum = &facts->sum;
	char within[32];

	if (sum->native || sum->native_cut || sum->native_mismatched || sum->native_failed)
		print("  native       stacks: %s complete, %s innermost frames only, %s that do not fit Python's, %s unavailable",
		      fact_text(facts, "native"), fact_text(facts, "native_cut"), fact_text(facts, "native_mismatched"),
		      fact_text(facts, "native_failed"));
	if (sum->stops == 0 && sum->stops_given_up == 0)
		return;
	facts_time_text(within, sizeof(within), facts_stop_ns(sum, 99));
	print("  stops        %s, median %s, 99 %% within %s, longest %s; given up %s; %llu may have interrupted a "
	      "system "
	      "call",
	      fact_text(facts, "stops"), fact_text(facts, "stop_median_ns"), within, fact_text(facts, "stop_max_ns"),
	      fact_text(facts, "stops_given_up"), (unsigned long long)sum->eintr_risk);
}

static void print_times(const struct profile *profile, const struct facts *facts)
{
	static const char *const labels[STATE_COUNT] = {
		[STATE_GIL] = "GIL held", [STATE_GIL_WAIT] = "GIL awaited", [STATE_RUNNABLE] = "runnable without GIL",
		[STATE_IDLE] = "idle",    [STATE_UNKNOWN] = "unknown"};
	uint64_t values[VALUE_COUNT], states[STATE_COUNT];
	struct buf line = {0};

	for (int v = 0; v < VALUE_COUNT; v++)
		values[v] = profile_sum(profile, (enum value_index)v);
	values_states(values, states);
	for (int i = 0; i < STATE_COUNT; i++)
		if (states[i] || i != STATE_UNKNOWN)
			buf_printf(&line, "%s%s %.1f %%", i ? ", " : "", labels[i],
			           facts_percent(states[i], values[VALUE_WALL]));
	print("  thread time  %s", buf_text(&line));
	buf_release(&line);
	if (profile_has(profile, VALUE_CPU))
		print("  CPU          %.1f %% of thread time, by the kernel's count; %.1f %% waiting for a CPU",
		      facts_percent(values[VALUE_CPU], values[VALUE_WALL]) * facts->covered,
		      facts_percent(values[VALUE_RUN_WAIT], values[VALUE_WALL]) * facts->covered);
}

void summary_print_figures(const struct profile *profile, const struct facts *facts)
{
	print_losses(facts);
	print_native(facts);
	print_times(profile, facts);
}

void summary_print_stats(const struct facts *facts, const struct ring *ring)
{
	const struct rec_facts *sum = &facts->sum;
	double attempts = sum->attempts ? (double)sum->attempts : 1, reads = sum->reads ? (double)sum->reads : 1;

	print("  reading      %.2f \u00b5s a sample, %.2f \u00b5s a read, %.2f pieces and %.0f bytes a read",
	      (double)sum->read_ns / attempts / 1e3, (double)sum->read_ns / reads / 1e3,
	      (double)sum->read_segments / reads, (double)sum->read_bytes / reads);
	print("  repeated     %s reads: moved %llu, more to copy %llu, behind a generator or C %llu, other code %llu, "
	      "no such call %llu;"
	      " to confirm a new call %s; samples taken a little later %s",
	      fact_text(facts, "retries"), (unsigned long long)sum->retries[RETRY_MOVED],
	      (unsigned long long)sum->retries[RETRY_GUESS], (unsigned long long)sum->retries[RETRY_LINK],
	      (unsigned long long)sum->retries[RETRY_CODE], (unsigned long long)sum->retries[RETRY_CALL],
	      fact_text(facts, "confirms"), fact_text(facts, "deferred"));
	print("  ring         at most %.1f of %.1f KiB used; %llu runs for %llu samples, %llu symbols",
	      (double)ring_peak_bytes(ring) / 1024, (double)ring_room_bytes(ring) / 1024, (unsigned long long)sum->runs,
	      (unsigned long long)sum->samples, (unsigned long long)sum->symbols);
}
