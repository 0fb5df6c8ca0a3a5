/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/sandbox.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fault.h"
#include "exporters/sandbox_filter.h"

#define CAPABILITY(number) (UINT64_C(1) << (number))

static const uint64_t reader_capabilities = CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_DAC_READ_SEARCH);

/* The sets of the calling thread, a bit a capability. */
struct capability_sets {
	uint64_t effective, permitted, inheritable;
};

/* capget and capset are asked directly: two calls, where libcap-ng would be one more library in the process that reads others. */
static int capabilities_get(struct capability_sets *ret_sets)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	if (syscall(SYS_capget, &header, data) != 0)
		return -errno;
	*ret_sets = (struct capability_sets){
		.effective = data[0].effective | (uint64_t)data[1].effective << 32,
		.permitted = data[0].permitted | (uint64_t)data[1].permitted << 32,
		.inheritable = data[0].inheritable | (uint64_t)data[1].inheritable << 32,
	};
	return 0;
}

static int capabilities_set(const struct capability_sets *sets)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		data[i] = (struct __user_cap_data_struct){
			.effective = (uint32_t)(sets->effective >> (32 * i)),
			.permitted = (uint32_t)(sets->permitted >> (32 * i)),
			.inheritable = (uint32_t)(sets->inheritable >> (32 * i)),
		};
	return syscall(SYS_capset, &header, data) == 0 ? 0 : -errno;
}

/* The bounding set bounds what a program started later could gain. Only CAP_SETPCAP may lower it; who has not got that has
 * no_new_privs to the same end. */
static int bound(uint64_t keep)
{
	for (unsigned number = 0; number < 64; number++) {
		int held = prctl(PR_CAPBSET_READ, number, 0, 0, 0);

		if (held < 0)
			return 0; /* beyond the kernel's last */
		if (held && !(keep & CAPABILITY(number)) && prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0)
			return -errno;
	}
	return 0;
}

/* Leaves at most `keep`. What is so already, as under systemd, costs no call that its filter refuses. */
static int drop_capabilities(uint64_t keep)
{
	struct capability_sets now = {0}, then;
	int err = capabilities_get(&now);

	if (!err && now.effective & CAPABILITY(CAP_SETPCAP))
		err = bound(keep);
	if (err)
		return err;
	/* What is ambient was made so by whoever started us, for us: there is no exec to come. */
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL)
		return -errno;
	then = (struct capability_sets){.effective = now.permitted & keep, .permitted = now.permitted & keep};
	if (now.effective == then.effective && now.permitted == then.permitted && !(now.inheritable & ~keep))
		return 0;
	return capabilities_set(&then);
}

/* The kernel counts the directories of a process' threads as links. */
static bool has_one_thread(void)
{
	struct stat tasks;

	return stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink <= 3;
}

/* No libseccomp, no permission to filter, or none to find out what the kernel can. */
static bool cannot_be_had(int err)
{
	return err == -ENOPKG || err == -EPERM || err == -EOPNOTSUPP;
}

/* Filters stack: ours stands beside systemd's (SystemCallFilter= of our units), which has to let programs start, and beside a container's.
 * Where ours cannot be had, another that stands already has to do. */
static int filter(enum sandbox_kind kind, struct fault *fault)
{
	struct fault why = {0};
	int err = sandbox_filter(kind, &why);

	if (cannot_be_had(err) && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2)
		return 0;
	if (err && fault)
		*fault = why;
	return err;
}

static int give_up(uint64_t keep, struct fault *fault)
{
	int err;

	if (!has_one_thread())
		return fault_set(fault, -EBUSY, NULL, "privileges can only be dropped before there are threads");
	err = drop_capabilities(keep);
	if (err)
		return fault_set(fault, err, NULL, "cannot drop capabilities: %s", strerror(-err));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return fault_set(fault, -errno, NULL, "cannot give up new privileges: %s", strerror(errno));
	return 0;
}

static int confine(uint64_t keep, enum sandbox_kind kind, struct fault *fault)
{
	int err = give_up(keep, fault);

	return err ? err : filter(kind, fault);
}

int sandbox_reader(bool may_trace, struct fault *fault)
{
	return confine(reader_capabilities, may_trace ? SANDBOX_TRACER : SANDBOX_READER, fault);
}

int sandbox_pusher(struct fault *fault)
{
	return confine(0, SANDBOX_PUSHER, fault);
}

int sandbox_namer(struct fault *fault)
{
	return confine(0, SANDBOX_NAMER, fault);
}

int sandbox_give_up(struct fault *fault)
{
	return give_up(0, fault);
}
