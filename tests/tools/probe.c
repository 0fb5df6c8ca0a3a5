/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what discover() finds in a process, and checks it against what the kernel says: `probe PID`. Every thread state
 * with a native id must be a task of the process. Exit: 0 found, else the errno of the failure. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sampler/discover.h"
#include "sampler/procfs.h"
#include "sampler/pyobj.h"

enum {
	GLIBC_TID_OFFSET = 720, /* of the kernel's id in glibc's struct pthread, x86-64 */
	THREADS_SHOWN_MAX = 4096,
};

static raddr_t pointer_at(const struct remote *r, raddr_t addr)
{
	uint64_t value;

	return remote_read_u64(r, addr, &value) ? 0 : value;
}

/* "qualified name (file)" of the frame's code, or "-". */
static void print_frame(const struct pyproc *proc, const struct remote *r, raddr_t frame)
{
	const struct pyabi *abi = &proc->abi;
	int32_t name_off = abi->code.qualname == ABSENT ? abi->code.name : abi->code.qualname;
	char name[256] = "-", file[256] = "-";
	raddr_t code;

	if (frame) {
		code = pointer_at(r, frame + (raddr_t)abi->frame.code) & ~(raddr_t)7;
		pyobj_str(r, abi, pointer_at(r, code + (raddr_t)name_off), name, sizeof(name), NULL);
		pyobj_str(r, abi, pointer_at(r, code + (raddr_t)abi->code.filename), file, sizeof(file), NULL);
	}
	printf("%s (%s)", name, file);
}

/* false: the thread state names a task that the process does not have. */
static bool print_thread(const struct pyproc *proc, const struct remote *r, raddr_t tstate)
{
	const struct pyabi *abi = &proc->abi;
	raddr_t thread_id = pointer_at(r, tstate + (raddr_t)abi->tstate.thread_id);
	raddr_t frame;
	uint64_t ns_tid;
	int32_t tid32 = 0;
	pid_t tid = 0;

	if (abi->tstate.native_thread_id != ABSENT) {
		ns_tid = pointer_at(r, tstate + (raddr_t)abi->tstate.native_thread_id);
	} else {
		(void)remote_read_i32(r, thread_id + GLIBC_TID_OFFSET, &tid32);
		ns_tid = (uint64_t)(uint32_t)tid32;
	}
	if (abi->tstate.frame != ABSENT)
		frame = pointer_at(r, tstate + (raddr_t)abi->tstate.frame);
	else
		frame = pointer_at(r, pointer_at(r, tstate + (raddr_t)abi->tstate.cframe) + (raddr_t)abi->tstate.cframe_frame);
	if (ns_tid == 0 || ns_tid > INT32_MAX || proc_ns_tid(proc->pid, (pid_t)ns_tid, &tid))
		tid = -1;
	printf("    thread %d (%" PRIu64 " inside): ", (int)tid, ns_tid);
	print_frame(proc, r, frame);
	putchar('\n');
	return tid > 0;
}

static int print_interpreters(const struct pyproc *proc, const struct remote *r)
{
	const struct pyabi *abi = &proc->abi;
	raddr_t interp = pointer_at(r, proc->interp_head);
	unsigned threads = 0, unknown = 0;

	for (unsigned i = 0; interp && i < 256; i++) {
		raddr_t id = abi->interp.id == ABSENT ? 0 : pointer_at(r, interp + (raddr_t)abi->interp.id);
		raddr_t tstate = pointer_at(r, interp + (raddr_t)abi->interp.threads);

		printf("  interpreter %" PRIu64 "\n", id);
		for (; tstate && threads < THREADS_SHOWN_MAX; threads++) {
			unknown += !print_thread(proc, r, tstate);
			tstate = pointer_at(r, tstate + (raddr_t)abi->tstate.next);
		}
		interp = pointer_at(r, interp + (raddr_t)abi->interp.next);
	}
	printf("  %u threads, %u of them unknown to the kernel\n", threads, unknown);
	return threads && !unknown ? 0 : EPROTO;
}

int main(int argc, char **argv)
{
	struct fault fault = {0};
	struct remote remote;
	struct pyproc proc;
	pid_t pid = argc == 2 ? atoi(argv[1]) : 0;
	int err;

	if (pid <= 0) {
		fprintf(stderr, "usage: probe PID\n");
		return EINVAL;
	}
	err = discover_open(&remote, pid, &fault);
	if (err == 0) {
		err = discover(&proc, &remote, &fault);
		if (err)
			remote_release(&remote);
	}
	if (err) {
		fprintf(stderr, "probe: cannot read process %d: %s (%s)\n", (int)pid, fault.why, fault.hint);
		return -err;
	}
	printf("Python %s in %s\n  found by %s\n  pid %d, inside %d, parent %d\n", proc.version_text, proc.binary, proc.found_by,
	       (int)proc.pid, (int)proc.ns_pid, (int)proc.parent_pid);
	err = print_interpreters(&proc, &remote);
	remote_release(&remote);
	return err;
}
