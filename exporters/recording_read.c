/* SPDX-License-Identifier: Apache-2.0 */
/* The recording's reader: items of blocks into a builder. docs/RECORDING.md has the format.
 *
 * A stack's node in a thread's tree is looked up once: each thread keeps, in pages that are made as they are needed, which node a stack's number
 * stands for. So a run costs a few loads, however deep its stack is. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/recording_reader.h"

/* --- the session and what was counted --- */

static bool read_session(struct reader *r, struct cursor *c)
{
	struct profile *p = builder_profile(r->to);
	uint64_t unit_ns = take_u(c), interval_units, mode;

	p->interval_ns = take_u(c);
	interval_units = take_u(c);
	mode = take_u(c);
	r->realtime_offset_ns = (uint64_t)take_s(c);
	if (c->bad || r->has_session || unit_ns == 0 || unit_ns > NS_PER_S ||
	    interval_units >> RECORDING_INTERVAL_BITS || mode >= SAMPLE_MODES)
		return false;
	p->mode = sample_mode_names[mode];
	r->unit_ns = (int64_t)unit_ns;
	r->interval_units = (int64_t)interval_units;
	r->has_session = true;
	return true;
}

/* Fields that a later version may have more of, each as its difference from before. */
static bool read_fields(struct cursor *c, uint64_t *fields, unsigned known)
{
	uint64_t count = take_u(c);

	for (uint64_t i = 0; i < count && !c->bad; i++) {
		uint64_t difference = (uint64_t)take_s(c);

		if (i < known)
			fields[i] += difference;
	}
	return !c->bad;
}

static bool read_facts(struct reader *r, struct cursor *c)
{
	struct read_process *process = process_at(r, take_u(c));

	if (!process || !read_fields(c, process->facts, FACTS_FIELDS))
		return false;
	process->has_facts = true;
	process->samples_since = process->runs_since = 0;
	return reader_window_facts(r, process);
}

static bool read_mark(struct reader *r, struct cursor *c)
{
	uint64_t sequence = take_u(c), t_ns = take_u(c);

	if (!c->bad && r->until && sequence == r->until) {
		r->at_mark = true;
		r->mark_ns = t_ns;
	}
	return !c->bad;
}

/* --- all of it --- */

static bool read_item(struct reader *r, unsigned type)
{
	struct cursor *from = &r->blocks.columns[COLUMN_ITEMS];
	size_t bytes;
	const char *body = take_text(from, &bytes);
	struct cursor c = {.at = (const unsigned char *)body, .end = (const unsigned char *)body + bytes};

	if (from->bad)
		return false;
	switch ((enum item)type) {
	case ITEM_SESSION:
		return read_session(r, &c);
	case ITEM_SYMBOL:
		return reader_symbol(r, &c);
	case ITEM_STACK:
		return reader_stack(r, &c);
	case ITEM_TARGET:
		return reader_target(r, &c);
	case ITEM_THREAD:
		return reader_thread(r, &c);
	case ITEM_FACTS:
		return read_facts(r, &c);
	case ITEM_TALLY:
		return read_fields(&c, r->tally, TALLY_FIELDS);
	case ITEM_CLOCK:
		r->base_ns = take_u(&c);
		if (!c.bad)
			builder_set_start(r->to, r->base_ns);
		return !c.bad;
	case ITEM_MARK:
		return read_mark(r, &c);
	case ITEM_REST:
		return reader_rest(r, &c);
	case ITEM_TIME:
		return reader_time(r, &c);
	case ITEM_STACK_TIME:
		return reader_stack_time(r, &c);
	case ITEM_RESET:
		return reader_begin_tables(r);
	case ITEM_MAPPING:
		return reader_mapping(r, &c);
	case ITEM_FRAME:
		return reader_frame(r, &c);
	case ITEM_NAMED:
		return reader_named(r, &c);
	case ITEM_END:
		r->ended = true;
		return true;
	default:
		return true; /* of a later version: passed over */
	}
}

static bool read_block(struct reader *r)
{
	struct cursor *items = &r->blocks.columns[COLUMN_ITEMS];

	while (items->at < items->end && !r->at_mark) {
		unsigned tag = *items->at++;

		if (!(tag & ITEM_RUN ? reader_run(r, tag) : read_item(r, tag)))
			return false;
	}
	return true;
}

static struct rec_facts facts_of(const struct read_process *process)
{
	struct rec_facts facts = {0};

	memcpy((char *)&facts + 16, process->facts, sizeof(process->facts));
	return facts;
}

static void set_times(struct reader *r)
{
	struct profile *p = builder_profile(r->to);
	uint64_t attached_ns = r->tally[5], first_ns = r->tally[6], last_ns = r->tally[7], from_ns, to_ns,
		 start_ns, last_facts_ns = 0;

	for (uint32_t i = 0; i < COUNT(r->processes, struct read_process); i++) {
		struct rec_facts facts = facts_of(process_at(r, i));

		if (facts.t_start_ns && (first_ns == 0 || facts.t_start_ns < first_ns))
			first_ns = facts.t_start_ns;
		last_facts_ns = facts.t_last_ns > last_facts_ns ? facts.t_last_ns : last_facts_ns;
	}
	first_ns = first_ns ? first_ns : r->base_ns ? r->base_ns : attached_ns;
	last_ns = last_ns < last_facts_ns ? last_facts_ns : last_ns;
	if (!r->ended &&
	    last_ns < r->run_last_ns) /* cut off: the last facts and tally do not know of the last runs yet */
		last_ns = r->run_last_ns;
	last_ns = r->mark_ns ? r->mark_ns : last_ns;
	last_ns = last_ns > first_ns ? last_ns : first_ns;
	builder_window(r->to, &from_ns, &to_ns);
	/* A window is counted from the first run on, as its samples are. */
	start_ns = r->base_ns > first_ns ? r->base_ns : first_ns;
	if (to_ns && start_ns + to_ns < last_ns)
		last_ns = start_ns + to_ns;
	start_ns = from_ns ? start_ns + from_ns : first_ns;
	p->t_start_ns = start_ns < last_ns ? start_ns : last_ns;
	p->t_end_ns = last_ns;
	p->wall_start_ns = p->t_start_ns + r->realtime_offset_ns;
}

/* A part of the time that was left out while sampling, which is not in the file. */
static void add_left_out(struct reader *r, uint64_t part, uint64_t whole)
{
	struct left_out *to = &builder_profile(r->to)->left_out;

	to->wall += (uint64_t)((unsigned __int128)r->tally[8] * part / whole);
	to->cpu += (uint64_t)((unsigned __int128)r->tally[9] * part / whole);
	to->run_wait += (uint64_t)((unsigned __int128)r->tally[10] * part / whole);
}

/* What was left out while sampling is not in the file, and so told by the facts alone. */
static void set_window_samples(struct reader *r, const struct read_process *from, struct rec_facts *facts)
{
	struct profile *p = builder_profile(r->to);
	uint64_t left_out = r->tally[0] + r->tally[1] && facts->samples > from->window_samples
	                            ? facts->samples - from->window_samples
	                            : 0;

	p->filtered += left_out;
	if (left_out)
		add_left_out(r, left_out, r->tally[0] + r->tally[1]);
	facts->samples = from->window_samples + left_out;
	facts->attempts = facts->samples;
	for (int i = 0; i < LOSS_CAUSES; i++)
		facts->attempts += facts->lost[i];
}

static void set_facts(struct reader *r)
{
	struct profile *p = builder_profile(r->to);

	for (uint32_t i = 0; i < COUNT(r->processes, struct read_process); i++) {
		struct read_process *from = process_at(r, i);
		struct rec_facts facts;

		if (from->process >= p->process_count)
			continue;
		reader_window_cut(r, from);
		facts = facts_of(from);
		/* Of a recording that is cut off, the last facts do not know of the last samples yet. */
		if (builder_has_window(r->to)) {
			set_window_samples(r, from, &facts);
		} else {
			facts.samples += from->samples_since;
			facts.attempts += from->samples_since;
			facts.runs += from->runs_since;
		}
		if (!from->has_facts && from->samples_since)
			facts.interval_ns = p->interval_ns;
		if (!p->processes[from->process].facts.interval_ns)
			p->processes[from->process].facts.interval_ns = facts.interval_ns;
		rec_facts_add(&p->processes[from->process].facts, &facts);
	}
	if (builder_has_window(r->to)) {
		p->filtered -= builder_outside(r->to);
		return;
	}
	p->filtered += r->tally[0];
	p->omitted += r->tally[1];
	p->out_of_memory += r->tally[2];
	add_left_out(r, 1, 1);
	p->malformed_samples += r->tally[3];
	p->malformed_records += r->tally[4];
}

/* Where no run weighs anything, as in an import that only counts, shares are of samples: then they are the only value. */
static void set_values(const struct reader *r)
{
	if (r->run_count > 0 && !r->has_weight)
		return;
	for (uint32_t i = 0; i < (r->has_time ? VALUE_COUNT : VALUE_CPU); i++)
		builder_value(r->to, profile_value_types[i].name, profile_value_types[i].unit, (enum value_index)i);
}

/* How it ended. 0 with *fault filled: what was before is there. */
static int tell_end(struct reader *r, enum block_state state, struct fault *fault)
{
	char label[160];

	if (state == BLOCK_NO_MORE && r->ended)
		return 0;
	if (state == BLOCK_DAMAGED) {
		fault_set(fault, -EPROTO, r->run_count ? "what is before it was read" : "",
		          "block %" PRIu64 ", at byte %" PRIu64 ", is damaged", r->blocks.number, r->blocks.start_byte);
		if (r->run_count == 0)
			return -EPROTO;
		snprintf(label, sizeof(label), "read up to a damaged block, of number %" PRIu64 ", at byte",
		         r->blocks.number);
		builder_note(r->to, "damaged_at_byte", label, (double)r->blocks.start_byte, true);
		return 0;
	}
	fault_set(fault, 0, "what was written before is read",
	          "it was not ended: cut off behind block %" PRIu64 ", at byte %" PRIu64, r->blocks.number - 1,
	          r->blocks.start_byte);
	builder_note(r->to, "cut_at_byte", "the recording was not ended: cut off at byte", (double)r->blocks.start_byte,
	             true);
	return 0;
}

static int read_all(struct reader *r, struct fault *fault)
{
	enum block_state state = BLOCK_GOOD;
	int err = 0;

	reader_begin_tables(r);
	while (state == BLOCK_GOOD && !r->at_mark && !builder_error(r->to)) {
		state = block_next(&r->blocks, &err, fault);
		if (state == BLOCK_GOOD && !read_block(r))
			state = BLOCK_DAMAGED;
	}
	if (builder_error(r->to))
		return fault_set(fault, builder_error(r->to), "", "%s", strerror(-builder_error(r->to)));
	if (state == BLOCK_ERROR)
		return err;
	if (r->until && !r->at_mark)
		return fault_set(fault, -EPROTO, "", "its mark %" PRIu64 " is missing", r->until);
	err = r->at_mark ? 0 : tell_end(r, state, fault);
	for (uint32_t i = 0; i < r->thread_count; i++)
		reader_drop_if_excluded(r, &r->threads[i]);
	set_values(r);
	set_times(r);
	set_facts(r);
	builder_profile(r->to)->sequence = r->at_mark ? r->until : 0;
	return err;
}

static void release(struct reader *r)
{
	for (uint32_t i = 0; i < r->thread_count; i++) {
		reader_forget_nodes(r, &r->threads[i]);
		spread_release(&r->threads[i].spread, &r->budget);
		free(r->threads[i].like.name);
	}
	free(r->threads);
	for (uint32_t i = 0; i < COUNT(r->processes, struct read_process); i++) {
		buf_release(&process_at(r, i)->ended);
		free(process_at(r, i)->window);
	}
	buf_release(&r->processes);
	buf_release(&r->symbols);
	buf_release(&r->stacks);
	buf_release(&r->files);
	buf_release(&r->texts);
	buf_release(&r->touched);
	buf_release(&r->name_texts);
	buf_release(&r->mappings);
	buf_release(&r->frames);
	free(r->chain);
	block_reader_release(&r->blocks);
}

int recording_read_to_mark(struct input *from, struct builder *to, uint64_t sequence, struct fault *fault)
{
	struct reader r = {.to = to, .until = sequence, .unit_ns = 1};
	int err = block_reader_init(&r.blocks, from, fault);

	if (err)
		return err;
	r.chain = calloc(RECORDING_DEPTH_MAX + 1, sizeof(*r.chain));
	err = r.chain ? read_all(&r, fault) : fault_set(fault, -ENOMEM, "", "out of memory");
	if (!err && (r.symbols.err || r.stacks.err || r.files.err || r.texts.err || r.processes.err || r.touched.err ||
	             r.name_texts.err || r.mappings.err || r.frames.err))
		err = fault_set(fault, -ENOMEM, "", "out of memory");
	release(&r);
	return err;
}

int recording_read(struct input *from, struct builder *to, struct fault *fault)
{
	return recording_read_to_mark(from, to, 0, fault);
}
