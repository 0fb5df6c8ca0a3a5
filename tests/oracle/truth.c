/* SPDX-License-Identifier: Apache-2.0 */
/* The true stacks of a process' main thread: `truth PID STOPS SEED` stops it at random instants with ptrace, reads it while it
 * stands still, and prints collapsed stacks. What the sampler's walk of a running process is compared with, so it has a walk of
 * its own: down CPython's chain of frames from the one that the thread state calls current, leaving out what CPython's own
 * tracebacks leave out. `truth PID where` and `truth PID names CODE...` are for tests/oracle/interrupts. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "sampler/codes.h"
#include "sampler/discover.h"
#include "sampler/frames.h"
#include "sampler/pyobj.h"
#include "sampler/symtab.h"

enum {
	WAIT_MIN_US = 30, /* between two stops, so that the target gets back to its stride */
	WAIT_MAX_US = 500,
	DEPTH_MAX = 10000,
	CODES_MAX = 4096, /* distinct code objects; a power of two */
	FRAME_BYTES_MAX = 256,
	STOPS_MAX = 1000000,
};

struct label { /* "FUNCTION (FILE:" of a code object */
	raddr_t code;
	char *text;
};

struct line {
	char *text;
	unsigned count;
};

struct truth {
	struct remote remote;
	struct pyproc proc;
	struct symtab *symbols;
	struct codes *codes;
	raddr_t tstate;
	struct label labels[CODES_MAX];
	struct line *lines; /* a hash table by text */
	size_t line_room;   /* a power of two */
	unsigned unread;    /* stops that could not be read */
};

/* The main thread's state is the oldest, so the last in the list. */
static int find_main(struct truth *t)
{
	const struct pyabi *abi = &t->proc.abi;
	raddr_t interp, tstate, next;
	int err = remote_read_u64(&t->remote, t->proc.interp_head, &interp);

	if (!err)
		err = remote_read_u64(&t->remote, interp + (raddr_t)abi->interp.threads, &tstate);
	while (!err && tstate) {
		t->tstate = tstate;
		err = remote_read_u64(&t->remote, tstate + (raddr_t)abi->tstate.next, &next);
		tstate = next;
	}
	return err;
}

static const char *label_of(struct truth *t, raddr_t code)
{
	const struct pyabi *abi = &t->proc.abi;
	int32_t name_off = abi->code.qualname == ABSENT ? abi->code.name : abi->code.qualname;
	char name[1024] = "?", file[1024] = "?";
	raddr_t text;
	size_t i = hash_u64(code) % CODES_MAX;

	for (size_t tries = 0; t->labels[i].code && tries < CODES_MAX; tries++, i = (i + 1) % CODES_MAX)
		if (t->labels[i].code == code)
			return t->labels[i].text;
	if (remote_read_u64(&t->remote, code + (raddr_t)name_off, &text) == 0)
		pyobj_str(&t->remote, abi, text, name, sizeof(name), NULL);
	if (remote_read_u64(&t->remote, code + (raddr_t)abi->code.filename, &text) == 0)
		pyobj_str(&t->remote, abi, text, file, sizeof(file), NULL);
	free(t->labels[i].text);
	t->labels[i].code = code;
	if (asprintf(&t->labels[i].text, "%s (%s:", name, file) < 0)
		abort();
	return t->labels[i].text;
}

static int current_frame(const struct truth *t, raddr_t *ret_frame, raddr_t *ret_end)
{
	const struct pyabi *abi = &t->proc.abi;
	raddr_t cframe;
	int err;

	*ret_end = 0;
	if (abi->tstate.base_frame != ABSENT) {
		err = remote_read_u64(&t->remote, t->tstate + (raddr_t)abi->tstate.base_frame, ret_end);
		if (err)
			return err;
	}
	if (abi->tstate.cframe == ABSENT)
		return remote_read_u64(&t->remote, t->tstate + (raddr_t)abi->tstate.frame, ret_frame);
	err = remote_read_u64(&t->remote, t->tstate + (raddr_t)abi->tstate.cframe, &cframe);
	return err ? err : remote_read_u64(&t->remote, cframe + (raddr_t)abi->tstate.cframe_frame, ret_frame);
}

/* A frame whose function has begun. Reads nothing more of one that has not: those are skipped as tracebacks skip them
 * (_PyFrame_IsIncomplete, Include/internal/pycore_frame.h). -1: makes no sense. */
static int read_frame(struct truth *t, const uint8_t *bytes, struct code **ret_code, int64_t *ret_offset)
{
	const struct pyabi *abi = &t->proc.abi;
	raddr_t addr = frame_code(abi, bytes);
	struct code *code = codes_find(t->codes, addr);

	if (!code) {
		codes_new_tick(t->codes);
		if (codes_load(t->codes, &t->remote, addr, clock_now_ns(), &code) != 0)
			return -1;
	}
	if (!frame_offset(abi, bytes, code, ret_offset))
		return -1;
	*ret_code = code;
	return abi->frames == FRAMES_HEAP || frame_is_generator(abi, bytes) || *ret_offset >= (int64_t)code->traceable_bytes;
}

/* The stack as a collapsed line without its count. 0 or -errno; -EAGAIN: stopped in the middle of a yield, when a generator is
 * current that is no longer, or not yet, linked to who resumed it; or where there is no current frame for an instant. */
static int read_stack(struct truth *t, struct buf *to)
{
	static struct {
		const char *label;
		uint32_t line;
	} frames[DEPTH_MAX];
	const struct pyabi *abi = &t->proc.abi;
	raddr_t frame, end;
	size_t depth = 0;
	bool linked = false;
	int err = current_frame(t, &frame, &end);

	for (size_t steps = 0; !err && frame && frame != end; steps++) {
		uint8_t bytes[FRAME_BYTES_MAX];
		struct code *code;
		int64_t offset;
		int shown = 0;

		if (steps > 2 * (size_t)DEPTH_MAX || depth == DEPTH_MAX)
			return -EPROTO;
		err = remote_read(&t->remote, frame, bytes, (size_t)abi->frame.bytes);
		if (!err && !frame_is_shim(abi, bytes))
			shown = read_frame(t, bytes, &code, &offset);
		if (shown < 0)
			return -EPROTO;
		if (shown > 0) {
			frames[depth].label = label_of(t, code->addr);
			frames[depth++].line = code_line(code, offset);
			linked = !frame_is_generator(abi, bytes);
		}
		frame = frame_previous(abi, bytes);
	}
	if (!err && !linked)
		err = -EAGAIN;
	buf_printf(to, "thread %d", (int)t->proc.pid);
	while (!err && depth-- > 0)
		buf_printf(to, ";%s%" PRIu32 ")", frames[depth].label, frames[depth].line);
	return err ? err : to->err;
}

static void count_line(struct truth *t, const char *text)
{
	size_t i = hash_bytes(0, text, strlen(text)) & (t->line_room - 1);

	while (t->lines[i].text && strcmp(t->lines[i].text, text) != 0)
		i = (i + 1) & (t->line_room - 1);
	if (!t->lines[i].text)
		t->lines[i].text = strdup(text);
	t->lines[i].count++;
}

/* Waits for the stop asked for; a signal that comes in between is passed on. 0 or -errno. */
static int wait_stopped(pid_t pid)
{
	int status;

	for (;;) {
		if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status))
			return -ESRCH;
		if (status >> 16 == PTRACE_EVENT_STOP)
			return 0;
		if (ptrace(PTRACE_CONT, pid, NULL, (void *)(uintptr_t)WSTOPSIG(status)) != 0)
			return -errno;
	}
}

static int stop_and_read(struct truth *t, struct buf *scratch)
{
	pid_t pid = t->proc.pid;
	struct timespec wait = clock_to_timespec((uint64_t)(WAIT_MIN_US + random() % (WAIT_MAX_US - WAIT_MIN_US)) * NS_PER_US);
	int err;

	nanosleep(&wait, NULL);
	if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) != 0)
		return -errno;
	err = wait_stopped(pid);
	if (err)
		return err;
	scratch->bytes = 0;
	if (read_stack(t, scratch) == 0)
		count_line(t, buf_text(scratch));
	else
		t->unread++;
	return ptrace(PTRACE_CONT, pid, NULL, NULL) == 0 ? 0 : -errno;
}

static int find(struct truth *t, pid_t pid)
{
	struct fault fault = {0};
	int err = discover_open(&t->remote, pid, &fault);

	if (!err)
		err = discover(&t->proc, &t->remote, &fault);
	if (err) {
		fprintf(stderr, "truth: cannot read process %d: %s\n", (int)pid, fault.why);
		return err;
	}
	return find_main(t);
}

/* Where the main thread's current frame is: the thread state, the offset of a pointer in it to what holds the frame's (-1: itself does), that one's
 * offset there, and the offset of its code in a frame. */
static void print_where(const struct truth *t)
{
	const struct pyabi *abi = &t->proc.abi;
	bool direct = abi->tstate.cframe == ABSENT;

	printf("%" PRIu64 " %d %d %d\n", t->tstate, direct ? -1 : abi->tstate.cframe,
	       direct ? abi->tstate.frame : abi->tstate.cframe_frame, abi->frame.code);
}

/* Of code objects, a line each. */
static void print_names(struct truth *t, char *const *addresses, int count)
{
	for (int i = 0; i < count; i++)
		printf("%s\n", label_of(t, strtoull(addresses[i], NULL, 10)));
}

static int stop(struct truth *t, pid_t pid, unsigned stops)
{
	struct buf scratch = {0};
	int err;

	for (t->line_room = 1; t->line_room < 2 * (size_t)stops;)
		t->line_room *= 2;
	t->lines = calloc(t->line_room, sizeof(*t->lines));
	err = t->lines ? symtab_new(&t->symbols) : -ENOMEM;
	if (!err)
		err = codes_new(&t->codes, &t->proc.abi, t->symbols);
	if (!err && ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0)
		err = -errno;
	for (unsigned i = 0; !err && i < stops; i++)
		err = stop_and_read(t, &scratch);
	buf_release(&scratch);
	return err;
}

int main(int argc, char **argv)
{
	static struct truth truth;
	bool where = argc == 3 && strcmp(argv[2], "where") == 0, names = argc > 3 && strcmp(argv[2], "names") == 0;
	long stops = argc == 4 ? atol(argv[2]) : 0;
	pid_t pid = argc > 1 ? (pid_t)atol(argv[1]) : 0;
	int err;

	if (!where && !names && (stops < 1 || stops > STOPS_MAX)) {
		fprintf(stderr, "usage: truth PID STOPS SEED, truth PID where, or truth PID names CODE...\n");
		return 2;
	}
	err = find(&truth, pid);
	if (!err && where) {
		print_where(&truth);
		return 0;
	}
	if (!err && names) {
		print_names(&truth, argv + 3, argc - 3);
		return 0;
	}
	if (!err) {
		srandom((unsigned)atol(argv[3]));
		err = stop(&truth, pid, (unsigned)stops);
	}
	if (err) {
		fprintf(stderr, "truth: %s\n", strerror(-err));
		return 1;
	}
	for (size_t i = 0; i < truth.line_room; i++)
		if (truth.lines[i].text)
			printf("%s %u\n", truth.lines[i].text, truth.lines[i].count);
	fprintf(stderr, "truth: %u stops could not be read\n", truth.unread);
	return 0;
}
