/* SPDX-License-Identifier: Apache-2.0 */
/* A profile with runs as a recording: its records are made once more, in the order of time, and given to the writer that sampling uses. Of a
 * profile's values a recording has what samples have: their number, weight and status. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exporters/formats.h"
#include "exporters/recording.h"

struct replay {
	const struct profile *profile;
	struct recording_writer *to;
	struct tally tally;
	uint8_t *known;    /* of each symbol: it was defined */
	uint32_t **depths; /* of each thread: of its nodes, 1 below the root */
	uint32_t *last;    /* of each thread: the node of its last record */
	size_t *next;      /* of each thread: the next run */
	uint32_t *heap;    /* threads with runs left, the one with the earliest on top */
	uint32_t heap_count;
	uint64_t *record; /* room for the longest one */
};

static void give(struct replay *r, void *record, uint32_t type, uint64_t bytes)
{
	static const struct record_fate counted = {.counted = true};
	struct rec_head *head = record;

	memset((char *)record + bytes, 0, rec_round(bytes) - bytes);
	head->bytes = rec_round(bytes);
	head->type = type;
	recording_writer_take(r->to, head, &counted, &r->tally);
}

static uint32_t bounded(const char *text, uint32_t most)
{
	return text ? (uint32_t)strnlen(text, most) : 0;
}

static void give_process(struct replay *r, uint32_t index, enum target_event event)
{
	const struct process *process = &r->profile->processes[index];
	struct rec_target *record = (struct rec_target *)r->record;

	*record = (struct rec_target){.id = index + 1,
	                              .event = event,
	                              .t_ns = event == TARGET_ATTACHED ? r->profile->t_start_ns : r->profile->t_end_ns,
	                              .pid = process->pid,
	                              .parent_pid = process->parent_pid,
	                              .start_time = process->start_time,
	                              .version = process->version,
	                              .name_bytes = bounded(process->name, REC_TEXT_MAX)};
	memcpy(record->text, process->name ? process->name : "", record->name_bytes);
	give(r, record, REC_TARGET, sizeof(*record) + record->name_bytes);
}

static void give_facts(struct replay *r, uint32_t index)
{
	struct rec_facts *record = (struct rec_facts *)r->record;

	*record = r->profile->processes[index].facts;
	record->target = index + 1;
	give(r, record, REC_FACTS, sizeof(*record));
}

static void give_thread(struct replay *r, uint32_t index)
{
	const struct thread_tree *tree = &r->profile->threads[index];
	struct rec_thread *record = (struct rec_thread *)r->record;

	*record = (struct rec_thread){.id = index + 1,
	                              .target = tree->process + 1,
	                              .interpreter = tree->interpreter,
	                              .tid = tree->tid,
	                              .flags = tree->is_main ? THREAD_MAIN : 0,
	                              .name_bytes = bounded(tree->name, REC_TEXT_MAX)};
	memcpy(record->text, tree->name ? tree->name : "", record->name_bytes);
	give(r, record, REC_THREAD, sizeof(*record) + record->name_bytes);
}

static void give_symbol(struct replay *r, uint32_t index)
{
	const struct symbol *symbol = &r->profile->symbols[index];
	struct rec_symbol *record = (struct rec_symbol *)r->record;

	if (r->known[index])
		return;
	r->known[index] = 1;
	*record = (struct rec_symbol){.id = index + 1,
	                              .kind = symbol->kind,
	                              .first_line = symbol->first_line,
	                              .name_bytes = bounded(symbol->name, REC_TEXT_MAX),
	                              .file_bytes = bounded(symbol->file, REC_TEXT_MAX),
	                              .flags = symbol->flags};
	memcpy(record->text, symbol->name, record->name_bytes);
	memcpy(record->text + record->name_bytes, symbol->file, record->file_bytes);
	give(r, record, REC_SYMBOL, sizeof(*record) + record->name_bytes + record->file_bytes);
}

/* How many frames two stacks of a thread share, from the root on. */
static uint32_t shared_frames(const struct node *nodes, const uint32_t *depths, uint32_t a, uint32_t b)
{
	while (a != b) {
		if (depths[a] >= depths[b])
			a = nodes[a].parent;
		else
			b = nodes[b].parent;
	}
	return depths[a];
}

static void give_run(struct replay *r, uint32_t thread, const struct run *run)
{
	const struct node *nodes = r->profile->threads[thread].nodes;
	const uint32_t *depths = r->depths[thread];
	struct rec_stack *record = (struct rec_stack *)r->record;
	uint32_t depth, shared, at;

	if (!depths || depths[run->node] > REC_DEPTH_MAX) /* deeper than we sample: a foreign one */
		return;
	depth = depths[run->node];
	shared = shared_frames(nodes, depths, r->last[thread], run->node);
	for (at = run->node; depths[at] > shared; at = nodes[at].parent)
		give_symbol(r, nodes[at].symbol);
	*record = (struct rec_stack){.thread = thread + 1,
	                             .count = run->count,
	                             .t_first_ns = run->t_first_ns,
	                             .t_last_ns = run->t_first_ns + run->span_ns,
	                             .weight_ns = profile_has(r->profile, VALUE_WALL) ? run->weight_ns : 0,
	                             .status = run->status,
	                             .depth = depth,
	                             .shared = shared};
	for (at = run->node; depths[at] > shared; at = nodes[at].parent)
		record->frames[depths[at] - shared - 1] =
			frame_make(r->profile->symbols[nodes[at].symbol].kind, nodes[at].symbol + 1, nodes[at].line);
	give(r, record, REC_STACK, sizeof(*record) + (depth - shared) * sizeof(record->frames[0]));
	r->last[thread] = run->node;
}

/* --- the runs of all threads, by time --- */

static uint64_t time_of(const struct replay *r, uint32_t thread)
{
	return r->profile->threads[thread].runs[r->next[thread]].t_first_ns;
}

static bool is_earlier(const struct replay *r, uint32_t a, uint32_t b)
{
	uint64_t a_ns = time_of(r, a), b_ns = time_of(r, b);

	return a_ns != b_ns ? a_ns < b_ns : a < b;
}

static void sift_down(struct replay *r, uint32_t at)
{
	for (;;) {
		uint32_t child = 2 * at + 1, thread = r->heap[at];

		if (child + 1 < r->heap_count && is_earlier(r, r->heap[child + 1], r->heap[child]))
			child++;
		if (child >= r->heap_count || !is_earlier(r, r->heap[child], thread))
			return;
		r->heap[at] = r->heap[child];
		r->heap[child] = thread;
		at = child;
	}
}

static void give_runs(struct replay *r)
{
	const struct profile *profile = r->profile;

	for (uint32_t i = 0; i < profile->thread_count; i++)
		if (profile->threads[i].run_count > 0)
			r->heap[r->heap_count++] = i;
	for (uint32_t i = r->heap_count; i-- > 0;)
		sift_down(r, i);
	while (r->heap_count > 0 && !recording_writer_error(r->to)) {
		uint32_t thread = r->heap[0];

		give_run(r, thread, &profile->threads[thread].runs[r->next[thread]++]);
		if (r->next[thread] == profile->threads[thread].run_count)
			r->heap[0] = r->heap[--r->heap_count];
		sift_down(r, 0);
	}
}

static void give_all(struct replay *r)
{
	const struct profile *profile = r->profile;

	for (uint32_t i = 0; i < profile->process_count; i++)
		give_process(r, i, TARGET_ATTACHED);
	for (uint32_t i = 0; i < profile->thread_count; i++)
		give_thread(r, i);
	give_runs(r);
	for (uint32_t i = 0; i < profile->process_count; i++) {
		give_facts(r, i);
		if (profile->processes[i].ended)
			give_process(r, i, TARGET_EXITED);
	}
}

static enum sample_mode mode_of(const struct profile *profile)
{
	const char *mode = profile->mode ? profile->mode : "wall";

	return strcmp(mode, "cpu") == 0 ? MODE_CPU : strcmp(mode, "gil") == 0 ? MODE_GIL : MODE_WALL;
}

static bool find_depths(struct replay *r)
{
	for (uint32_t i = 0; i < r->profile->thread_count; i++) {
		const struct thread_tree *tree = &r->profile->threads[i];

		r->depths[i] = calloc(tree->node_count, sizeof(*r->depths[i]));
		if (!r->depths[i])
			return false;
		for (uint32_t n = 1; n < tree->node_count; n++)
			r->depths[i][n] = r->depths[i][tree->nodes[n].parent] + 1;
	}
	return true;
}

static int record_profile(struct replay *r, int fd)
{
	const struct profile *profile = r->profile;
	struct recording_options options = {.interval_ns = profile->interval_ns,
	                                    .mode = mode_of(profile),
	                                    .realtime_offset_ns = profile->wall_start_ns - profile->t_start_ns,
	                                    .pack = true};
	int err = recording_writer_new(&r->to, fd, &options);

	if (err)
		return err;
	r->known = calloc(profile->symbol_count + (size_t)1, 1);
	r->next = calloc(profile->thread_count + (size_t)1, sizeof(*r->next));
	r->heap = calloc(profile->thread_count + (size_t)1, sizeof(*r->heap));
	r->record = malloc(REC_BYTES_MAX);
	r->depths = calloc(profile->thread_count + (size_t)1, sizeof(*r->depths));
	r->last = calloc(profile->thread_count + (size_t)1, sizeof(*r->last));
	if (r->known && r->next && r->heap && r->record && r->depths && r->last && find_depths(r)) {
		give_all(r);
		err = recording_writer_finish(r->to, &r->tally);
	} else {
		err = -ENOMEM;
	}
	recording_writer_free(r->to);
	free(r->known);
	free(r->next);
	free(r->heap);
	free(r->record);
	for (uint32_t i = 0; r->depths && i < profile->thread_count; i++)
		free(r->depths[i]);
	free(r->depths);
	free(r->last);
	return err;
}

/* The writer of recordings wants a file of its own. */
static int temporary_file(void)
{
	const char *folder = getenv("TMPDIR");
	int fd = open(folder && folder[0] == '/' ? folder : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		fd = memfd_create("recording", MFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int recording_write(const struct profile *profile, const struct export_options *options, struct writer *to)
{
	struct replay r = {.profile = profile,
	                   .tally = {.filtered = profile->filtered,
	                             .omitted = profile->omitted,
	                             .out_of_memory = profile->out_of_memory,
	                             .malformed_samples = profile->malformed_samples,
	                             .malformed_records = profile->malformed_records,
	                             .attached_ns = profile->t_start_ns,
	                             .first_ns = profile->t_start_ns,
	                             .last_ns = profile->t_end_ns}};
	int fd = temporary_file(), err = fd < 0 ? fd : record_profile(&r, fd);
	char piece[16384];
	ssize_t got = 0;

	(void)options;
	for (off_t off = 0; !err && (got = pread(fd, piece, sizeof(piece), off)) > 0; off += got)
		writer_add(to, piece, (size_t)got);
	if (!err && got < 0)
		err = -errno;
	if (fd >= 0)
		close(fd);
	if (err && !to->err)
		to->err = err;
	return to->err;
}
