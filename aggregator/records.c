/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/records.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Whether a record of `fixed` bytes has exactly the text it says behind it. */
static bool text_fits(const struct rec_head *head, uint64_t fixed, uint32_t text_bytes, const char *text)
{
	return head->bytes == rec_round(fixed + text_bytes) && head->bytes >= fixed + text_bytes &&
	       !memchr(text, 0, text_bytes);
}

static bool is_target(const struct rec_target *record)
{
	return record->head.bytes >= sizeof(*record) &&
	       text_fits(&record->head, sizeof(*record), record->name_bytes, record->text) && record->id != 0 &&
	       record->event >= TARGET_ATTACHED && record->event <= TARGET_DETACHED;
}

static bool is_thread(const struct rec_thread *record)
{
	return record->head.bytes >= sizeof(*record) &&
	       text_fits(&record->head, sizeof(*record), record->name_bytes, record->text) && record->id != 0;
}

static bool is_sound(const struct rec_head *record)
{
	if (record->bytes < sizeof(*record) || record->bytes % 8 != 0 || record->bytes > REC_BYTES_MAX)
		return false;
	switch (record->type) {
	case REC_SYMBOL:
		return true;
	case REC_FORGET:
		return record->bytes == sizeof(struct rec_forget);
	case REC_THREAD:
		return is_thread((const struct rec_thread *)record);
	case REC_STACK:
		return record->bytes >= sizeof(struct rec_stack);
	case REC_FACTS:
		return record->bytes == sizeof(struct rec_facts);
	case REC_TARGET:
		return is_target((const struct rec_target *)record);
	case REC_MARK:
		return record->bytes == sizeof(struct rec_mark);
	default:
		return false;
	}
}

int record_check(const struct rec_head *record)
{
	return is_sound(record) ? 0 : -EPROTO;
}

int process_describe(struct process *process, const struct rec_target *record)
{
	if (record->name_bytes) {
		char *name = strndup(record->text, record->name_bytes);

		if (!name)
			return -ENOMEM;
		free(process->name);
		process->name = name;
	}
	process->pid = record->pid;
	process->parent_pid = record->parent_pid;
	process->start_time = record->start_time;
	if (record->version)
		process->version = record->version;
	if (record->event == TARGET_EXITED)
		process->ended = true;
	return 0;
}
