/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/stats_sort.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct word {
	const char *text;
	enum stats_key key;
};

/* In the order of pstats' sort_arg_dict_default: which abbreviations are unique depends on it. */
static const struct word words[] = {
	{"calls", STATS_CALLS},           {"ncalls", STATS_CALLS},    {"cumtime", STATS_CUMULATIVE},
	{"cumulative", STATS_CUMULATIVE}, {"filename", STATS_FILE},   {"line", STATS_LINE},
	{"module", STATS_FILE},           {"name", STATS_NAME},       {"nfl", STATS_NFL},
	{"pcalls", STATS_PCALLS},         {"stdname", STATS_STDNAME}, {"time", STATS_TIME},
	{"tottime", STATS_TIME},
};
/* Whole words only: they must not take an abbreviation from pstats'. samples and so on are those of 3.15 for sampled files. */
static const struct word own_words[] = {
	{"on_cpu", STATS_ON_CPU},  {"gil", STATS_GIL},         {"samples", STATS_CALLS},
	{"nsamples", STATS_CALLS}, {"psamples", STATS_PCALLS}, {"-1", STATS_STDNAME},
	{"0", STATS_CALLS},        {"1", STATS_TIME},          {"2", STATS_CUMULATIVE},
};

enum {
	WORDS = sizeof(words) / sizeof(words[0]),
	OWN_WORDS = sizeof(own_words) / sizeof(own_words[0]),
	OWN_LISTED = 2, /* of own_words, in lists of keys: the others are other words for the same */
};

static const char *const meanings[] = {
	[STATS_CALLS] = "call count",
	[STATS_CUMULATIVE] = "cumulative time",
	[STATS_FILE] = "file name",
	[STATS_LINE] = "line number",
	[STATS_NAME] = "function name",
	[STATS_NFL] = "name/file/line",
	[STATS_PCALLS] = "primitive call count",
	[STATS_STDNAME] = "standard name",
	[STATS_TIME] = "internal time",
	[STATS_ON_CPU] = "internal CPU time",
	[STATS_GIL] = "internal time holding the GIL",
};

static const char *meaning_of(enum stats_key key, bool from_samples)
{
	if (from_samples && key == STATS_CALLS)
		return "sample count";
	return from_samples && key == STATS_PCALLS ? "primitive sample count" : meanings[key];
}

const char *stats_word(size_t index, const char **ret_meaning)
{
	const struct word *word;

	if (index >= WORDS + OWN_LISTED)
		return NULL;
	word = index < WORDS ? &words[index] : &own_words[index - WORDS];
	*ret_meaning = meanings[word->key];
	return word->text;
}

size_t stats_own_words(void)
{
	return WORDS;
}

static size_t common_prefix(const char *a, const char *b)
{
	size_t bytes = 0;

	while (a[bytes] && a[bytes] == b[bytes])
		bytes++;
	return bytes;
}

/* Stats.get_sort_arg_defs(): every prefix of a word, shortened until an earlier word has it; that one stands for neither. */
static bool is_ambiguous(const char *text, size_t bytes)
{
	for (size_t i = 1; i < WORDS; i++) {
		size_t longest = 0;

		for (size_t j = 0; j < i; j++) {
			size_t common = common_prefix(words[i].text, words[j].text);

			longest = common > longest ? common : longest;
		}
		if (longest == bytes && strncmp(words[i].text, text, bytes) == 0)
			return true;
	}
	return false;
}

int stats_order_add(struct stats_order *order, const char *text, size_t bytes)
{
	const struct word *found = NULL;
	bool ambiguous = bytes > 0 && is_ambiguous(text, bytes);

	for (size_t i = 0; i < WORDS && !found && bytes > 0 && !ambiguous; i++)
		if (strncmp(words[i].text, text, bytes) == 0)
			found = &words[i];
	for (size_t i = 0; i < OWN_WORDS && !found; i++)
		if (strlen(own_words[i].text) == bytes && memcmp(own_words[i].text, text, bytes) == 0)
			found = &own_words[i];
	if (!found)
		return ambiguous ? -ENOTUNIQ : -ENOENT;
	if (order->count == STATS_KEYS_MAX)
		return -E2BIG;
	order->keys[order->count++] = found->key;
	return 0;
}

struct sorting {
	const struct stats *stats;
	const struct stats_order *order;
};

/* Not a number comes last, so that there is one order. */
static int compare_times(double a, double b)
{
	if (isnan(a) || isnan(b))
		return (isnan(a) != 0) - (isnan(b) != 0);
	return (a < b) - (a > b);
}

static int compare_counts(int64_t a, int64_t b)
{
	return (a < b) - (a > b);
}

static int compare_by(const struct stats *s, enum stats_key key, uint32_t left, uint32_t right)
{
	const struct callgraph_function *a = &s->graph->functions[left], *b = &s->graph->functions[right];
	int order;

	switch (key) {
	case STATS_CALLS:
		return compare_counts(a->sums.calls, b->sums.calls);
	case STATS_PCALLS:
		return compare_counts(a->sums.primitive_calls, b->sums.primitive_calls);
	case STATS_CUMULATIVE:
		return compare_times(a->sums.total_s, b->sums.total_s);
	case STATS_TIME:
		return compare_times(a->sums.self_s, b->sums.self_s);
	case STATS_ON_CPU:
		return compare_counts((int64_t)a->cpu_ns, (int64_t)b->cpu_ns);
	case STATS_GIL:
		return compare_counts((int64_t)a->gil_ns, (int64_t)b->gil_ns);
	case STATS_FILE:
		return stats_compare_files(s, left, right);
	case STATS_LINE:
		return (a->line > b->line) - (a->line < b->line);
	case STATS_NAME:
		return stats_compare_function_names(s, left, right);
	case STATS_STDNAME:
		return stats_compare_names(s, left, right);
	case STATS_NFL:
		order = stats_compare_function_names(s, left, right);
		return order ? order : stats_compare_functions(s, left, right);
	}
	return 0;
}

static int compare(const void *left, const void *right, void *context)
{
	const struct sorting *sorting = context;
	const struct callgraph_function *functions = sorting->stats->graph->functions;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	for (size_t i = 0; i < sorting->order->count; i++) {
		int order = compare_by(sorting->stats, sorting->order->keys[i], a, b);

		if (order)
			return order;
	}
	/* What is equal stays in the profile's order. */
	return (functions[a].entry > functions[b].entry) - (functions[a].entry < functions[b].entry);
}

int stats_sort(struct stats *s, const struct stats_order *order)
{
	struct sorting sorting = {.stats = s, .order = order};

	s->order.bytes = 0;
	for (size_t i = 0; i < order->count; i++) {
		if (i > 0)
			buf_puts(&s->order, ", ");
		buf_puts(&s->order, meaning_of(order->keys[i], s->graph->from_samples));
	}
	s->is_sorted = order->count > 0;
	qsort_r(s->listing, s->count, sizeof(*s->listing), compare, &sorting);
	return s->order.err;
}

void stats_reverse(struct stats *s)
{
	for (uint32_t i = 0; s->is_sorted && i < s->count / 2; i++) {
		uint32_t other = s->listing[s->count - 1 - i];

		s->listing[s->count - 1 - i] = s->listing[i];
		s->listing[i] = other;
	}
}
