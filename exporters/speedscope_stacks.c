/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "exporters/speedscope.h"

/* More than any profile that a browser can show. */
enum {
	FRAMES_MAX = 1 << 23,
	NODES_MAX = 1 << 26,
	PROFILES_MAX = 1 << 18,
	ROWS_MAX = 1 << 25, /* that are held, of one profile */
	TEXTS_MAX_BYTES = 1 << 30
};

static int no_memory(struct fault *fault)
{
	return fault_set(fault, -ENOMEM, "", "out of memory");
}

static int too_many(struct fault *fault, const char *what, int bound)
{
	return fault_set(fault, -E2BIG, "", "it has more than %d %s", bound, what);
}

static struct speedscope_rows *rows_of(const struct speedscope *s)
{
	return (struct speedscope_rows *)(void *)s->rows.data;
}

void speedscope_release(struct speedscope *s)
{
	text_set_release(&s->texts);
	pair_set_release(&s->nodes);
	buf_release(&s->frames);
	buf_release(&s->values);
	buf_release(&s->profiles);
	buf_release(&s->rows);
	buf_release(&s->moments);
	buf_release(&s->weights.early);
	buf_release(&s->counts.early);
}

int speedscope_text(struct speedscope *s, const char *text, size_t bytes, uint32_t *ret_text, struct fault *fault)
{
	uint32_t index = text_set_add(&s->texts, text, bytes > REC_TEXT_MAX ? REC_TEXT_MAX : bytes);

	if (index == INTERN_FAILED)
		return no_memory(fault);
	if (s->texts.texts.bytes > TEXTS_MAX_BYTES)
		return too_many(fault, "bytes of names", TEXTS_MAX_BYTES);
	*ret_text = index + 1;
	return 0;
}

int speedscope_frame(struct speedscope *s, const struct speedscope_frame *frame, struct fault *fault)
{
	if (s->frames.bytes / sizeof(*frame) >= FRAMES_MAX)
		return too_many(fault, "frames", FRAMES_MAX);
	buf_add(&s->frames, frame, sizeof(*frame));
	return s->frames.err ? no_memory(fault) : 0;
}

/* --- a profile --- */

static int child(struct speedscope *s, uint32_t parent, uint32_t frame, uint32_t *ret_node, struct fault *fault)
{
	static const struct speedscope_value none;
	uint32_t before = s->nodes.count, node = pair_set_add(&s->nodes, parent, frame);

	if (s->nodes.count > before)
		buf_add(&s->values, &none, sizeof(none));
	if (node == INTERN_FAILED || s->values.err)
		return no_memory(fault);
	if (node >= NODES_MAX)
		return too_many(fault, "different stacks", NODES_MAX);
	*ret_node = node;
	return 0;
}

int speedscope_begin(struct speedscope *s, struct fault *fault)
{
	static const struct speedscope_profile none;
	uint32_t index = (uint32_t)(s->profiles.bytes / sizeof(none));
	int err;

	if (index >= PROFILES_MAX)
		return too_many(fault, "profiles", PROFILES_MAX);
	buf_add(&s->profiles, &none, sizeof(none));
	if (s->profiles.err)
		return no_memory(fault);
	s->profile = (struct speedscope_profile *)(void *)s->profiles.data + index;
	s->rows.bytes = 0;
	s->first_moment = s->moments.bytes / sizeof(struct speedscope_moment);
	s->row_count = 0;
	s->has_rows = s->has_time = s->is_uneven = false;
	s->row_weight = 0;
	s->weights.early.bytes = s->counts.early.bytes = 0;
	s->weights = (struct speedscope_column){.early = s->weights.early};
	s->counts = (struct speedscope_column){.early = s->counts.early};
	s->depth = s->too_deep = 0;
	err = child(s, UINT32_MAX, index, &s->profile->root, fault);
	s->at = s->profile->root;
	return err;
}

int speedscope_unit(struct speedscope *s, const char *text, size_t bytes, struct fault *fault)
{
	static const char *const names[] = {"none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == bytes && memcmp(names[i], text, bytes) == 0) {
			s->profile->unit = (enum speedscope_unit)i;
			return 0;
		}
	return fault_set(fault, -EPROTO, "", "its values have a unit that is not known");
}

static int open_frame(struct speedscope *s, double frame, struct fault *fault)
{
	if (!(frame >= 0 && frame < FRAMES_MAX) || frame != floor(frame))
		return fault_set(fault, -EPROTO, "", "%g is not the number of a frame", frame);
	if (s->depth == REC_DEPTH_MAX) {
		s->too_deep++;
		return 0;
	}
	s->depth++;
	return child(s, s->at, (uint32_t)frame, &s->at, fault);
}

/* --- sampled --- */

void speedscope_stack_begin(struct speedscope *s)
{
	s->at = s->profile->root;
	s->depth = s->too_deep = 0;
}

int speedscope_stack_frame(struct speedscope *s, double frame, struct fault *fault)
{
	return open_frame(s, frame, fault);
}

int speedscope_stack_end(struct speedscope *s, struct fault *fault)
{
	size_t count = s->rows.bytes / sizeof(struct speedscope_rows);
	struct speedscope_rows row = {.node = s->at, .count = 1};

	if (s->has_rows)
		return fault_set(fault, -EPROTO, "", "a profile has its samples twice");
	s->cut_stacks += s->too_deep > 0;
	s->row_count++;
	if (count > 0 && rows_of(s)[count - 1].node == s->at && rows_of(s)[count - 1].count < UINT32_MAX) {
		rows_of(s)[count - 1].count++;
		return 0;
	}
	if (count >= ROWS_MAX)
		return too_many(fault, "samples in a profile", ROWS_MAX);
	buf_add(&s->rows, &row, sizeof(row));
	return s->rows.err ? no_memory(fault) : 0;
}

/* The node that the column's next value belongs to. */
static int next_node(const struct speedscope *s, struct speedscope_column *column, uint32_t *ret_node,
                     struct fault *fault)
{
	if (column->taken >= s->row_count)
		return fault_set(fault, -EPROTO, "", "a profile has more weights than samples");
	column->taken++;
	if (column->used == rows_of(s)[column->row].count) {
		column->row++;
		column->used = 0;
	}
	column->used++;
	*ret_node = rows_of(s)[column->row].node;
	return 0;
}

static int keep_early(struct speedscope_column *column, double value, struct fault *fault)
{
	if (column->early.bytes / sizeof(value) >= ROWS_MAX)
		return too_many(fault, "samples in a profile", ROWS_MAX);
	buf_add(&column->early, &value, sizeof(value));
	return column->early.err ? no_memory(fault) : 0;
}

/* The i-th of the profile at hand, made with those before it when it is new; NULL: none are kept, or no memory (moments.err). */
static struct speedscope_moment *moment_at(struct speedscope *s, uint64_t i)
{
	struct speedscope_moment none = {.profile = (uint32_t)(s->profiles.bytes / sizeof(struct speedscope_profile)) - 1, .count = 1};

	while (s->keeps_moments && !s->moments.err && s->moments.bytes / sizeof(none) <= s->first_moment + i)
		buf_add(&s->moments, &none, sizeof(none));
	return s->keeps_moments && !s->moments.err
	               ? (struct speedscope_moment *)(void *)s->moments.data + s->first_moment + i
	               : NULL;
}

/* Of the sample that the column's next number belongs to. *ret_value NULL: the number is kept until the samples come, or it is none that can be,
 * from 0 to below `limit`, which is counted. */
static int next_value(struct speedscope *s, struct speedscope_column *column, double number, double limit,
                      struct speedscope_value **ret_value, struct fault *fault)
{
	uint32_t node = 0;
	int err;

	*ret_value = NULL;
	if (!s->has_rows)
		return keep_early(column, number, fault);
	err = next_node(s, column, &node, fault);
	if (err)
		return err;
	if (number >= 0 && number < limit)
		*ret_value = speedscope_value_of(s, node);
	else
		s->bad_weights++;
	return 0;
}

int speedscope_weight(struct speedscope *s, double weight, struct fault *fault)
{
	struct speedscope_value *value;
	struct speedscope_moment *moment;
	int err = next_value(s, &s->weights, weight, 1e18, &value, fault);

	if (!value)
		return err;
	moment = moment_at(s, s->weights.taken - 1);
	if (moment) {
		moment->node = (uint32_t)(value - speedscope_value_of(s, 0));
		moment->weight = weight;
	}
	value->weight += weight;
	if (s->row_weight == 0)
		s->row_weight = weight;
	else if (fabs(weight - s->row_weight) > s->row_weight / 100)
		s->is_uneven = true;
	return err;
}

int speedscope_count(struct speedscope *s, double count, struct fault *fault)
{
	struct speedscope_value *value;
	struct speedscope_moment *moment;
	int err = next_value(s, &s->counts, count, 1e15, &value, fault);

	if (!value)
		return err;
	value->count += (uint64_t)count;
	moment = moment_at(s, s->counts.taken - 1);
	if (moment)
		moment->count = (uint64_t)count;
	return err;
}

int speedscope_samples_end(struct speedscope *s, struct fault *fault)
{
	int err = 0;

	s->has_rows = true;
	for (size_t i = 0; i < s->weights.early.bytes / sizeof(double) && !err; i++)
		err = speedscope_weight(s, ((double *)(void *)s->weights.early.data)[i], fault);
	for (size_t i = 0; i < s->counts.early.bytes / sizeof(double) && !err; i++)
		err = speedscope_count(s, ((double *)(void *)s->counts.early.data)[i], fault);
	return err;
}

/* --- evented --- */

int speedscope_event(struct speedscope *s, const struct speedscope_event *event, struct fault *fault)
{
	double passed = s->has_time ? event->at - s->at_time : 0;
	struct speedscope_moment *moment;

	if (!event->has_at || !event->has_frame || (event->type != 'O' && event->type != 'C'))
		return fault_set(fault, -EPROTO, "", "an event has no time, no frame or no type that is known");
	if (!(passed >= 0))
		return fault_set(fault, -EPROTO, "", "an event lies before the one in front of it");
	s->is_uneven = true;
	moment = passed > 0 ? moment_at(s, s->moments.bytes / sizeof(*moment) - s->first_moment) : NULL;
	if (moment) { /* without a stack time passes all the same */
		moment->node = s->at;
		moment->weight = passed < 1e18 ? passed : 0;
		moment->count = s->at != s->profile->root;
	}
	if (s->at != s->profile->root && passed > 0) {
		speedscope_value_of(s, s->at)->weight += passed < 1e18 ? passed : 0;
		speedscope_value_of(s, s->at)->count++;
		s->cut_stacks += s->too_deep > 0;
	}
	s->at_time = event->at;
	s->has_time = true;
	if (event->type == 'O')
		return open_frame(s, event->frame, fault);
	if (s->too_deep > 0) {
		s->too_deep--;
		return 0;
	}
	if (s->at == s->profile->root || pair_set_get(&s->nodes, s->at).b != event->frame)
		return fault_set(fault, -EPROTO, "", "an event closes frame %g, which is not the innermost",
		                 event->frame);
	s->at = pair_set_get(&s->nodes, s->at).a;
	s->depth--;
	return 0;
}

int speedscope_end(struct speedscope *s, struct fault *fault)
{
	if (s->moments.err)
		return no_memory(fault);
	if (s->weights.early.bytes && !s->has_rows)
		return fault_set(fault, -EPROTO, "", "a profile has weights and no samples");
	if (s->has_rows && s->weights.taken != s->row_count)
		return fault_set(fault, -EPROTO, "", "a profile has %" PRIu64 " samples and %" PRIu64 " weights",
		                 s->row_count, s->weights.taken);
	if (s->counts.taken && s->counts.taken != s->row_count)
		return fault_set(fault, -EPROTO, "", "a profile has %" PRIu64 " samples and %" PRIu64 " counts",
		                 s->row_count, s->counts.taken);
	s->left_open += s->has_time && s->at != s->profile->root;
	s->profile->counted = s->counts.taken > 0;
	s->uncounted |= s->is_uneven && !s->profile->counted && s->profile->unit != UNIT_NONE;
	if (s->has_rows && s->counts.taken == 0)
		for (size_t i = 0; i < s->rows.bytes / sizeof(struct speedscope_rows); i++)
			speedscope_value_of(s, rows_of(s)[i].node)->count += rows_of(s)[i].count;
	return 0;
}
