/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc tells of a process that may be profiled, and the rule it falls under. */
#include "daemon/rules.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ID_A "3f4e1a7b0c5d6e8f9a0b1c2d3e4f5061728394a5b6c7d8e9f0a1b2c3d4e5f607"
#define ID_B "a0b1c2d3e4f5061728394a5b6c7d8e9f0a1b2c3d4e5f6073f4e1a7b0c5d6e8f9"
#define POD  "pod3c9d5a52-6a7c-4c8e-8f62-0d4f6b1c2e11"
#define POD_ "pod3c9d5a52_6a7c_4c8e_8f62_0d4f6b1c2e11"

static const struct {
	const char *text, *cgroup, *unit, *container;
} cgroups[] = {
	/* a service, version 2 */
	{"0::/system.slice/nginx.service\n", "/system.slice/nginx.service", "nginx.service", ""},
	/* a session */
	{"0::/user.slice/user-1000.slice/session-3.scope\n", "/user.slice/user-1000.slice/session-3.scope",
         "session-3.scope", ""},
	/* systemd --user */
	{"0::/user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service\n",
         "/user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service", "jupyter.service", ""},
	/* Docker, version 2, by systemd; version 1, by itself; a mixture, whose version 2 is that of containerd */
	{"0::/system.slice/docker-" ID_A ".scope\n", "/system.slice/docker-" ID_A ".scope", "docker-" ID_A ".scope",
         ID_A},
	{"12:pids:/docker/" ID_A "\n11:cpu,cpuacct:/docker/" ID_A "\n1:name=systemd:/docker/" ID_A "\n",
         "/docker/" ID_A, "", ID_A},
	{"2:memory:/docker/" ID_A "\n1:name=systemd:/docker/" ID_A "\n0::/system.slice/containerd.service\n",
         "/docker/" ID_A, "", ID_A},
	/* Podman: of root; of a user; by itself; its monitor */
	{"0::/machine.slice/libpod-" ID_A ".scope/container\n", "/machine.slice/libpod-" ID_A ".scope/container",
         "libpod-" ID_A ".scope", ID_A},
	{"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID_A ".scope\n",
         "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID_A ".scope", "libpod-" ID_A ".scope",
         ID_A},
	{"0::/libpod_parent/libpod-" ID_A "\n", "/libpod_parent/libpod-" ID_A, "", ID_A},
	{"0::/machine.slice/libpod-conmon-" ID_A ".scope\n", "/machine.slice/libpod-conmon-" ID_A ".scope",
         "libpod-conmon-" ID_A ".scope", ""},
	/* Kubernetes: containerd by systemd, by itself, and through its plain driver; CRI-O; its monitor */
	{"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-" POD_ ".slice/cri-containerd-" ID_A
         ".scope\n",
         "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-" POD_ ".slice/cri-containerd-" ID_A ".scope",
         "cri-containerd-" ID_A ".scope", ID_A},
	{"4:memory:/kubepods/besteffort/" POD "/" ID_A "\n1:name=systemd:/kubepods/besteffort/" POD "/" ID_A "\n",
         "/kubepods/besteffort/" POD "/" ID_A, "", ID_A},
	{"0::/system.slice/containerd.service/kubepods-burstable-" POD_ ".slice:cri-containerd:" ID_A "\n",
         "/system.slice/containerd.service/kubepods-burstable-" POD_ ".slice:cri-containerd:" ID_A,
         "containerd.service", ID_A},
	{"0::/kubepods.slice/kubepods-" POD_ ".slice/crio-" ID_A ".scope\n",
         "/kubepods.slice/kubepods-" POD_ ".slice/crio-" ID_A ".scope", "crio-" ID_A ".scope", ID_A},
	{"0::/kubepods.slice/kubepods-" POD_ ".slice/crio-conmon-" ID_A ".scope\n",
         "/kubepods.slice/kubepods-" POD_ ".slice/crio-conmon-" ID_A ".scope", "crio-conmon-" ID_A ".scope", ""},
	/* Kubernetes in Docker: the innermost */
	{"0::/system.slice/docker-" ID_A ".scope/kubelet.slice/kubelet-kubepods.slice/cri-containerd-" ID_B ".scope\n",
         "/system.slice/docker-" ID_A ".scope/kubelet.slice/kubelet-kubepods.slice/cri-containerd-" ID_B ".scope",
         "cri-containerd-" ID_B ".scope", ID_B},
	/* systemd-nspawn: by hand; as a service; a service in it */
	{"0::/machine.slice/machine-debian\\x2dtree.scope/payload\n",
         "/machine.slice/machine-debian\\x2dtree.scope/payload", "machine-debian\\x2dtree.scope", "debian-tree"},
	{"0::/machine.slice/systemd-nspawn@web.service/payload/system.slice/app.service\n",
         "/machine.slice/systemd-nspawn@web.service/payload/system.slice/app.service", "app.service", "web"},
	/* LXC: 4 and later, and older */
	{"0::/lxc.payload.build1/system.slice/cron.service\n", "/lxc.payload.build1/system.slice/cron.service",
         "cron.service", "build1"},
	{"3:cpu:/lxc/build1\n1:name=systemd:/lxc/build1\n", "/lxc/build1", "", "build1"},
	{"0::/lxc.monitor.build1\n", "/lxc.monitor.build1", "", ""},
	/* version 1 and a mixture */
	{"11:devices:/system.slice/cron.service\n1:name=systemd:/system.slice/cron.service\n0::/system.slice/"
         "cron.service\n",
         "/system.slice/cron.service", "cron.service", ""},
	{"9:name=systemd:/\n4:memory:/jobs/1\n0::/\n", "/jobs/1", "", ""},
	{"0::/\n", "/", "", ""},
	/* what is no such line */
	{"", "", "", ""},
	{"garbage\n0:\n::\n:::\n1:x:relative\n", "", "", ""},
	{"0::/a/.service/.scope/x.service", "/a/.service/.scope/x.service", "x.service", ""},
	{"0::/docker/" ID_A "0\n", "/docker/" ID_A "0", "", ""},
};

Test(rules, cgroups)
{
	static struct candidate c;

	for (size_t i = 0; i < sizeof(cgroups) / sizeof(cgroups[0]); i++) {
		candidate_parse_cgroup(&c, cgroups[i].text, strlen(cgroups[i].text));
		cr_assert_str_eq(c.cgroup, cgroups[i].cgroup);
		cr_assert_str_eq(c.unit, cgroups[i].unit, "%s: %s", cgroups[i].text, c.unit);
		cr_assert_str_eq(c.container, cgroups[i].container, "%s: %s", cgroups[i].text, c.container);
	}
}

Test(rules, cgroups_are_bounded_and_clean)
{
	static struct candidate c;
	static char text[8192] = "0::/\x1b[2J\xff/";

	memset(text + strlen(text), 'x', 5000);
	strcat(text, "\xc3\xa9.service\n");
	candidate_parse_cgroup(&c, text, strlen(text));
	cr_assert_eq(strncmp(c.cgroup, "/\xef\xbf\xbd[2J\xef\xbf\xbd/xx", 13), 0);
	cr_assert_eq(strlen(c.cgroup), sizeof(c.cgroup) - 1);
	cr_assert_eq(strlen(c.unit), sizeof(c.unit) - 1);
}

Test(rules, a_process_of_ones_own)
{
	static struct candidate c;
	char self[4096];
	ssize_t bytes = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int pipes[2], status;
	char go;
	pid_t pid;

	cr_assert_gt(bytes, 0);
	self[bytes] = '\0';
	cr_assert_eq(pipe(pipes), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "a) b\n\x1b");
		if (getuid() == 0 && setreuid(0, 4711))
			_exit(1);
		(void)!write(pipes[1], "x", 1);
		pause();
		_exit(0);
	}
	cr_assert_eq(read(pipes[0], &go, 1), 1);
	cr_assert_eq(candidate_read(pid, &c), 0);
	cr_assert_eq(c.pid, pid);
	cr_assert_gt(c.start_time, 0);
	cr_assert_eq(c.uid, getuid() == 0 ? 4711 : geteuid(), "the effective one");
	cr_assert_str_eq(c.executable, self);
	cr_assert(c.command_line[0]);
	cr_assert_eq(strncmp(c.comm, "a) b", 4), 0);
	cr_assert(!strchr(c.comm, '\x1b') && !strchr(c.comm, '\n'));
	cr_assert_eq(c.version, 0);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	cr_assert_eq(candidate_read(pid, &c), -ESRCH);
}

static void say(void *context, const struct fault *fault)
{
	(void)context;
	cr_log_error("%s", fault->why);
}

static struct config *read_rules(const char *text)
{
	char path[] = "/tmp/test_rules.XXXXXX/sampled.conf";
	struct config *config = NULL;
	FILE *file;

	path[22] = '\0';
	cr_assert(mkdtemp(path));
	path[22] = '/';
	file = fopen(path, "w");
	cr_assert(file);
	fputs(text, file);
	fclose(file);
	cr_assert_eq(config_read(&config, path, say, NULL), 0);
	unlink(path);
	path[22] = '\0';
	rmdir(path);
	return config;
}

Test(rules, the_first_that_matches_decides)
{
	struct config *config = read_rules("[rule quiet]\ncommand = \"*manage.py shell*\" *pytest*\naction = exclude\n"
	                                   "[rule web]\nunit = web@*.service\nuser = 33 0\n"
	                                   "[rule boxes]\ncontainer = *\nexecutable = /usr/*\n"
	                                   "[rule old]\nversion = 3.6 3.8-3.10\ncgroup = /system.slice/*\n"
	                                   "[rule new]\nversion = 3.13\n");
	struct candidate c = {.command_line = "python3 app.py", .executable = "/usr/bin/python3", .uid = 33};

	strcpy(c.unit, "web@1.service");
	cr_assert_eq(rules_match(config, &c), 1);
	c.uid = 34;
	cr_assert_eq(rules_match(config, &c), RULES_NEEDS_VERSION);
	strcpy(c.container, ID_A);
	cr_assert_eq(rules_match(config, &c), 2);
	strcpy(c.command_line, "python3 manage.py shell");
	cr_assert_eq(rules_match(config, &c), RULES_EXCLUDED);
	strcpy(c.command_line, "python3 x");
	c.container[0] = '\0';
	c.version = 3 << 8 | 9;
	cr_assert_eq(rules_match(config, &c), RULES_NONE, "in no such cgroup");
	strcpy(c.cgroup, "/system.slice/x.service");
	cr_assert_eq(rules_match(config, &c), 3);
	c.version = 3 << 8 | 7;
	cr_assert_eq(rules_match(config, &c), RULES_NONE);
	c.version = 3 << 8 | 13;
	cr_assert_eq(rules_match(config, &c), 4);
	config_free(config);
}

Test(rules, without_any_all_are_taken)
{
	struct config *config = read_rules("");
	struct candidate c = {0};

	cr_assert_eq(rules_match(config, &c), 0);
	config_free(config);
}
