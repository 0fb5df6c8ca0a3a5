/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/thread_watch.h"

#include <string.h>

#include "base/clock.h"

/* Names are found a few a tick: by then those of some two thousand threads, at the default rate. */
#define NOTE_AFTER_NS NS_PER_S

void thread_watch_init(struct thread_watch *watch, const struct thread_list *asked)
{
	*watch = (struct thread_watch){.names = {.asked = asked}, .due_ns = UINT64_MAX};
	pthread_mutex_init(&watch->lock, NULL);
}

void thread_watch_release(struct thread_watch *watch)
{
	thread_names_release(&watch->names);
	pthread_mutex_destroy(&watch->lock);
}

void thread_watch_take(struct thread_watch *watch, const struct rec_head *record)
{
	const struct rec_thread *thread = (const struct rec_thread *)record;
	char name[256];
	size_t bytes;

	if (!record || record->type != REC_THREAD || watch->names.asked->count == 0)
		return;
	bytes = thread->name_bytes < sizeof(name) ? thread->name_bytes : sizeof(name) - 1;
	memcpy(name, thread->text, bytes);
	name[bytes] = '\0';
	pthread_mutex_lock(&watch->lock);
	thread_names_take(&watch->names, bytes ? name : NULL, thread->tid);
	pthread_mutex_unlock(&watch->lock);
}

void thread_watch_start(struct thread_watch *watch, uint64_t now_ns)
{
	if (watch->names.asked->count)
		watch->due_ns = now_ns + NOTE_AFTER_NS;
}

static bool check(struct thread_watch *watch, bool is_end)
{
	bool missing;

	pthread_mutex_lock(&watch->lock);
	missing = thread_names_check(&watch->names, is_end);
	pthread_mutex_unlock(&watch->lock);
	return missing;
}

uint64_t thread_watch_step(struct thread_watch *watch, uint64_t now_ns)
{
	if (now_ns >= watch->due_ns) {
		watch->due_ns = UINT64_MAX;
		check(watch, false);
	}
	return watch->due_ns;
}

bool thread_watch_check(struct thread_watch *watch)
{
	return check(watch, true);
}
