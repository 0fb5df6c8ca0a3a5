/* SPDX-License-Identifier: Apache-2.0 */
/* From a pid to a checked interpreter: which files are mapped, which of them hold a Python, which version, which layout,
 * and does its memory agree? A process may hold several copies (an embedding program and a library, one library mapped
 * twice): the one that runs is taken. */
#include "sampler/discover.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sampler/candidates.h"
#include "sampler/host.h"
#include "sampler/image.h"
#include "sampler/livecheck.h"
#include "sampler/permission.h"
#include "sampler/pyversion.h"

enum {
	DEBUG_WORDS_MAX = 256,
	EXAMINED_MAX = 512, /* files that have nothing to do with Python by their name */
};

/* The best answer so far of the images looked at. */
struct search {
	struct pyproc *proc;
	const struct remote *r;
	const struct proc_stat *stat;
	int err; /* 0, or the most telling failure */
	struct fault fault;
	bool waits_for_python;
};

/* How much a failure tells; the most telling one is reported when there is no success. */
static int telling(int err)
{
	switch (err) {
	case 0:
		return 6;
	case -ESRCH:
		return 5;
	case -EPERM:
		return 4;
	case -ENOTSUP:
		return 3;
	case -EPROTO:
		return 2;
	case -EAGAIN:
		return 1;
	default:
		return 0;
	}
}

/* The layout, from the words that 3.13+ publish or from our tables. */
static int choose_abi(struct pyproc *proc, const struct image *image, const struct remote *r, struct fault *fault)
{
	uint64_t words[DEBUG_WORDS_MAX];
	struct pyversion version;
	const struct pyabi *table;
	ssize_t got = 0;

	if (image->runtime)
		got = remote_read_some(r, image->runtime, words, sizeof(words));
	if (got == -ESRCH || got == -EPERM)
		return (int)got;
	if (got >= 24 && memcmp(&words[0], "xdebugpy", 8) == 0) {
		if (pyversion_from_hex(&version, words[1]))
			return fault_set(fault, -EPROTO, "its memory may be damaged", "its Python gives no version");
		proc->version = version.hex;
		snprintf(proc->version_text, sizeof(proc->version_text), "%s", version.text);
		return pyabi_from_debug_offsets(&proc->abi, words, (size_t)got / 8, fault);
	}
	if (pyversion_of_image(&version, image, r))
		return fault_set(fault, -EAGAIN, "try again in a moment", "its Python is not initialised yet");
	proc->version = version.hex;
	snprintf(proc->version_text, sizeof(proc->version_text), "%s", version.text);
	table = pyabi_table(version.hex >> 16, version.hex >> 8 & 0xff);
	if (!table)
		return fault_set(fault, -ENOTSUP, "", "Python %s is not supported (%s are)", version.text,
		                 pyabi_supported());
	proc->abi = *table;
	return pyabi_validate(table, fault);
}

static raddr_t in_runtime(const struct image *image, int32_t offset)
{
	return offset == ABSENT ? 0 : image->runtime + (raddr_t)offset;
}

static int place(struct pyproc *proc, const struct image *image, struct fault *fault)
{
	const struct pyabi *abi = &proc->abi;

	proc->runtime = image->runtime;
	if (abi->gil == GIL_CURRENT_VAR) {
		proc->interp_head = image->interp_head;
		proc->gil_current = image->tstate_current;
		proc->gil = image->gil_cond;
		proc->collecting = image->collecting;
	} else {
		proc->interp_head = in_runtime(image, abi->runtime.interpreters);
		proc->finalizing = in_runtime(image, abi->runtime.finalizing);
		proc->gil_current = in_runtime(image, abi->runtime.tstate_current);
		proc->gil = in_runtime(image, abi->runtime.gil);
		proc->collecting = in_runtime(image, abi->runtime.collecting);
		if (!image->runtime)
			return fault_set(fault, -EPROTO, "", "Python %s has no _PyRuntime", proc->version_text);
	}
	if (!proc->interp_head)
		return fault_set(fault, -EPROTO, "use a build that is not stripped", "Python %s has no interp_head",
		                 proc->version_text);
	return 0;
}

static void try_candidate(struct search *search, const struct candidate *candidate)
{
	struct pyproc proc = {
		.pid = search->r->pid,
		.parent_pid = search->stat->parent_pid,
		.start_time = search->stat->start_time,
	};
	struct fault fault = {0};
	struct image image;
	int err = image_examine(&image, search->r, candidate, candidate->likely);

	if (err)
		return;
	search->waits_for_python |= image.waits_for_python;
	if (!image.runtime && !image.old_python)
		return;
	err = choose_abi(&proc, &image, search->r, &fault);
	if (err == 0)
		err = place(&proc, &image, &fault);
	if (err == 0)
		err = livecheck(&proc, search->r, &fault);
	if (err && telling(err) <= telling(search->err))
		return;
	search->err = err;
	search->fault = fault;
	if (err)
		return;
	snprintf(proc.found_by, sizeof(proc.found_by), "%s", image.found_by);
	host_of(search->r)->name_file(search->r, candidate->path, proc.binary, sizeof(proc.binary));
	*search->proc = proc;
}

/* First the program and what is called python, then every other file of code. */
static int try_all(struct search *search, const struct candidates *all)
{
	unsigned examined = 0;

	for (size_t i = 0; i < all->count && search->err; i++)
		if (all->items[i].likely)
			try_candidate(search, &all->items[i]);
	for (size_t i = 0; i < all->count && search->err == -ENOEXEC && examined < EXAMINED_MAX; i++) {
		if (all->items[i].likely || !all->items[i].executable)
			continue;
		try_candidate(search, &all->items[i]);
		examined++;
	}
	return search->err;
}

static int gone(struct fault *fault)
{
	return fault_set(fault, -ESRCH, "", "no such process");
}

int discover_open(struct remote *ret_remote, pid_t pid, struct fault *fault)
{
	int err = remote_open(ret_remote, pid);

	if (err == -ESRCH)
		return gone(fault);
	if (err == -EPERM || err == -EACCES)
		return permission_explain(pid, fault);
	return err ? fault_set(fault, err, "", "its memory cannot be opened: %s", strerror(-err)) : 0;
}

int discover(struct pyproc *ret_proc, const struct remote *r, struct fault *fault)
{
	const struct host *host = host_of(r);
	struct proc_stat stat;
	struct pyproc proc = {0};
	struct candidates all = {0};
	struct search search = {.proc = &proc, .r = r, .stat = &stat, .err = -ENOEXEC};
	bool no_memory;
	int err = host->check(r, &stat, fault);

	if (err)
		return err;
	err = candidates_collect(&all, r);
	if (err == 0)
		err = try_all(&search, &all);
	else if (err == -EACCES || err == -EPERM)
		err = permission_explain(r->pid, &search.fault);
	else
		fault_set(&search.fault, err, "", "its mappings cannot be read: %s", strerror(-err));
	/* Its memory can go between two looks since it ends, or since it has another one now. */
	no_memory = err == -ESRCH || (err == -ENOEXEC && all.count == 0);
	if (no_memory && host->is_same(r, stat.start_time))
		err = fault_set(&search.fault, -EAGAIN, "try again in a moment",
		                "it has no memory just now: it ends, or starts another program");
	else if (no_memory)
		err = gone(&search.fault);
	else if (err == -EPERM && !search.fault.err)
		permission_explain(r->pid, &search.fault);
	else if (err == -ENOEXEC && search.waits_for_python)
		err = fault_set(&search.fault, -EAGAIN, "try again in a moment", "its libpython is not loaded yet");
	else if (err == -ENOEXEC && all.pypy)
		fault_set(&search.fault, err, "sampled reads CPython only", "it is a PyPy process, not a CPython");
	else if (err == -ENOEXEC)
		fault_set(&search.fault, err, "", "not a Python process");
	candidates_release(&all);
	if (err == 0)
		err = host->ns_pid(r, &proc.ns_pid);
	if (err) {
		if (fault)
			*fault = search.fault;
		return search.fault.err ? err : fault_set(fault, err, "", "%s", strerror(-err));
	}
	*ret_proc = proc;
	return 0;
}
