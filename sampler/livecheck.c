/* SPDX-License-Identifier: Apache-2.0 */
/* One look: every interpreter reached, every thread state of it pointing back, the GIL's fields of believable value, and
 * what the current frames run being code objects. */
#include "sampler/livecheck.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum {
	INTERPRETERS_MAX = 1024,
	THREADS_MAX = 65536,
	FRAMES_LOOKED_AT = 32,
	LOOKS = 10,
	LOOK_PAUSE_NS = 1000 * 1000,
};

struct look {
	const struct pyproc *proc;
	const struct remote *r;
	unsigned threads;
	unsigned good_frames, bad_frames;
	const char *wrong; /* what was, for the message */
};

static int wrong(struct look *look, const char *what)
{
	look->wrong = what;
	return -EPROTO;
}

/* A pointer at base + offset; pointers of the interpreter are aligned. */
static int read_pointer(struct look *look, raddr_t base, int32_t offset, raddr_t *ret_pointer)
{
	int err = remote_read_u64(look->r, base + (raddr_t)offset, ret_pointer);

	return err == -EFAULT ? -EPROTO : err;
}

/* Is it a code object, or the None that shims of 3.13+ hold? */
static bool runs_code(struct look *look, raddr_t frame)
{
	const struct pyabi *abi = &look->proc->abi;
	raddr_t code, type, name;
	char text[16] = "";

	if (read_pointer(look, frame, abi->frame.code, &code))
		return false;
	code &= ~(raddr_t)7; /* 3.14+ tags references; objects are aligned in all versions */
	if (read_pointer(look, code, abi->type.type, &type) || read_pointer(look, type, abi->type.name, &name) ||
	    remote_read_some(look->r, name, text, sizeof(text) - 1) <= 0)
		return false;
	return strcmp(text, "code") == 0 || strcmp(text, "NoneType") == 0;
}

static void look_at_frame(struct look *look, raddr_t tstate)
{
	const struct pyabi *abi = &look->proc->abi;
	raddr_t frame;

	if (look->good_frames + look->bad_frames >= FRAMES_LOOKED_AT)
		return;
	if (abi->tstate.frame != ABSENT) {
		if (read_pointer(look, tstate, abi->tstate.frame, &frame))
			return;
	} else if (read_pointer(look, tstate, abi->tstate.cframe, &frame) || !frame ||
	           read_pointer(look, frame, abi->tstate.cframe_frame, &frame)) {
		return;
	}
	if (!frame)
		return;
	if (runs_code(look, frame))
		look->good_frames++;
	else
		look->bad_frames++;
}

static int look_at_threads(struct look *look, raddr_t interp)
{
	const struct pyabi *abi = &look->proc->abi;
	raddr_t tstate, back;
	int err = read_pointer(look, interp, abi->interp.threads, &tstate);

	while (err == 0 && tstate) {
		if (look->threads++ >= THREADS_MAX || tstate % 8)
			return wrong(look, "its list of threads");
		err = read_pointer(look, tstate, abi->tstate.interp, &back);
		if (err == 0 && back != interp)
			return wrong(look, "its list of threads");
		look_at_frame(look, tstate);
		if (err == 0)
			err = read_pointer(look, tstate, abi->tstate.next, &tstate);
	}
	return err == -EPROTO ? wrong(look, "its list of threads") : err;
}

/* `locked` is 0 or 1, and -1 before the GIL is made. */
static int look_at_gil(struct look *look, raddr_t gil)
{
	int32_t locked;
	int err = remote_read_i32(look->r, gil + (raddr_t)look->proc->abi.gil_state.locked, &locked);

	if (err == -EFAULT || (err == 0 && (locked < -1 || locked > 1)))
		return wrong(look, "its GIL");
	return err;
}

static int look_at_interpreters(struct look *look)
{
	const struct pyabi *abi = &look->proc->abi;
	raddr_t interp, gil;
	unsigned count = 0;
	int err = read_pointer(look, look->proc->interp_head, 0, &interp);

	if (err == 0 && !interp)
		return -EAGAIN;
	while (err == 0 && interp) {
		if (count++ >= INTERPRETERS_MAX || interp % 8)
			return wrong(look, "its list of interpreters");
		err = look_at_threads(look, interp);
		if (err == 0 && abi->interp.gil != ABSENT) {
			err = read_pointer(look, interp, abi->interp.gil, &gil);
			if (err == 0 && gil)
				err = look_at_gil(look, gil);
		}
		if (err == 0)
			err = read_pointer(look, interp, abi->interp.next, &interp);
	}
	if (err == -EPROTO && !look->wrong)
		look->wrong = "its list of interpreters";
	return err;
}

/* The GIL's holder, where a global names it: nobody, or a thread state of some interpreter. */
static int look_at_holder(struct look *look)
{
	raddr_t holder, interp, next;
	int err = read_pointer(look, look->proc->gil_current, 0, &holder);

	if (err || !holder)
		return err == -EPROTO ? wrong(look, "the GIL's holder") : err;
	if (holder % 8 || read_pointer(look, holder, look->proc->abi.tstate.interp, &interp) || !interp || interp % 8 ||
	    read_pointer(look, interp, look->proc->abi.interp.next, &next))
		return wrong(look, "the GIL's holder");
	return 0;
}

static int look_once(struct look *look)
{
	int err = look_at_interpreters(look);

	if (err)
		return err;
	if (look->threads == 0)
		return -EAGAIN;
	if (look->good_frames == 0 && look->bad_frames)
		return wrong(look, "its frames");
	if (look->proc->gil)
		err = look->proc->abi.gil_state.locked == ABSENT ? 0 : look_at_gil(look, look->proc->gil);
	if (err == 0 && look->proc->gil_current)
		err = look_at_holder(look);
	return err;
}

int livecheck(const struct pyproc *proc, const struct remote *r, struct fault *fault)
{
	const struct timespec pause = {.tv_nsec = LOOK_PAUSE_NS};
	const struct pyabi *abi = &proc->abi;
	unsigned patch = proc->version & 0xff;
	const char *hint = patch < abi->patch_first || patch > abi->patch_last
	                           ? "this release has not been tested; its layout seems to differ"
	                           : "its memory may be damaged, or it is a modified build";
	struct look look;
	int err = 0;

	for (int i = 0; i < LOOKS; i++) {
		look = (struct look){.proc = proc, .r = r};
		err = look_once(&look);
		if (err != -EPROTO && err != -EAGAIN)
			break;
		nanosleep(&pause, NULL);
	}
	if (err == -EPROTO)
		return fault_set(fault, err, hint, "Python %s is in it, but %s could not be made out",
		                 proc->version_text, look.wrong);
	if (err == -EAGAIN)
		return fault_set(fault, err, "try again in a moment", "its Python %s is not initialised yet",
		                 proc->version_text);
	return err;
}
