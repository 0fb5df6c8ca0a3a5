/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/records.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

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

static bool is_mapping(const struct rec_mapping *record)
{
	uint64_t text_bytes;

	if (record->head.bytes < sizeof(*record) || record->path_bytes > REC_TEXT_MAX ||
	    record->build_id_bytes > BUILD_ID_MAX)
		return false;
	text_bytes = (uint64_t)record->path_bytes + record->build_id_bytes;
	return record->head.bytes == rec_round(sizeof(*record) + text_bytes) && record->id != 0 &&
	       record->id < 1U << 30 && record->flags <= UINT8_MAX && record->start < record->end &&
	       !memchr(record->text, 0, record->path_bytes);
}

static bool is_sound(const struct rec_head *record)
{
	if (record->bytes < sizeof(*record) || record->bytes % 8 != 0 || record->bytes > REC_BYTES_MAX)
		return false;
	switch (record->type) {
	case REC_SYMBOL:
		return true;
	case REC_MAPPING:
		return is_mapping((const struct rec_mapping *)record);
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
	case REC_TIME:
		return record->bytes == sizeof(struct rec_time);
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

uint32_t record_mapping_key(const struct rec_mapping *record)
{
	uint64_t dev = (uint64_t)record->dev_major << 32 | record->dev_minor;

	if (record->build_id_bytes && !(record->flags & MAPPING_MEMORY))
		return 0;
	if (record->flags & MAPPING_MEMORY)
		return (uint32_t)hash_combine(hash_u64(record->target), record->start) | 1;
	return (uint32_t)hash_combine(hash_u64(dev), record->inode) | 1;
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
