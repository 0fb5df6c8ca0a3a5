/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a pprof sample is: pprof knows no threads and no processes, but writers put them into labels, by some names, and into comments. */
#include "exporters/pprof_reader.h"

#include <errno.h>
#include <stdlib.h>

#include "exporters/pprof.h"

/* A number that some writers put as a text: what its digits say; 0 where there are none. */
static uint64_t label_number(struct pprof_reader *r, uint64_t string, uint64_t number)
{
	return string ? strtoull(pprof_text(&r->tables, &r->text, string), NULL, 10) : number;
}

int pprof_take_label(struct pprof_reader *r, struct pb_message m)
{
	uint64_t key = 0, string = 0, number = 0;
	struct pb_field field;

	while (pb_next(&m, &field)) {
		if (field.wire != PB_VARINT)
			continue;
		if (field.number == PPROF_LABEL_KEY)
			key = field.value;
		else if (field.number == PPROF_LABEL_STR)
			string = field.value;
		else if (field.number == PPROF_LABEL_NUM)
			number = field.value;
	}
	if (pprof_is_text(&r->tables, key, "thread") || pprof_is_text(&r->tables, key, "thread_name") ||
	    pprof_is_text(&r->tables, key, "thread name"))
		r->thread_name = string;
	else if (pprof_is_text(&r->tables, key, "tid") || pprof_is_text(&r->tables, key, "thread_id"))
		r->tid = label_number(r, string, number);
	else if (pprof_is_text(&r->tables, key, "pid") || pprof_is_text(&r->tables, key, "process_id"))
		r->pid = label_number(r, string, number);
	else
		r->doubts.labels++;
	return m.malformed ? -EPROTO : 0;
}

/* The process that samples without a pid are of: the one that the file names, or else the first mapping, which is the program itself. */
static uint32_t only_process(struct pprof_reader *r)
{
	const uint64_t *files = (const uint64_t *)(const void *)r->tables.mapping_files.data;
	struct process process = {0};

	if (r->process != BUILDER_NONE)
		return r->process;
	if (r->said.process_count == 1) {
		process.pid = r->said.processes[0].pid;
		process.name = r->said.processes[0].name;
	} else if (r->said.process_count == 0 && r->tables.mapping_files.bytes > 0) {
		process.name = (char *)(uintptr_t)pprof_text(&r->tables, &r->text, files[0]); /* it is copied */
	}
	r->process = builder_process(r->to, &process);
	return r->process;
}

/* The process with this pid, which is added; a profile has at most PPROF_PROCESSES_MAX of them. */
static uint32_t process_of(struct pprof_reader *r, uint64_t pid)
{
	struct process process = {.pid = (int32_t)pid};
	uint32_t at;

	if (pid == 0 || pid > INT32_MAX)
		return only_process(r);
	at = pair_set_find(&r->pids, (uint32_t)pid, 0);
	if (at != INTERN_FAILED)
		return r->pid_processes[at];
	if (r->pids.count == PPROF_PROCESSES_MAX) {
		r->doubts.processes++;
		return only_process(r);
	}
	at = pair_set_add(&r->pids, (uint32_t)pid, 0);
	if (at == INTERN_FAILED)
		return BUILDER_NONE;
	process.name = pprof_said_name(&r->said, process.pid);
	return r->pid_processes[at] = builder_process(r->to, &process);
}

void pprof_place_processes(struct pprof_reader *r)
{
	if (r->said.process_count == 1)
		only_process(r);
	else
		for (unsigned i = 0; i < r->said.process_count; i++)
			process_of(r, (uint64_t)r->said.processes[i].pid);
}

uint32_t pprof_find_thread(struct pprof_reader *r)
{
	struct thread_tree like = {.tid = r->tid};

	if (r->thread != BUILDER_NONE && r->tid == r->last_tid && r->pid == r->last_pid &&
	    r->thread_name == r->last_name)
		return r->thread;
	like.process = process_of(r, r->pid);
	like.is_main = like.process != BUILDER_NONE && r->tid &&
	               (int64_t)r->tid == builder_profile(r->to)->processes[like.process].pid;
	if (r->thread_name)
		like.name = (char *)(uintptr_t)pprof_text(&r->tables, &r->text, r->thread_name); /* it is copied */
	r->thread = builder_thread(r->to, &like);
	r->last_tid = r->tid;
	r->last_pid = r->pid;
	r->last_name = r->thread_name;
	return r->thread;
}
