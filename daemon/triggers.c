/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/triggers.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* Slices of a target that are so far apart are not in a row; and nobody comes back to one that has not been heard of for so long. */
#define GAP_NS   NS_PER_S
#define STALE_NS (5 * 60 * NS_PER_S)

/* A target that is above a trigger's threshold. */
struct followed {
	size_t trigger;
	pid_t pid;
	uint64_t start_time;
	uint64_t since_ns, until_ns;
	bool is_counted; /* fired, or suppressed, since since_ns */
};

struct firing {
	bool ever;
	uint64_t t_ns; /* latest */
	struct trigger_counts counts;
};

struct triggers {
	const struct config *config;
	struct firing *firings; /* owned; one a trigger */
	uint64_t unfollowed;
	size_t count;
	struct followed followed[TRIGGERS_FOLLOWED_MAX];
};

int triggers_new(struct triggers **ret_triggers, const struct config *config)
{
	struct triggers *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->config = config;
	t->firings = calloc(config->trigger_count + 1, sizeof(*t->firings));
	if (!t->firings) {
		free(t);
		return -ENOMEM;
	}
	*ret_triggers = t;
	return 0;
}

void triggers_free(struct triggers *t)
{
	if (!t)
		return;
	free(t->firings);
	free(t);
}

/* The trigger of that name; config->trigger_count: there is none. */
static size_t find_trigger(const struct config *config, const char *name)
{
	size_t i = 0;

	while (i < config->trigger_count && strcmp(config->triggers[i].name, name) != 0)
		i++;
	return i;
}

void triggers_carry_over(struct triggers *to, const struct triggers *from)
{
	to->unfollowed = from->unfollowed;
	for (size_t i = 0; i < from->config->trigger_count; i++) {
		size_t now = find_trigger(to->config, from->config->triggers[i].name);

		if (now < to->config->trigger_count)
			to->firings[now] = from->firings[i];
	}
	for (size_t i = 0; i < from->count; i++) {
		size_t now = find_trigger(to->config, from->config->triggers[from->followed[i].trigger].name);

		if (now == to->config->trigger_count)
			continue;
		to->followed[to->count] = from->followed[i];
		to->followed[to->count++].trigger = now;
	}
}

struct trigger_counts triggers_counts(const struct triggers *t, size_t trigger)
{
	return t->firings[trigger].counts;
}

uint64_t triggers_unfollowed(const struct triggers *t)
{
	return t->unfollowed;
}

static bool is_of_rule(const struct config_trigger *trigger, size_t rule)
{
	for (size_t i = 0; i < trigger->rule_names.count; i++)
		if (trigger->rules[i] == rule)
			return true;
	return trigger->rule_names.count == 0;
}

static double value_of(const struct config_trigger *trigger, const struct trigger_slice *slice)
{
	switch (trigger->kind) {
	case TRIGGER_CPU:
		return slice->cpu;
	case TRIGGER_GIL_WAIT:
		return slice->gil_wait;
	default:
		return slice->function_share ? slice->function_share(slice->context, trigger->function) : -1;
	}
}

static struct followed *find(struct triggers *t, size_t trigger, const struct trigger_slice *slice)
{
	for (size_t i = 0; i < t->count; i++) {
		struct followed *f = &t->followed[i];

		if (f->trigger == trigger && f->pid == slice->pid && f->start_time == slice->start_time)
			return f;
	}
	return NULL;
}

static void drop(struct triggers *t, struct followed *f)
{
	*f = t->followed[--t->count];
}

static void drop_stale(struct triggers *t, uint64_t now_ns)
{
	for (size_t i = t->count; i-- > 0;)
		if (now_ns > t->followed[i].until_ns + STALE_NS)
			drop(t, &t->followed[i]);
}

/* NULL: there is no room. */
static struct followed *follow(struct triggers *t, size_t trigger, const struct trigger_slice *slice)
{
	struct followed *f = find(t, trigger, slice);

	if (!f) {
		if (t->count == TRIGGERS_FOLLOWED_MAX)
			drop_stale(t, slice->from_ns);
		if (t->count == TRIGGERS_FOLLOWED_MAX) {
			t->unfollowed++;
			return NULL;
		}
		f = &t->followed[t->count++];
		*f = (struct followed){.trigger = trigger,
		                       .pid = slice->pid,
		                       .start_time = slice->start_time,
		                       .since_ns = slice->from_ns,
		                       .until_ns = slice->from_ns};
	}
	if (slice->from_ns > f->until_ns + GAP_NS) {
		f->since_ns = slice->from_ns;
		f->is_counted = false;
	}
	f->until_ns = slice->to_ns;
	return f;
}

/* Whether the trigger may fire now, for a target that has been above for long enough. */
static bool may_fire(struct triggers *t, struct followed *f, uint64_t now_ns)
{
	struct firing *firing = &t->firings[f->trigger];

	if (firing->ever && now_ns < firing->t_ns + t->config->triggers[f->trigger].every_ns) {
		firing->counts.suppressed += !f->is_counted;
		f->is_counted = true;
		return false;
	}
	firing->ever = true;
	firing->t_ns = now_ns;
	firing->counts.fired++;
	f->is_counted = true;
	return true;
}

void triggers_feed(struct triggers *t, const struct trigger_slice *slice,
                   void (*due)(void *context, const struct trigger_due *due), void *context)
{
	for (size_t i = 0; i < t->config->trigger_count; i++) {
		const struct config_trigger *trigger = &t->config->triggers[i];
		struct followed *f;
		double value;

		if (!is_of_rule(trigger, slice->rule))
			continue;
		value = value_of(trigger, slice);
		if (value < trigger->above) {
			f = find(t, i, slice);
			if (f)
				drop(t, f);
			continue;
		}
		f = follow(t, i, slice);
		if (f && slice->to_ns - f->since_ns >= trigger->for_ns && may_fire(t, f, slice->to_ns))
			due(context, &(struct trigger_due){.trigger = i,
			                                   .pid = slice->pid,
			                                   .start_time = slice->start_time,
			                                   .last_ns = trigger->last_ns,
			                                   .value = value});
	}
}
