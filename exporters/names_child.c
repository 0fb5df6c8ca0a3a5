/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/names_child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "exporters/names_library.h"
#include "exporters/sandbox.h"

#define ASK_MAX_NS (40 * NS_PER_S) /* what a worker may take for one ASK, a download in it included */

enum {
	WORKERS_MAX = 8, /* that end before their time */
	NOBODY = 65534,
	FILES_MAX = 3 * WIRE_MODULES_MAX + 64,
};

struct supervisor {
	int socket_fd, fetch_fd;
	struct child_module *modules;
	pid_t worker; /* 0: none */
	int worker_fd;
	bool stale; /* modules came since it was forked */
	unsigned lost_workers;
	struct wire_head asked; /* of what it works on; type 0: nothing */
	uint64_t deadline_ns;
	union wire_message message;
};

void names_close_others(int fd, int other_fd)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	unsigned low = (unsigned)(fd < other_fd ? fd : other_fd), high = (unsigned)(fd < other_fd ? other_fd : fd);

	for (int standard = 0; null_fd >= 0 && standard < 3; standard++)
		if (standard != fd && standard != other_fd)
			dup2(null_fd, standard);
	if (fd < 0 || other_fd < 0)
		low = high;
	if (low > 3)
		close_range(3, low - 1, 0);
	if (high > low + 1)
		close_range(low + 1 > 3 ? low + 1 : 3, high - 1, 0);
	close_range(high + 1 > 3 ? high + 1 : 3, ~0U, 0);
}

/* Root's child is the user who asked for it with sudo, or nobody. Where that is not allowed (a user namespace without others) it goes on without
 * capabilities all the same. */
static void change_user(void)
{
	const char *uid_text = getenv("SUDO_UID"), *gid_text = getenv("SUDO_GID");
	unsigned long uid = uid_text ? strtoul(uid_text, NULL, 10) : 0,
		      gid = gid_text ? strtoul(gid_text, NULL, 10) : 0;
	bool known = uid > 0 && uid < UINT32_MAX && gid > 0 && gid < UINT32_MAX;

	if (geteuid() != 0)
		return;
	(void)!setgroups(0, NULL);
	(void)!setresgid(known ? (gid_t)gid : NOBODY, known ? (gid_t)gid : NOBODY, known ? (gid_t)gid : NOBODY);
	(void)!setresuid(known ? (uid_t)uid : NOBODY, known ? (uid_t)uid : NOBODY, known ? (uid_t)uid : NOBODY);
}

/* --- the worker --- */

static void end_worker(struct supervisor *s)
{
	if (!s->worker)
		return;
	kill(s->worker, SIGKILL);
	while (waitpid(s->worker, NULL, 0) < 0 && errno == EINTR)
		;
	close(s->worker_fd);
	s->worker = 0;
}

static int start_worker(struct supervisor *s)
{
	pid_t parent = getpid();
	int pair[2];

	if (s->lost_workers >= WORKERS_MAX)
		return -ECHILD;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return -errno;
	s->worker = fork();
	if (s->worker == 0) {
		close(pair[0]);
		close(s->socket_fd);
		names_worker(pair[1], s->fetch_fd, s->modules, parent);
	}
	close(pair[1]);
	if (s->worker < 0) {
		s->worker = 0;
		close(pair[0]);
		return -EAGAIN;
	}
	s->worker_fd = pair[0];
	s->stale = false;
	return 0;
}

/* The rest of what was asked is not known. */
static void answer_nothing(struct supervisor *s)
{
	struct wire_head done = {WIRE_DONE, s->asked.module, s->asked.sequence, 0};

	s->asked.type = 0;
	(void)wire_send(s->socket_fd, &done, sizeof(done), NULL, true);
}

static void lose_worker(struct supervisor *s)
{
	end_worker(s);
	if (!s->asked.type)
		return;
	s->lost_workers++;
	s->modules[s->asked.module].bad = true;
	answer_nothing(s);
}

/* --- messages --- */

static void take_module(struct supervisor *s, const struct wire_add *add, const int fds[WIRE_FDS])
{
	struct child_module *module = &s->modules[add->head.module];
	unsigned at = 0;

	if (module->path) { /* a number is used once */
		for (unsigned i = 0; i < WIRE_FDS; i++)
			if (fds[i] >= 0)
				close(fds[i]);
		return;
	}
	*module =
		(struct child_module){.build_id_bytes = add->build_id_bytes, .flags = add->flags, .start = add->start};
	module->path = strndup(add->text, add->path_bytes);
	memcpy(module->build_id, add->text + add->path_bytes, add->build_id_bytes);
	module->fd = add->has & WIRE_HAS_FILE ? fds[at++] : -1;
	module->root_fd = add->has & WIRE_HAS_ROOT ? fds[at++] : -1;
	module->perf_map_fd = add->has & WIRE_HAS_PERF_MAP ? fds[at] : -1;
	s->stale = true;
}

static void take_ask(struct supervisor *s, size_t bytes)
{
	const struct child_module *module = &s->modules[s->message.head.module];

	s->asked = s->message.head;
	s->deadline_ns = clock_now_ns() + ASK_MAX_NS;
	if (s->worker && s->stale)
		end_worker(s);
	if (!module->path || module->bad || (!s->worker && start_worker(s)))
		answer_nothing(s);
	else if (wire_send(s->worker_fd, &s->message, bytes, NULL, true))
		lose_worker(s);
}

/* False: the asking side is gone, or makes no sense. */
static bool take_request(struct supervisor *s)
{
	int fds[WIRE_FDS];
	long got = wire_receive(s->socket_fd, &s->message, fds, true);

	if (got <= 0 || !wire_is_sound(&s->message, (size_t)got))
		return false;
	if (s->message.head.type == WIRE_ADD)
		take_module(s, &s->message.add, fds);
	else if (s->message.head.type == WIRE_ASK && !s->asked.type)
		take_ask(s, (size_t)got);
	else
		return false;
	return true;
}

/* Answers go on as they are: who asked looks at them again. */
static void take_answer(struct supervisor *s)
{
	int fds[WIRE_FDS];
	long got = wire_receive(s->worker_fd, &s->message, fds, true);

	for (unsigned i = 0; i < WIRE_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (got <= 0 || !wire_is_sound(&s->message, (size_t)got) || !s->asked.type ||
	    (s->message.head.type != WIRE_ANSWERS && s->message.head.type != WIRE_DONE) ||
	    s->message.head.sequence != s->asked.sequence || s->message.head.module != s->asked.module) {
		lose_worker(s);
		return;
	}
	if (s->message.head.type == WIRE_DONE)
		s->asked.type = 0;
	(void)wire_send(s->socket_fd, &s->message, (size_t)got, NULL, true);
}

static int wait_ms(const struct supervisor *s)
{
	uint64_t now_ns = clock_now_ns();

	if (!s->asked.type)
		return -1;
	return now_ns >= s->deadline_ns ? 0 : (int)((s->deadline_ns - now_ns) / NS_PER_MS + 1);
}

static void serve(struct supervisor *s)
{
	for (;;) {
		struct pollfd fds[2] = {{.fd = s->socket_fd, .events = POLLIN},
		                        {.fd = s->worker ? s->worker_fd : -1, .events = POLLIN}};
		int ready = poll(fds, 2, wait_ms(s));

		if (ready < 0 && errno != EINTR)
			return;
		if (ready == 0) {
			lose_worker(s);
			continue;
		}
		if (ready > 0 && fds[1].revents)
			take_answer(s);
		if (ready > 0 && fds[0].revents && !take_request(s))
			return;
	}
}

static void limit(unsigned resource, rlim_t most)
{
	struct rlimit now;

	if (getrlimit(resource, &now) == 0 && now.rlim_max > most)
		setrlimit(resource, &(struct rlimit){most, most});
}

_Noreturn void names_child(int socket_fd, int fetch_fd)
{
	struct supervisor s = {.socket_fd = socket_fd, .fetch_fd = fetch_fd};
	sigset_t none;

	/* Its end comes with the socket's: Ctrl-C at the terminal ends the sampling, after which there is something to name. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_NAME, "sampled-names");
	names_close_others(socket_fd, fetch_fd);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_NOFILE, FILES_MAX);
	change_user();
	s.modules = calloc(WIRE_MODULES_MAX, sizeof(*s.modules));
	if (!s.modules || sandbox_give_up(NULL))
		_exit(1);
	names_library_load();
	serve(&s);
	end_worker(&s);
	_exit(0);
}
