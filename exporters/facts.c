/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/facts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/choose.h"
#include "base/clock.h"

double facts_percent(uint64_t part, uint64_t whole)
{
	return whole > 0 ? 100.0 * (double)part / (double)whole : 0.0;
}

void facts_percent_text(char *to, size_t room, uint64_t part, uint64_t whole)
{
	double percent = facts_percent(part, whole);

	if (part > 0 && percent < 0.01)
		snprintf(to, room, "<0.01 %%");
	else
		snprintf(to, room, percent < 1 ? "%.2f %%" : "%.1f %%", percent);
}

void facts_count_text(char *to, size_t room, uint64_t count)
{
	char digits[24];
	size_t length = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, count), out = 0;

	for (size_t i = 0; i < length && out + 2 < room; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			to[out++] = ',';
		to[out++] = digits[i];
	}
	to[out] = '\0';
}

void facts_time_text(char *to, size_t room, uint64_t ns)
{
	double s = (double)ns / (double)NS_PER_S;
	uint64_t whole_s = ns / NS_PER_S;

	if (whole_s >= 3600)
		snprintf(to, room, "%" PRIu64 " h %02" PRIu64 " m", whole_s / 3600, whole_s / 60 % 60);
	else if (whole_s >= 100)
		snprintf(to, room, "%" PRIu64 " m %02" PRIu64 " s", whole_s / 60, whole_s % 60);
	else if (ns >= NS_PER_S)
		snprintf(to, room, "%.2f s", s);
	else if (ns >= NS_PER_MS)
		snprintf(to, room, "%.2f ms", s * 1e3);
	else if (ns > 0)
		snprintf(to, room, "%.1f \u00b5s", s * 1e6);
	else
		snprintf(to, room, "0 s");
}

void facts_rate_text(char *to, size_t room, double hz)
{
	if (hz >= 10000)
		snprintf(to, room, "%.4g kHz", hz / 1e3);
	else
		snprintf(to, room, "%.5g Hz", hz);
}

void facts_version_text(char *to, size_t room, uint32_t version)
{
	if (version == 0)
		snprintf(to, room, "?");
	else
		snprintf(to, room, "%u.%u.%u", version >> 16, version >> 8 & 0xff, version & 0xff);
}

static struct fact *add(struct facts *f, const char *key, const char *label, double number, enum fact_weight weight)
{
	struct fact *fact = &f->items[f->count < sizeof(f->items) / sizeof(f->items[0]) - 1 ? f->count++ : f->count];

	*fact = (struct fact){.key = key, .label = label, .number = number, .weight = weight};
	return fact;
}

static void add_count(struct facts *f, const char *key, const char *label, uint64_t count, enum fact_weight weight)
{
	struct fact *fact = add(f, key, label, (double)count, weight);

	facts_count_text(fact->text, sizeof(fact->text), count);
}

/* A count that should be 0, with its share of a whole. */
static void add_loss(struct facts *f, const char *key, const char *label, uint64_t count, uint64_t whole)
{
	struct fact *fact = add(f, key, label, (double)count, count ? FACT_LOSS : FACT_GOOD);
	char number[32], share[16];

	facts_count_text(number, sizeof(number), count);
	if (count) {
		facts_percent_text(share, sizeof(share), count, whole);
		snprintf(fact->text, sizeof(fact->text), "%s (%s)", number, share);
	} else {
		snprintf(fact->text, sizeof(fact->text), "0");
	}
}

/* Ticks are counted a process, and processes come and go: the rate is that of all of them over the sum of their spans. */
static double reached_hz(const struct profile *profile)
{
	double ticks = 0, span_ns = 0;

	for (uint32_t i = 0; i < profile->process_count; i++) {
		const struct rec_facts *facts = &profile->processes[i].facts;

		if (facts->ticks < 2 || facts->t_last_ns <= facts->t_start_ns)
			continue;
		ticks += (double)(facts->ticks - 1);
		span_ns += (double)(facts->t_last_ns - facts->t_start_ns);
	}
	return span_ns > 0 ? ticks * (double)NS_PER_S / span_ns : 0;
}

static void add_rates(struct facts *f)
{
	struct fact *fact = add(f, "duration_ns", "duration", (double)f->duration_ns, FACT_PLAIN);

	facts_time_text(fact->text, sizeof(fact->text), f->duration_ns);
	fact = add(f, "asked_hz", "rate asked", f->asked_hz, FACT_PLAIN);
	if (f->asked_hz > 0)
		facts_rate_text(fact->text, sizeof(fact->text), f->asked_hz);
	else
		/* Ticks are told by what also tells the interval: of a process that was just attached neither is. */
		snprintf(fact->text, sizeof(fact->text), f->sum.ticks ? "unthrottled" : "unknown");
	fact = add(f, "reached_hz", "rate reached", f->reached_hz, FACT_PLAIN);
	facts_rate_text(fact->text, sizeof(fact->text), f->reached_hz);
}

static void add_losses(struct facts *f)
{
	static const struct {
		const char *key, *label;
	} causes[LOSS_CAUSES] = {
		[LOSS_TORN] = {"lost_torn", "lost: torn"},
		[LOSS_UNREADABLE] = {"lost_unreadable", "lost: memory not readable"},
		[LOSS_INVALID] = {"lost_invalid", "lost: data not valid"},
		[LOSS_GONE] = {"lost_gone", "lost: thread or process ended"},
		[LOSS_DROPPED] = {"lost_dropped", "lost: dropped, ring full"},
	};

	for (size_t i = 0; i < LOSS_CAUSES; i++)
		add_loss(f, causes[i].key, causes[i].label, f->sum.lost[i], f->sum.attempts);
}

uint64_t facts_stop_ns(const struct rec_facts *facts, double percent)
{
	uint64_t count = 0, seen = 0, wanted;

	for (int i = 0; i < STOP_BINS; i++)
		count += facts->stop_bins[i];
	wanted = (uint64_t)ceil((double)count * percent / 100);
	for (int i = 0; i < STOP_BINS && count; i++) {
		/* The middle of [2^(i/4), 2^((i+1)/4)) µs; what is shorter than 1 µs is in the first bin, too. */
		double middle_ns = (double)NS_PER_US * exp2((i + 0.5) / 4);

		seen += facts->stop_bins[i];
		if (seen >= wanted && seen > 0)
			return facts->stop_max_ns && middle_ns > (double)facts->stop_max_ns ? facts->stop_max_ns
			                                                                    : (uint64_t)middle_ns;
	}
	return 0;
}

static void add_time(struct facts *f, const char *key, const char *label, uint64_t ns, enum fact_weight weight)
{
	struct fact *fact = add(f, key, label, (double)ns, weight);

	facts_time_text(fact->text, sizeof(fact->text), ns);
}

/* Nothing is said of what was not asked for. */
static void add_native(struct facts *f)
{
	const struct rec_facts *sum = &f->sum;

	if (sum->native || sum->native_cut || sum->native_mismatched || sum->native_failed) {
		add_count(f, "native", "with all native frames", sum->native, FACT_PLAIN);
		add_count(f, "native_cut", "with the innermost native frames", sum->native_cut, FACT_PLAIN);
		add_loss(f, "native_mismatched", "native frames do not fit", sum->native_mismatched, sum->samples);
		add_loss(f, "native_failed", "native frames not had", sum->native_failed, sum->samples);
	}
	if (!sum->stops && !sum->stops_given_up)
		return;
	add_count(f, "stops", "threads stopped", sum->stops, FACT_PLAIN);
	add_loss(f, "stops_given_up", "stops given up", sum->stops_given_up, sum->stops + sum->stops_given_up);
	add_loss(f, "eintr_risk", "may have interrupted a call", sum->eintr_risk, sum->stops);
	if (sum->stops)
		add_time(f, "stop_mean_ns", "stop, mean", sum->stop_ns / sum->stops, FACT_PLAIN);
	if (facts_stop_ns(sum, 50) == 0)
		return;
	add_time(f, "stop_median_ns", "stop, median", facts_stop_ns(sum, 50), FACT_PLAIN);
	add_time(f, "stop_99_ns", "stop, 99 % within", facts_stop_ns(sum, 99), FACT_PLAIN);
	add_time(f, "stop_max_ns", "stop, longest", sum->stop_max_ns, FACT_PLAIN);
}

/* By which reader samples were taken. What is in the ring, or was dropped there, may be in one count only. */
static void add_exact(struct facts *f)
{
	const struct rec_facts *sum = &f->sum;
	uint64_t standing = sum->near < sum->samples ? sum->near : sum->samples;
	uint64_t stopped = sum->stops < sum->samples - standing ? sum->stops : sum->samples - standing;
	struct fact *fact = add(f, "exact", "exact", facts_percent(standing + stopped, sum->samples), FACT_PLAIN);

	snprintf(fact->text, sizeof(fact->text), "%.1f %% (standing %.1f, stopped %.1f), moving %.1f %%", fact->number,
	         facts_percent(standing, sum->samples), facts_percent(stopped, sum->samples),
	         facts_percent(sum->samples - standing - stopped, sum->samples));
	add_count(f, "near", "samples of threads that stood", sum->near, FACT_PLAIN);
}

/* Of all samples that were taken, of those too that options leave out. */
static uint64_t sampled(const struct profile *profile, enum value_index value, uint64_t left_out_ns)
{
	enum value_index at = profile_find_value(profile, profile_value_types[value].name);

	return (at < VALUE_COUNT ? profile_sum(profile, at) : 0) + left_out_ns;
}

static void add_sampling(struct facts *f, const struct profile *profile)
{
	const struct left_out *left_out = &profile->left_out;
	uint64_t due_ns = sampled(profile, VALUE_WALL, left_out->wall) + f->sum.unsampled_ns, retries = 0;
	uint64_t cpu_ns = sampled(profile, VALUE_CPU, left_out->cpu);
	uint64_t wait_ns = sampled(profile, VALUE_RUN_WAIT, left_out->run_wait);
	char time[32], share[16];
	struct fact *fact;

	if (f->sum.unsampled_ns && due_ns)
		f->covered = 1 - (double)f->sum.unsampled_ns / (double)due_ns;
	add_rates(f);
	/* A quarter, and not of next to nothing. */
	if (wait_ns > (cpu_ns + wait_ns) / 4 && wait_ns > due_ns / 20) {
		fact = add(f, "overload", "overloaded: waiting for a CPU",
		           facts_percent(wait_ns, cpu_ns + wait_ns), FACT_LOSS);
		snprintf(fact->text, sizeof(fact->text), "%.0f %%", fact->number);
	}
	add_count(f, "ticks", "ticks", f->sum.ticks, FACT_PLAIN);
	add_count(f, "ticks_credited", "idle intervals, not read", f->sum.ticks_credited, FACT_PLAIN);
	add_loss(f, "ticks_late", "ticks late", f->sum.ticks_late, f->sum.ticks);
	add_loss(f, "ticks_missed", "ticks missed", f->sum.ticks_missed, f->sum.ticks + f->sum.ticks_missed);
	add_loss(f, "ticks_saved", "ticks left out (CPU budget)", f->sum.ticks_saved,
	         f->sum.ticks + f->sum.ticks_missed + f->sum.ticks_saved);
	add_count(f, "attempts", "samples tried", f->sum.attempts, FACT_PLAIN);
	add_count(f, "samples", "samples taken", f->sum.samples, FACT_PLAIN);
	add_losses(f);
	for (int i = 0; i < RETRY_CAUSES; i++)
		retries += f->sum.retries[i];
	add_count(f, "retries", "reads repeated (torn)", retries, FACT_PLAIN);
	add_count(f, "confirms", "reads repeated (new edge)", f->sum.confirms, FACT_PLAIN);
	add_count(f, "deferred", "samples taken a little later", f->sum.deferred, FACT_PLAIN);
	add_exact(f);
	add_loss(f, "truncated", "stacks truncated", f->sum.truncated, f->sum.samples);
	add_native(f);
	fact = add(f, "unsampled_ns", "thread time not sampled", (double)f->sum.unsampled_ns,
	           f->sum.unsampled_ns ? FACT_LOSS : FACT_GOOD);
	facts_time_text(time, sizeof(time), f->sum.unsampled_ns);
	facts_percent_text(share, sizeof(share), f->sum.unsampled_ns, due_ns);
	snprintf(fact->text, sizeof(fact->text), f->sum.unsampled_ns ? "%s (%s)" : "%s", time, share);
	add_count(f, "filtered", "left out by options", profile->filtered, FACT_PLAIN);
	add_count(f, "omitted", "left out by --omit", profile->omitted, FACT_PLAIN);
	add_loss(f, "out_of_memory", "left out, tree full", profile->out_of_memory, f->sum.samples);
}

/* What the shares of an import are of, where it is not samples. */
static void add_weight(struct facts *f, const struct profile *profile)
{
	enum value_index weight = profile_weight(profile);
	const struct value_type *type = &profile->values[weight];
	struct fact *fact;

	if (weight == VALUE_SAMPLES || (!profile->imported && profile_has(profile, VALUE_WALL)))
		return;
	fact = add(f, "weight", "shares are of", (double)profile_sum(profile, weight), FACT_PLAIN);
	snprintf(fact->text, sizeof(fact->text), "%.40s, in %.40s", type->name, type->unit);
}

/* What an import says of itself. */
static void add_notes(struct facts *f, const struct profile *profile)
{
	for (uint32_t i = 0; i < profile->note_count; i++) {
		const struct note *note = &profile->notes[i];
		bool good = note->number == 0;
		struct fact *fact = add(f, note->key, note->label, note->number,
		                        !note->loss ? FACT_PLAIN
		                        : good      ? FACT_GOOD
		                                    : FACT_LOSS);

		if (note->number >= 0 && note->number < 1e15 && note->number == (double)(uint64_t)note->number)
			facts_count_text(fact->text, sizeof(fact->text), (uint64_t)note->number);
		else
			snprintf(fact->text, sizeof(fact->text), "%.6g", note->number);
	}
}

void facts_make(struct facts *ret_facts, const struct profile *profile)
{
	struct facts *f = ret_facts;

	*f = (struct facts){.in_profile = profile_sum(profile, VALUE_SAMPLES), .covered = 1};
	profile_facts(profile, &f->sum);
	for (size_t i = 0; i < LOSS_CAUSES; i++)
		f->lost += f->sum.lost[i];
	f->duration_ns = profile->t_end_ns > profile->t_start_ns ? profile->t_end_ns - profile->t_start_ns : 0;
	f->asked_hz = profile->interval_ns ? (double)NS_PER_S / (double)profile->interval_ns : 0;
	f->reached_hz = reached_hz(profile);

	if (profile->imported && f->sum.attempts == 0) {
		if (f->duration_ns) {
			struct fact *fact = add(f, "duration_ns", "duration", (double)f->duration_ns, FACT_PLAIN);

			facts_time_text(fact->text, sizeof(fact->text), f->duration_ns);
		}
		add_count(f, "filtered", "left out by options", profile->filtered + profile->omitted, FACT_PLAIN);
		add_loss(f, "out_of_memory", "left out, tree full", profile->out_of_memory,
		         f->in_profile + profile->out_of_memory);
	} else {
		add_sampling(f, profile);
	}
	add_notes(f, profile);
	add_weight(f, profile);
	add_count(f, "in_profile", "samples in this profile", f->in_profile, FACT_PLAIN);
}
