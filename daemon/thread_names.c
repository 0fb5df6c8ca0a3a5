/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/thread_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "daemon/error.h"
#include "daemon/nearest.h"

enum { NAME_COLUMNS = 40, SHOWN_MAX = 12 };

static void keep(struct thread_names *n, const char *name)
{
	char *copy;

	for (size_t i = 0; i < n->count; i++)
		if (strcmp(n->names[i], name) == 0)
			return;
	copy = n->count < THREAD_NAMES_MAX ? strdup(name) : NULL;
	if (copy)
		n->names[n->count++] = copy;
	else
		n->left_out++;
}

void thread_names_take(struct thread_names *n, const char *name, uint64_t tid)
{
	for (size_t i = 0; i < n->asked->count; i++) {
		const struct thread_filter *filter = &n->asked->items[i];

		n->met[i] |= filter->name ? name && strcmp(filter->name, name) == 0 : tid && filter->tid == tid;
	}
	if (name && name[0])
		keep(n, name);
}

/* The name that may have been meant, or NULL. */
static const char *nearest_to(const struct thread_names *n, const char *word)
{
	struct nearest nearest = {.word = word};

	for (size_t i = 0; i < n->count; i++)
		nearest_offer(&nearest, n->names[i]);
	return nearest_word(&nearest);
}

static void add_names(struct buf *to, const struct thread_names *n)
{
	uint64_t more = n->left_out + (n->count > SHOWN_MAX ? n->count - SHOWN_MAX : 0);

	for (size_t i = 0; i < n->count && i < SHOWN_MAX; i++) {
		buf_puts(to, i ? ", " : "");
		utf8_fit(to, n->names[i], NAME_COLUMNS, false);
	}
	if (n->count == 0)
		buf_puts(to, "none that has a name");
	if (more)
		buf_printf(to, " and %" PRIu64 " more", more);
}

static void say(const struct thread_names *n, const struct thread_filter *filter, bool is_end)
{
	const char *meant = filter->name ? nearest_to(n, filter->name) : NULL;
	struct buf what = {0}, names = {0}, near = {0};

	if (filter->name)
		utf8_fit(&what, filter->name, NAME_COLUMNS, false);
	else
		buf_printf(&what, "%" PRIu64, filter->tid);
	if (meant) {
		buf_puts(&near, "is it ");
		utf8_fit(&near, meant, NAME_COLUMNS, false);
		buf_puts(&near, "? ");
	}
	add_names(&names, n);
	error_note("-t %s: %s (%sthreads: %s)", buf_text(&what),
	           is_end ? "there was no such thread" : "no such thread so far, waiting for it", buf_text(&near), buf_text(&names));
	buf_release(&what);
	buf_release(&names);
	buf_release(&near);
}

bool thread_names_check(const struct thread_names *n, bool is_end)
{
	bool missing = false;

	for (size_t i = 0; i < n->asked->count; i++)
		if (!n->met[i]) {
			say(n, &n->asked->items[i], is_end);
			missing = true;
		}
	return missing;
}

void thread_names_release(struct thread_names *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->names[i]);
	n->count = 0;
}
