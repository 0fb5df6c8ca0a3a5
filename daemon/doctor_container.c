/* SPDX-License-Identifier: Apache-2.0 */
/* What a container lacks, in the words of who starts it: Kubernetes' fields and kubectl's options, or Docker's and Podman's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "daemon/doctor.h"
#include "sampler/permission.h"
#include "sampler/procfs.h"

enum host { NO_CONTAINER, CONTAINER, KUBERNETES };

/* By what the runtimes leave: Kubernetes' variable for its services; Docker's and Podman's files. */
static enum host find_host(void)
{
	if (getenv("KUBERNETES_SERVICE_HOST") || access("/var/run/secrets/kubernetes.io", F_OK) == 0)
		return KUBERNETES;
	return access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0 ? CONTAINER : NO_CONTAINER;
}

/* The first process of a pod's or a host's shared pid namespace is its pause or its init; of a container's own, what it runs. */
static bool sees_others(void)
{
	struct buf first = {0}, own = {0};
	bool others = getpid() != 1 && proc_read_file("/proc/1/cgroup", &first, 4096) == 0 &&
	              proc_read_file("/proc/self/cgroup", &own, 4096) == 0;

	if (others) {
		struct stat root, first_root;

		others = strcmp(buf_text(&first), buf_text(&own)) != 0 ||
		         (stat("/", &root) == 0 && stat("/proc/1/root/", &first_root) == 0 &&
		          (root.st_dev != first_root.st_dev || root.st_ino != first_root.st_ino));
	}
	buf_release(&first);
	buf_release(&own);
	return others;
}

void doctor_container(struct doctor *d)
{
	enum host host = find_host();
	bool is_pod = host == KUBERNETES;
	struct permission permission;

	if (host == NO_CONTAINER)
		return;
	permission_gather(&permission, getpid());
	doctor_line(d, VERDICT_OK, "", is_pod ? "in a Kubernetes pod" : "in a container");
	if (!permission.have_ptrace_cap)
		doctor_line(
			d, VERDICT_WARN,
			is_pod ? "securityContext: {capabilities: {add: [SYS_PTRACE]}}; kubectl debug --profile=general"
			       : "--cap-add=SYS_PTRACE",
			"the container may not read processes of others");
	if (!sees_others())
		doctor_line(d, VERDICT_WARN,
		            is_pod ? "kubectl debug --target=CONTAINER; shareProcessNamespace: true in the pod; "
		                     "hostPID: true "
		                     "for all of the node"
		                   : "--pid=container:NAME, or --pid=host",
		            "the container sees no processes but its own");
	if (access(".", W_OK) != 0)
		doctor_line(d, VERDICT_WARN,
		            is_pod ? "mount an emptyDir and name a file in it with -o; or -o - and > FILE on your side"
		                   : "--tmpfs /tmp and -o /tmp/FILE; or -o - and > FILE on your side",
		            "no file can be written here: %s", strerror(errno));
}
