/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/sandbox_filter.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/fault.h"
#include "base/library.h"

/* LeakSanitizer stops its own process at the end, with a helper that is no thread. */
#ifdef __SANITIZE_ADDRESS__
static const bool sanitized = true;
#else
static const bool sanitized = false;
#endif

/* What of libseccomp is used. */
struct library {
	__typeof__(seccomp_init) *init;
	__typeof__(seccomp_release) *release;
	__typeof__(seccomp_load) *load;
	__typeof__(seccomp_attr_set) *attr_set;
	__typeof__(seccomp_rule_add_array) *rule_add;
	__typeof__(seccomp_syscall_resolve_name) *number_of;
};

static const struct library_function functions[] = {
	LIBRARY_FUNCTION(struct library, init, seccomp_init),
	LIBRARY_FUNCTION(struct library, release, seccomp_release),
	LIBRARY_FUNCTION(struct library, load, seccomp_load),
	LIBRARY_FUNCTION(struct library, attr_set, seccomp_attr_set),
	LIBRARY_FUNCTION(struct library, rule_add, seccomp_rule_add_array),
	LIBRARY_FUNCTION(struct library, number_of, seccomp_syscall_resolve_name),
};

/* Allowed whatever their arguments: names, a blank between two. For all kinds; the C library's own needs are among them. */
static const char common_calls[] =
	/* files */
	"read readv pread64 preadv write writev pwrite64 pwritev lseek close close_range open openat stat "
	"fstat lstat newfstatat statx statfs fstatfs access faccessat faccessat2 readlink readlinkat "
	"getdents64 getcwd rename renameat utimensat renameat2 link linkat unlink unlinkat mkdir mkdirat rmdir "
	"ftruncate fallocate fadvise64 fsync fdatasync flock chmod fchmod fchmodat umask fcntl dup dup2 dup3 pipe2 "
	"memfd_create copy_file_range sendfile "
	/* waiting */
	"poll ppoll select pselect6 epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2 timerfd_create "
	"timerfd_settime timerfd_gettime signalfd4 inotify_init1 inotify_add_watch inotify_rm_watch nanosleep "
	"clock_nanosleep clock_gettime clock_getres gettimeofday time restart_syscall "
	/* sockets, once they are there */
	"bind listen accept accept4 connect getsockopt setsockopt getsockname getpeername sendto sendmsg "
	"recvfrom recvmsg shutdown "
	/* memory, threads, signals to oneself */
	"brk munmap mremap madvise mincore futex membarrier set_robust_list set_tid_address rseq arch_prctl "
	"exit exit_group tgkill rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait "
	"sigaltstack sched_yield sched_getaffinity sched_getattr sched_getparam sched_getscheduler sched_get_priority_max "
	"sched_get_priority_min getcpu "
	/* what one is */
	"getpid gettid getppid getuid geteuid getgid getegid getresuid getresgid getgroups getrlimit "
	"getrusage times uname sysinfo getrandom prctl capget";

static const char reader_calls[] = "process_vm_readv pidfd_open splice"; /* the last into pipes that clients pass */
static const char tracer_calls[] = "ptrace wait4 waitid";
static const char pusher_calls[] = "sendmmsg recvmmsg";
/* All that a namer may do: files are opened for reading alone, see below. */
static const char namer_calls[] = "read readv pread64 preadv write writev lseek close fstat newfstatat statx lstat "
				  "stat fcntl poll ppoll clock_gettime "
				  "gettimeofday sendto sendmsg recvfrom recvmsg brk munmap mremap madvise futex "
				  "set_robust_list rseq exit exit_group "
				  "tgkill rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack sched_yield getpid "
				  "gettid getppid getuid geteuid getgid "
				  "getegid getrlimit getrusage sysinfo getrandom readlink readlinkat restart_syscall";
static const char sanitizer_calls[] = "clone getdents ptrace wait4";

/* Allowed where one argument is, under a mask, a value. */
static const struct condition {
	const char *call;
	unsigned argument;
	uint64_t mask, value;
} common_conditions[] = {
	/* threads, but no processes; clone3 is refused apart, for its arguments cannot be seen */
	{"clone", 0, CLONE_THREAD, CLONE_THREAD},
	/* memory that is written is never run */
	{"mmap", 2, PROT_EXEC, 0},
	{"mmap", 2, PROT_WRITE, 0},
	{"mprotect", 2, PROT_EXEC, 0},
	/* of oneself */
	{"prlimit64", 0, UINT32_MAX, 0},
	{"sched_setaffinity", 0, UINT32_MAX, 0},
	{"sched_setattr", 0, UINT32_MAX, 0},
	{"ioctl", 1, UINT32_MAX, TCGETS},
	{"ioctl", 1, UINT32_MAX, TIOCGWINSZ},
	{"ioctl", 1, UINT32_MAX, FIONREAD},
	{"ioctl", 1, UINT32_MAX, FIONBIO},
	{"socket", 0, UINT32_MAX, AF_UNIX},
	{"socketpair", 0, UINT32_MAX, AF_UNIX},
};

static const struct condition namer_conditions[] = {
	{"openat", 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY},
	{"open", 1, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY},
	{"mmap", 2, PROT_EXEC, 0},
	{"mprotect", 2, PROT_EXEC, 0},
	{"prlimit64", 0, UINT32_MAX, 0},
	{"ioctl", 1, UINT32_MAX, TCGETS},
};

static const struct condition pusher_conditions[] = {
	{"socket", 0, UINT32_MAX, AF_INET},
	{"socket", 0, UINT32_MAX, AF_INET6},
};

/* A filter in the making. */
struct filter {
	const struct library *library;
	scmp_filter_ctx context;
	int err; /* of the first rule that failed; sticky */
};

static void add(struct filter *f, uint32_t action, const char *call, unsigned count, const struct scmp_arg_cmp *compare)
{
	int number = f->library->number_of(call);

	/* A name that this libseccomp does not know stays refused; a call that this machine has not got (open, on aarch64) is left
	 * out by the library. */
	if (f->err || number == __NR_SCMP_ERROR)
		return;
	f->err = f->library->rule_add(f->context, action, number, count, compare);
}

static void allow_calls(struct filter *f, const char *calls)
{
	char call[32];

	while (*calls) {
		size_t length = strcspn(calls, " ");

		snprintf(call, sizeof(call), "%.*s", (int)length, calls);
		add(f, SCMP_ACT_ALLOW, call, 0, NULL);
		calls += length;
		calls += *calls == ' ';
	}
}

static void allow_conditions(struct filter *f, const struct condition *conditions, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct condition *c = &conditions[i];
		const struct scmp_arg_cmp compare = {
			.arg = c->argument,
			.op = SCMP_CMP_MASKED_EQ,
			.datum_a = c->mask,
			.datum_b = c->value,
		};

		add(f, SCMP_ACT_ALLOW, c->call, 1, &compare);
	}
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void allow_all_of(struct filter *f, enum sandbox_kind kind)
{
	if (sanitized)
		allow_calls(f, sanitizer_calls);
	if (kind == SANDBOX_NAMER) {
		allow_calls(f, namer_calls);
		allow_conditions(f, namer_conditions, COUNT(namer_conditions));
		return;
	}
	allow_calls(f, common_calls);
	allow_conditions(f, common_conditions, COUNT(common_conditions));
	/* As from a kernel without it: the C library then makes threads by clone. */
	add(f, SCMP_ACT_ERRNO(ENOSYS), "clone3", 0, NULL);
	if (kind == SANDBOX_PUSHER) {
		allow_calls(f, pusher_calls);
		allow_conditions(f, pusher_conditions, COUNT(pusher_conditions));
	} else {
		allow_calls(f, reader_calls);
	}
	if (kind == SANDBOX_TRACER)
		allow_calls(f, tracer_calls);
}

static int build_and_load(const struct library *library, enum sandbox_kind kind)
{
	struct filter f = {.library = library, .context = library->init(SCMP_ACT_ERRNO(EPERM))};

	if (!f.context)
		return -ENOMEM;
	f.err = library->attr_set(f.context, SCMP_FLTATR_CTL_TSYNC, 1);
	/* The kernel's errors as they are. */
	(void)library->attr_set(f.context, SCMP_FLTATR_API_SYSRAWRC, 1);
	/* A binary tree of numbers instead of a list. Libraries before 2.5 know neither. */
	(void)library->attr_set(f.context, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	allow_all_of(&f, kind);
	if (!f.err)
		f.err = library->load(f.context);
	library->release(f.context);
	return f.err;
}

int sandbox_filter(enum sandbox_kind kind, struct fault *fault)
{
	struct library library;
	void *handle;
	int err;

	if (library_open("libseccomp.so.2", functions, COUNT(functions), &library, &handle, NULL) < 0)
		return fault_set(fault, -ENOPKG, library_hint("install libseccomp2"),
		                 "system calls are not filtered: no libseccomp.so.2");
	err = build_and_load(&library, kind);
	library_close(handle);
	return err ? fault_set(fault, err, NULL, "cannot filter system calls: %s", strerror(-err)) : 0;
}
