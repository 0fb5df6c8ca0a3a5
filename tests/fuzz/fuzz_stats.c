/* SPDX-License-Identifier: Apache-2.0 */
/* A line, and any bytes behind it as a pstats file: every table of it, restricted by the words of the line and sorted by its letters. What is
 * printed for a terminal holds nothing that a terminal obeys. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/stats_sort.h"
#include "exporters/stats_tables.h"
#include "tests/fuzz/common.h"

enum { LIMITS_MAX = 4, LINE_MAX_BYTES = 64 };

static void sort(struct stats *stats, const char *line)
{
	struct stats_order order = {0};
	const char *meaning;
	size_t words = 0;

	while (stats_word(words, &meaning))
		words++;
	for (; *line && order.count < STATS_KEYS_MAX; line++) {
		const char *word = stats_word((unsigned char)*line % words, &meaning);

		expect(stats_order_add(&order, word, strlen(word)) == 0);
	}
	expect(stats_sort(stats, &order) == 0);
	stats_reverse(stats);
}

static void print(const struct stats_view *view)
{
	static struct writer to;
	size_t bytes;
	char *text;

	fuzz_memory(&to);
	expect(stats_print(view, &to) == 0 && stats_print_calls(view, true, &to) == 0 &&
	       stats_print_calls(view, false, &to) == 0);
	text = fuzz_written(&to, &bytes);
	for (size_t i = 0; i < bytes; i++)
		expect(text[i] == '\n' || ((unsigned char)text[i] >= 0x20 && text[i] != 0x7f));
	free(text);
	fuzz_memory(&to);
	expect(stats_write_json(view, STATS_CALLERS | STATS_CALLEES, &to) == 0 && stats_write_csv(view, 0, &to) == 0 &&
	       stats_write_csv(view, STATS_CALLEES, &to) == 0);
	free(fuzz_written(&to, &bytes));
}

static void show(const struct callgraph *graph, const char *line, struct stats_limit *limits, size_t limit_count)
{
	struct stats stats;

	expect(stats_make(&stats, graph) == 0);
	sort(&stats, line);
	print(&(struct stats_view){
		.stats = &stats, .limits = limits, .limit_count = limit_count, .files = "", .on_cpu = true});
	stats_release(&stats);
}

/* Repetitions of a number of times, and many of "+", one around the other: of these the C library makes as many copies, or twice as many each
 * time. Patterns are the user's own. */
static bool is_costly(const char *word)
{
	unsigned pluses = 0;

	for (const char *at = word; *at; at++)
		pluses += *at == '+';
	return pluses > 6 || (strchr(word, '{') && strpbrk(word, "0123456789"));
}

/* The words of a line as restrictions. */
static size_t read_limits(char *line, struct stats_limit *limits)
{
	size_t count = 0;
	char *word;

	while (count < LIMITS_MAX && (word = strsep(&line, " ")) != NULL) {
		if (is_costly(word))
			continue;
		(void)stats_limit_read(&limits[count++], word);
	}
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const uint8_t *end = memchr(data, '\n', bytes < LINE_MAX_BYTES ? bytes : LINE_MAX_BYTES);
	struct stats_limit limits[LIMITS_MAX];
	struct callgraph graph, stripped;
	char line[LINE_MAX_BYTES + 1] = "";
	size_t limit_count;

	if (!end)
		return 0;
	memcpy(line, data, (size_t)(end - data));
	if (fuzz_read_callgraph(&graph, "pstats", end + 1, bytes - (size_t)(end + 1 - data)) == 0) {
		char words[sizeof(line)];

		memcpy(words, line, sizeof(line));
		limit_count = read_limits(words, limits);
		show(&graph, line, limits, limit_count);
		expect(stats_strip_dirs(&stripped, &graph) == 0);
		expect(stripped.entry_count <= graph.entry_count);
		show(&stripped, line, limits, limit_count);
		callgraph_release(&stripped);
		for (size_t i = 0; i < limit_count; i++)
			stats_limit_release(&limits[i]);
	}
	callgraph_release(&graph);
	return 0;
}
