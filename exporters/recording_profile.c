/* SPDX-License-Identifier: Apache-2.0 */
/* A profile with runs as a recording: its records are made once more, in the order of time, and given to the writer that sampling uses; stacks
 * as nodes of trees, each of which is looked up once. Of a profile's values a recording has what samples have: their number, weight and
 * status; and the CPU time. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/tempfile.h"
#include "exporters/formats.h"
#include "exporters/recording.h"

/* In place of a stack's number: there are more frames than we sample. It is a foreign one, and left out. */
#define TOO_DEEP UINT32_MAX

struct replay {
	const struct profile *profile;
	struct recording_writer *to;
	struct tally tally;
	uint8_t *known;   /* of each symbol: it was defined */
	uint32_t *stacks; /* of each node of each thread: the number in the file; 0: none yet, or TOO_DEEP */
	size_t *first;    /* of each thread: where its nodes begin in stacks; behind them, how many there are */
	uint32_t *path;   /* nodes without a number, from the innermost out; room for REC_DEPTH_MAX */
	size_t *next;     /* of each thread: the next run */
	uint32_t *heap;   /* threads with runs left, the one with the earliest on top */
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
	if (r->known[index])
		return;
	r->known[index] = 1;
	recording_writer_symbol(r->to, index + 1, &r->profile->symbols[index]);
}

static void forget_stacks(struct replay *r)
{
	memset(r->stacks, 0, r->first[r->profile->thread_count] * sizeof(*r->stacks));
}

/* The nodes between this one and the next with a number, or the root: how many; TOO_DEEP. The depth of that one is not known, so all are counted. */
static uint32_t path_to(struct replay *r, const struct thread_tree *tree, const uint32_t *stacks, uint32_t node)
{
	const struct node *nodes = tree->nodes;
	uint32_t count = 0, depth = 0;

	for (uint32_t at = node; at; at = nodes[at].parent)
		if (++depth > REC_DEPTH_MAX)
			return TOO_DEEP;
	for (uint32_t at = node; at && !stacks[at]; at = nodes[at].parent)
		r->path[count++] = at;
	return count;
}

/* The number of a node that has none yet. */
static uint32_t number_node(struct replay *r, const struct thread_tree *tree, uint32_t *stacks, uint32_t node)
{
	uint32_t count = path_to(r, tree, stacks, node), stack;

	if (count == TOO_DEEP)
		return stacks[node] = TOO_DEEP;
	if (!recording_writer_make_room(r->to, count)) {
		forget_stacks(r);
		count = path_to(r, tree, stacks, node);
	}
	stack = count ? stacks[tree->nodes[r->path[count - 1]].parent] : 0;
	while (count > 0) {
		uint32_t at = r->path[--count], symbol = tree->nodes[at].symbol;

		give_symbol(r, symbol);
		stack = recording_writer_stack(
			r->to, stack, frame_make(r->profile->symbols[symbol].kind, symbol + 1, tree->nodes[at].line));
		stacks[at] = stack;
	}
	return stack;
}

static void give_run(struct replay *r, uint32_t thread, const struct run *run)
{
	uint32_t *stacks = r->stacks + r->first[thread], stack = stacks[run->node];
	struct rec_stack record = {.thread = thread + 1,
	                           .count = run->count,
	                           .t_first_ns = run->t_first_ns,
	                           .t_last_ns = run->t_first_ns + run->span_ns,
	                           .weight_ns = run->weight_ns,
	                           .status = run->status};

	if (!stack && run->node)
		stack = number_node(r, &r->profile->threads[thread], stacks, run->node);
	if (stack != TOO_DEEP)
		recording_writer_run(r->to, &record, stack);
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

/* CPU time, which the profile has by stack, and not by time. */
static void give_times(struct replay *r, uint32_t thread)
{
	const struct thread_tree *tree = &r->profile->threads[thread];
	uint32_t *stacks = r->stacks + r->first[thread];

	for (uint32_t i = 0; i < tree->node_count && !recording_writer_error(r->to); i++) {
		const uint64_t *self = tree->nodes[i].self;
		uint32_t stack = stacks[i];

		if (self[VALUE_CPU] == 0 && self[VALUE_RUN_WAIT] == 0)
			continue;
		if (!stack && i)
			stack = number_node(r, tree, stacks, i);
		if (stack != TOO_DEEP)
			recording_writer_stack_time(r->to, thread + 1, stack, self[VALUE_CPU], self[VALUE_RUN_WAIT]);
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
	for (uint32_t i = 0; profile_has(profile, VALUE_CPU) && i < profile->thread_count; i++)
		give_times(r, i);
	for (uint32_t i = 0; i < profile->process_count; i++) {
		give_facts(r, i);
		if (profile->processes[i].ended)
			give_process(r, i, TARGET_EXITED);
	}
}

static enum sample_mode mode_of(const struct profile *profile)
{
	const char *mode = profile->mode ? profile->mode : "wall";

	for (unsigned i = 0; i < SAMPLE_MODES; i++)
		if (strcmp(mode, sample_mode_names[i]) == 0)
			return (enum sample_mode)i;
	return MODE_WALL;
}

static bool make_stacks(struct replay *r)
{
	uint32_t count = r->profile->thread_count;

	for (uint32_t i = 0; i < count; i++)
		r->first[i + 1] = r->first[i] + r->profile->threads[i].node_count;
	r->stacks = calloc(r->first[count] + 1, sizeof(*r->stacks));
	return r->stacks != NULL;
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
	r->first = calloc(profile->thread_count + (size_t)1, sizeof(*r->first));
	r->path = calloc(REC_DEPTH_MAX, sizeof(*r->path));
	if (r->known && r->next && r->heap && r->record && r->first && r->path && make_stacks(r)) {
		give_all(r);
		if (profile->named)
			recording_writer_names(r->to, profile, named_of_profile, NULL);
		err = recording_writer_finish(r->to, &r->tally);
	} else {
		err = -ENOMEM;
	}
	recording_writer_free(r->to);
	free(r->known);
	free(r->next);
	free(r->heap);
	free(r->record);
	free(r->first);
	free(r->stacks);
	free(r->path);
	return err;
}

int recording_write(const struct profile *profile, const struct export_options *options, struct writer *to)
{
	struct replay r = {.profile = profile,
	                   .tally = {.filtered = profile->filtered,
	                             .omitted = profile->omitted,
	                             .out_of_memory = profile->out_of_memory,
	                             .left_out = profile->left_out,
	                             .malformed_samples = profile->malformed_samples,
	                             .malformed_records = profile->malformed_records,
	                             .attached_ns = profile->t_start_ns,
	                             .first_ns = profile->t_start_ns,
	                             .last_ns = profile->t_end_ns}};
	/* The writer of recordings wants a file of its own. */
	int fd = tempfile_open(NULL), err = fd < 0 ? fd : record_profile(&r, fd);
	char piece[16384];
	ssize_t got = 0;

	(void)options;
	for (off_t off = 0; !err && (got = pread(fd, piece, sizeof(piece), off)) > 0; off += got)
		writer_add(to, piece, (size_t)got);
	if (!err && got < 0)
		err = -errno;
	if (fd >= 0)
		close(fd);
	if (err)
		writer_fail(to, err);
	return to->err;
}
