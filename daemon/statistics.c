/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/statistics.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/utf8.h"
#include "daemon/error.h"
#include "daemon/load.h"
#include "exporters/native.h"

/* "Sat Nov 21 22:37:41 2026    profile.pstats", as pstats shows it. */
static void add_file(struct buf *to, const char *path)
{
	struct stat file;
	char text[32]; /* ctime_r(3) asks for 26 */

	if (strcmp(path, "-") != 0 && stat(path, &file) == 0 && ctime_r(&file.st_mtime, text))
		buf_printf(to, "%.24s    ", text);
	utf8_add_safe(to, strcmp(path, "-") == 0 ? "standard input" : path);
	buf_putc(to, '\n');
}

static int take_profile(struct statistics *s, const struct profile *profile, bool strip_dirs)
{
	struct profile *shown = NULL;
	int err;

	callgraph_init(&s->graph);
	s->graph.strip_dirs = strip_dirs;
	s->has_on_cpu = profile_has(profile, VALUE_CPU);
	s->has_gil = profile_has(profile, VALUE_GIL);
	err = native_needs_showing(profile) ? native_show(profile, &shown) : 0;
	if (!err)
		err = callgraph_add_profile(&s->graph, shown ? shown : profile);
	profile_free(shown);
	return err;
}

/* A call graph moves out of what was loaded. */
static int take_graph(struct statistics *s, struct loaded *loaded, bool strip_dirs)
{
	if (strip_dirs)
		return stats_strip_dirs(&s->graph, &loaded->graph);
	s->graph = loaded->graph;
	callgraph_init(&loaded->graph);
	return 0;
}

int statistics_read(struct statistics *ret_statistics, char *const *paths, int count, const struct filters *filters,
                    bool strip_dirs)
{
	struct statistics s = {0};
	struct loaded loaded;
	int err, status = load_all(&loaded, paths, count, filters, NEEDS_PROFILE);

	if (status != EXIT_DONE)
		return status;
	if (loaded.is_empty) {
		loaded_release(&loaded);
		return EXIT_FAILED;
	}
	err = loaded.profile ? take_profile(&s, loaded.profile, strip_dirs) : take_graph(&s, &loaded, strip_dirs);
	for (int i = 0; i < count && !err; i++)
		add_file(&s.files, paths[i]);
	if (!err)
		err = s.files.err;
	if (!err)
		err = stats_make(&s.stats, &s.graph);
	loaded_release(&loaded);
	if (err) {
		statistics_release(&s);
		error_note("cannot report: %s", strerror(-err));
		return EXIT_FAILED;
	}
	*ret_statistics = s;
	/* It pointed into what was moved. */
	ret_statistics->stats.graph = &ret_statistics->graph;
	return EXIT_DONE;
}

/* Functions are in no order when the graph has changed, as in pstats. */
static int remake(struct statistics *s)
{
	stats_release(&s->stats);
	return stats_make(&s->stats, &s->graph);
}

int statistics_add(struct statistics *s, const struct statistics *other)
{
	int err = callgraph_add(&s->graph, &other->graph);

	buf_add(&s->files, other->files.data, other->files.bytes);
	s->has_on_cpu |= other->has_on_cpu;
	s->has_gil |= other->has_gil;
	if (!err)
		err = s->files.err;
	return err ? err : remake(s);
}

int statistics_strip(struct statistics *s)
{
	struct callgraph stripped;
	int err = stats_strip_dirs(&stripped, &s->graph);

	if (err) {
		callgraph_release(&stripped);
		return err;
	}
	callgraph_release(&s->graph);
	s->graph = stripped;
	return remake(s);
}

void statistics_release(struct statistics *s)
{
	stats_release(&s->stats);
	callgraph_release(&s->graph);
	buf_release(&s->files);
	*s = (struct statistics){0};
}
