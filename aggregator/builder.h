/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a struct profile from stacks of any origin: what readers of formats, merges and filters are made with. Names and numbers may be
 * hostile: they are copied, interned, and bounded by memory_max_bytes; what finds no memory is counted (profile.out_of_memory).
 *
 * Errors stick: every function may be called after one, and does nothing then; builder_finish() tells. One thread at a time. */
#ifndef SAMPLED_AGGREGATOR_BUILDER_H
#define SAMPLED_AGGREGATOR_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/aggregator.h"
#include "aggregator/named.h"
#include "aggregator/profile.h"

struct builder;

struct builder_options {
	uint64_t memory_max_bytes; /* of trees and symbols; 0: none */
	bool runs;                 /* keep the runs, for formats that need time order */
	bool runs_optional;        /* … if there are any: input without is no error */
	size_t runs_max;           /* of all threads; more are -E2BIG; 0: no bound */
	/* Only samples of this time count, from the profile's start (builder_set_start(), or else the first run). to_ns 0: to its end.
	 * Runs alone have a time: a reader whose input has none must refuse a window (struct format, timed). */
	uint64_t from_ns, to_ns;
	/* Only samples in these states count: of builder_run(), which alone has them. All zero: all. */
	enum sample_mode mode;
	bool no_idle;
};

/* What all functions below return for "no memory"; each takes it and passes it on. */
#define BUILDER_NONE UINT32_MAX

/* 0 or -ENOMEM. */
int builder_new(struct builder **ret_builder, const struct builder_options *options);
void builder_free(struct builder *builder);

/* The profile in the making, for the fields that are simply values: times, interval, mode, sequence, imported, filtered, omitted. */
struct profile *builder_profile(struct builder *builder);
/* Whether a window of time was asked for. */
bool builder_has_window(const struct builder *builder);
/* Whether samples are left out by their time or state. */
bool builder_selects(const struct builder *builder);
/* Whether a window was asked for, or the runs, and not only if there are any: input without time order cannot give either. */
bool builder_wants_time(const struct builder *builder);
/* The window, from the profile's start; to_ns 0: to its end. */
void builder_window(const struct builder *builder, uint64_t *ret_from_ns, uint64_t *ret_to_ns);
/* Whether the runs are kept. */
bool builder_keeps_runs(const struct builder *builder);

/* Names one of the profile's values (struct profile, values). Ours by their names; another one takes `index`, or the next free place from
 * VALUE_RUNNABLE on; "cpu", if it is what shares are of, goes where VALUE_WALL is. VALUE_SAMPLES, count, is there from the start. The place, or BUILDER_NONE: no place is left, or no memory. */
uint32_t builder_value(struct builder *builder, const char *name, const char *unit, enum value_index index);

/* The process with this pid, start time and name, added when there is none yet. The name is copied; facts are added up. */
uint32_t builder_process(struct builder *builder, const struct process *process);
/* The process has this pid, parent, start time and, where there is one, name and version from now on; it is ended if either says so. */
void builder_describe_process(struct builder *builder, uint32_t index, const struct process *process);
/* The thread with this process, interpreter, tid, name (copied; NULL: none) and is_main; its times are widened by
 * those of `like`, whose other fields are not looked at. */
uint32_t builder_thread(struct builder *builder, const struct thread_tree *like);
/* A new thread, though there be one that looks the same: for what tells its threads apart by numbers. */
uint32_t builder_new_thread(struct builder *builder, const struct thread_tree *like);
/* The thread has this tid, name and is_main from now on. */
void builder_describe_thread(struct builder *builder, uint32_t thread, const struct thread_tree *like);
/* Adds the tree of a thread to another's, and its number is used again for the next new thread. Runs do not go with it. */
void builder_fold_thread(struct builder *builder, uint32_t thread, uint32_t into);
/* There is no such thread after all: its number is used again. */
void builder_drop_thread(struct builder *builder, uint32_t thread);
/* By content; texts need no terminator, and what is not UTF-8 or is NUL in them is replaced. */
uint32_t builder_symbol(struct builder *builder, const char *name, size_t name_bytes, const char *file,
                        size_t file_bytes, uint32_t first_line, uint8_t kind, uint8_t flags);
/* The same of a symbol as profiles have them, with its module, build id and whether it is a mapping. */
uint32_t builder_symbol_like(struct builder *builder, const struct symbol *symbol);
/* What a place of a mapping, a symbol of builder_symbol_like(), becomes: profile.named will have it (named_add()). More than there is room for are left
 * out. */
void builder_named(struct builder *builder, uint32_t symbol, uint32_t where, const struct named_frame *frames, size_t count);
/* The node under `parent` (0: the thread's root) with this frame, added when there is none yet. */
uint32_t builder_child(struct builder *builder, uint32_t thread, uint32_t parent, uint32_t symbol, uint32_t line);

/* Adds self values, by enum value_index, to a node. node BUILDER_NONE: counts the samples as left out for want of memory. */
void builder_add(struct builder *builder, uint32_t thread, uint32_t node, const uint64_t values[VALUE_COUNT]);
/* Adds samples with a time: to the node's own values (those of ours, VALUE_WALL and by STATUS_* bits), and to the runs where these are kept.
 * The samples lie evenly between the first and the last. What lies outside of the window, or is in another state than was asked for, is left out, and counted as filtered. Returns how
 * much of the weight was taken. */
uint64_t builder_run(struct builder *builder, uint32_t thread, uint32_t node, uint64_t t_first_ns, uint64_t t_last_ns,
                     uint64_t count, uint64_t weight_ns, unsigned status);
/* Adds a run alone, whose values were added to a node already (transform.c). */
void builder_only_run(struct builder *builder, uint32_t thread, struct run run);
/* How many samples lay outside of the window so far; they are in profile.filtered, too. */
uint64_t builder_outside(const struct builder *builder);
/* When the profile begins, before the first run. */
void builder_set_start(struct builder *builder, uint64_t t_start_ns);

/* Says something of an import; key is static, label is copied. A key that is there already gets its number raised. */
void builder_note(struct builder *builder, const char *key, const char *label, double number, bool loss);

/* 0, or what went wrong first: -ENOMEM, -E2BIG. */
int builder_error(const struct builder *builder);
/* Hands out the profile; the builder is empty then, and good only for builder_free(). 0 or builder_error(). */
int builder_finish(struct builder *builder, struct profile **ret_profile);

#endif
