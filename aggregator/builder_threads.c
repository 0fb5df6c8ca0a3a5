/* SPDX-License-Identifier: Apache-2.0 */
/* Who was sampled: processes and threads, each once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/builder_state.h"
#include "base/hash.h"
#include "base/utf8.h"

/* What a process or a thread costs besides its tree; the tree's own charge is not refused (tree_init), so this is where they end. */
static uint64_t cost_bytes(size_t bytes, const char *name)
{
	return bytes + LOOKUP_ENTRY_BYTES + (name ? strlen(name) + 1 : 0);
}

static uint32_t process_hash(const struct process *p)
{
	uint64_t hash = hash_combine((uint32_t)p->pid, p->start_time);

	return (uint32_t)hash_bytes(hash, p->name, strlen(p->name));
}

/* A copy of the text, made valid; NULL: no memory. */
static char *copy_name(struct builder *b, const char *text)
{
	char *name;

	utf8_add_valid(&b->name, text, strlen(text));
	name = b->name.err ? NULL : strdup(buf_text(&b->name));
	b->name.bytes = 0;
	if (!name)
		builder_fail(b, -ENOMEM);
	return name;
}

/* Takes the name. */
static uint32_t add_process(struct builder *b, const struct process *process, uint32_t hash)
{
	struct profile *p = b->profile;
	struct process *processes = NULL;

	if (budget_take(&b->budget, cost_bytes(sizeof(*process), process->name)))
		processes = builder_grown(b, p->processes, p->process_count, &b->process_room, sizeof(*processes));
	if (processes)
		p->processes = processes;
	if (!processes || lookup_add(&b->process_names, hash, p->process_count)) {
		free(process->name);
		return processes ? builder_fail(b, -ENOMEM) : BUILDER_NONE;
	}
	p->processes[p->process_count] = *process;
	return p->process_count++;
}

uint32_t builder_process(struct builder *b, const struct process *process)
{
	struct process key = *process, *have;
	uint32_t hash, at, found;

	key.name = b->err ? NULL : copy_name(b, process->name ? process->name : "");
	if (!key.name)
		return BUILDER_NONE;
	at = hash = process_hash(&key);
	while ((found = lookup_next(&b->process_names, hash, &at)) != LOOKUP_NONE) {
		have = &b->profile->processes[found];
		if (have->pid != key.pid || have->start_time != key.start_time || strcmp(have->name, key.name) != 0)
			continue;
		rec_facts_add(&have->facts, &key.facts);
		have->ended |= key.ended;
		have->version = have->version ? have->version : key.version;
		free(key.name);
		return found;
	}
	return add_process(b, &key, hash);
}

void builder_describe_process(struct builder *b, uint32_t index, const struct process *process)
{
	struct process *have;
	char *name = NULL;

	if (b->err || index >= b->profile->process_count)
		return;
	have = &b->profile->processes[index];
	if (process->name && process->name[0]) {
		name = copy_name(b, process->name);
		if (!name)
			return;
	}
	lookup_remove(&b->process_names, process_hash(have), index);
	have->pid = process->pid;
	have->parent_pid = process->parent_pid;
	have->start_time = process->start_time;
	have->version = process->version ? process->version : have->version;
	have->ended |= process->ended;
	if (name) {
		free(have->name);
		have->name = name;
	}
	/* Cannot fail: an entry has just been removed. */
	lookup_add(&b->process_names, process_hash(have), index);
}

static uint32_t thread_hash(const struct thread_tree *t)
{
	uint64_t hash = hash_combine(hash_combine(t->process, (uint64_t)t->interpreter), t->tid);

	return (uint32_t)(t->name ? hash_bytes(hash, t->name, strlen(t->name)) : hash);
}

static bool is_thread(const struct thread_tree *a, const struct thread_tree *b)
{
	return a->process == b->process && a->interpreter == b->interpreter && a->tid == b->tid &&
	       a->is_main == b->is_main && (a->name && b->name ? strcmp(a->name, b->name) == 0 : a->name == b->name);
}

/* What identifies a thread that looks like that, with an own copy of its name. False: no memory, or nonsense. */
static bool make_key(struct builder *b, const struct thread_tree *like, struct thread_tree *ret_key)
{
	*ret_key = (struct thread_tree){
		.process = like->process, .interpreter = like->interpreter, .tid = like->tid, .is_main = like->is_main};
	if (b->err || like->process >= b->profile->process_count)
		return false;
	if (!like->name)
		return true;
	ret_key->name = copy_name(b, like->name);
	return ret_key->name;
}

/* Takes the key's name. BUILDER_NONE without an error: it is beyond the bound. */
static uint32_t add_thread(struct builder *b, const struct thread_tree *key)
{
	uint32_t index = b->free_thread ? b->free_thread - 1 : b->thread_count;
	struct built_thread *threads = b->threads;
	struct tree tree = {0};

	if (!budget_take(&b->budget, cost_bytes(sizeof(*threads), key->name))) {
		free(key->name);
		return BUILDER_NONE;
	}
	if (!b->free_thread)
		threads = builder_grown(b, b->threads, b->thread_count, &b->thread_room, sizeof(*threads));
	if (threads)
		b->threads = threads;
	if (!threads || tree_init(&tree, &b->budget) || lookup_add(&b->thread_names, thread_hash(key), index)) {
		tree_release(&tree, &b->symbols);
		free(key->name);
		return builder_fail(b, -ENOMEM);
	}
	if (b->free_thread)
		b->free_thread = threads[index].next_free;
	else
		b->thread_count++;
	threads[index] = (struct built_thread){
		.like = *key, .tree = tree, .cost_bytes = cost_bytes(sizeof(*threads), key->name)};
	return index;
}

uint32_t builder_new_thread(struct builder *b, const struct thread_tree *like)
{
	struct thread_tree key;

	return make_key(b, like, &key) ? add_thread(b, &key) : BUILDER_NONE;
}

uint32_t builder_thread(struct builder *b, const struct thread_tree *like)
{
	struct thread_tree key;
	uint32_t hash, at, found;

	if (!make_key(b, like, &key))
		return BUILDER_NONE;
	at = hash = thread_hash(&key);
	while ((found = lookup_next(&b->thread_names, hash, &at)) != LOOKUP_NONE)
		if (is_thread(&b->threads[found].like, &key)) {
			free(key.name);
			thread_widen(&b->threads[found].like, like->t_first_ns, like->t_last_ns);
			return found;
		}
	found = add_thread(b, &key);
	if (found != BUILDER_NONE)
		thread_widen(&b->threads[found].like, like->t_first_ns, like->t_last_ns);
	return found;
}

void builder_describe_thread(struct builder *b, uint32_t thread, const struct thread_tree *like)
{
	struct thread_tree key, given = *like, *kept;

	if (!builder_keeps_thread(b, thread))
		return;
	kept = &b->threads[thread].like;
	given.process = kept->process;
	given.interpreter = kept->interpreter;
	if (is_thread(kept, &given) || !make_key(b, &given, &key))
		return;
	lookup_remove(&b->thread_names, thread_hash(kept), thread);
	free(kept->name);
	kept->name = key.name;
	kept->tid = key.tid;
	kept->is_main = key.is_main;
	/* Cannot fail: an entry has just been removed. */
	lookup_add(&b->thread_names, thread_hash(kept), thread);
}

void builder_drop_thread(struct builder *b, uint32_t thread)
{
	struct built_thread *t;

	if (b->err || !builder_keeps_thread(b, thread))
		return;
	t = &b->threads[thread];
	lookup_remove(&b->thread_names, thread_hash(&t->like), thread);
	budget_give(&b->budget, t->cost_bytes);
	tree_release(&t->tree, &b->symbols);
	b->run_count -= t->like.run_count;
	free(t->like.runs);
	free(t->like.name);
	*t = (struct built_thread){.next_free = b->free_thread};
	b->free_thread = thread + 1;
}

void builder_fold_thread(struct builder *b, uint32_t thread, uint32_t into)
{
	struct built_thread *from, *to;

	if (b->err || thread == into || !builder_keeps_thread(b, thread) || !builder_keeps_thread(b, into))
		return;
	from = &b->threads[thread];
	to = &b->threads[into];
	b->profile->out_of_memory += tree_merge(&to->tree, &b->symbols, &from->tree);
	thread_widen(&to->like, from->like.t_first_ns, from->like.t_last_ns);
	builder_drop_thread(b, thread);
}
