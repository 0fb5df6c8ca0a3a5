/* SPDX-License-Identifier: Apache-2.0 */
/* Who was sampled: processes and threads, each once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/builder_state.h"
#include "base/hash.h"
#include "base/utf8.h"

uint32_t builder_process(struct builder *b, const struct process *process)
{
	struct profile *p = b->profile;
	struct process *processes, *at;
	char *name;

	if (b->err)
		return BUILDER_NONE;
	utf8_add_valid(&b->name, process->name ? process->name : "", process->name ? strlen(process->name) : 0);
	name = strdup(buf_text(&b->name));
	b->name.bytes = 0;
	if (!name)
		return builder_fail(b, -ENOMEM);
	for (uint32_t i = 0; i < p->process_count; i++) {
		at = &p->processes[i];
		if (at->pid != process->pid || at->start_time != process->start_time || strcmp(at->name, name) != 0)
			continue;
		rec_facts_add(&at->facts, &process->facts);
		at->ended |= process->ended;
		at->version = at->version ? at->version : process->version;
		free(name);
		return i;
	}
	processes = builder_grown(b, p->processes, p->process_count, &b->process_room, sizeof(*processes));
	if (!processes) {
		free(name);
		return BUILDER_NONE;
	}
	p->processes = processes;
	p->processes[p->process_count] = *process;
	p->processes[p->process_count].name = name;
	return p->process_count++;
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
	utf8_add_valid(&b->name, like->name, strlen(like->name));
	ret_key->name = strdup(buf_text(&b->name));
	b->name.bytes = 0;
	if (!ret_key->name)
		builder_fail(b, -ENOMEM);
	return ret_key->name;
}

/* Takes the key's name. */
static uint32_t add_thread(struct builder *b, const struct thread_tree *key)
{
	uint32_t index = b->free_thread ? b->free_thread - 1 : b->thread_count;
	struct built_thread *threads = b->threads;
	struct tree tree = {0};

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
	threads[index] = (struct built_thread){.like = *key, .tree = tree};
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
