/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "daemon/control_protocol.h"
#include "daemon/control_socket.h"
#include "daemon/control_state.h"

/* What an epoll event is about, where it is no client's index (CONTROL_PIPES and on: that client's pipe). */
enum { EVENT_LISTEN = CONTROL_CLIENTS_MAX, EVENT_WAKE, EVENT_TIMER };

/* New clients a step, so that those there are get their turn. */
enum { ACCEPTS_MAX = 2 * CONTROL_CLIENTS_MAX };

/* How often clients are looked at for keeping still. */
#define TICK_NS (NS_PER_S / 2)

bool control_may(const struct control_request *request, uid_t target_uid)
{
	return request->may_all || request->uid == target_uid;
}

int control_fd(const struct control *control)
{
	return control->epoll_fd;
}

size_t control_clients(const struct control *control)
{
	return control->client_count;
}

static int add_event(struct control *control, int fd, uint64_t about, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.u64 = about};

	return epoll_ctl(control->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

static void set_listening(struct control *control, bool listens)
{
	struct epoll_event event = {.events = listens ? EPOLLIN : 0, .data.u64 = EVENT_LISTEN};

	if (control->listens != listens && epoll_ctl(control->epoll_fd, EPOLL_CTL_MOD, control->socket.fd, &event) == 0)
		control->listens = listens;
}

/* The timer runs while there is somebody to look at, or to be let in again. */
static void set_ticking(struct control *control)
{
	bool ticks = control->client_count > 0 || !control->listens;
	struct itimerspec every = {0};

	if (ticks == control->ticks)
		return;
	if (ticks)
		every.it_interval = every.it_value = clock_to_timespec(TICK_NS);
	if (timerfd_settime(control->timer_fd, 0, &every, NULL) == 0)
		control->ticks = ticks;
}

static void drop(struct control *control, struct control_client *client)
{
	if (client->fd < 0)
		return;
	/* By hand: an epoll keeps what others have open, too, a child of ours among them. */
	epoll_ctl(control->epoll_fd, EPOLL_CTL_DEL, client->fd, NULL);
	if (client->polls_pipe)
		epoll_ctl(control->epoll_fd, EPOLL_CTL_DEL, client->reply->pass_fd, NULL);
	if (client->reply)
		control_reply_drop(client->reply);
	if (client->pass_fd >= 0)
		close(client->pass_fd);
	close(client->fd);
	free(client->request);
	*client = (struct control_client){.fd = -1, .pass_fd = -1};
	control->client_count--;
	set_listening(control, true);
}

/* A place for one more, or NULL: those that a user may have are taken. */
static struct control_client *find_place(struct control *control, uid_t uid, bool may_all)
{
	struct control_client *place = NULL;
	size_t others = 0, same = 0;

	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		struct control_client *client = &control->clients[i];

		if (client->fd < 0) {
			place = place ? place : client;
			continue;
		}
		others += !client->may_all;
		same += client->uid == uid;
	}
	return may_all || (others < CONTROL_CLIENTS_OTHERS_MAX && same < CONTROL_CLIENTS_USER_MAX) ? place : NULL;
}

/* Says so to one that finds no place, as far as its socket takes it at once, which a new one does. */
static void turn_away(int fd)
{
	static const char why[] = "too many requests at a time";
	unsigned char frames[2 * CONTROL_FRAME_HEAD_BYTES + sizeof(why)] = {CONTROL_ERROR};
	size_t at = CONTROL_FRAME_HEAD_BYTES + sizeof(why) - 1;

	control_put_u32(frames + 1, sizeof(why) - 1);
	memcpy(frames + CONTROL_FRAME_HEAD_BYTES, why, sizeof(why) - 1);
	frames[at] = CONTROL_END;
	control_put_u32(frames + at + 1, 1);
	frames[at + CONTROL_FRAME_HEAD_BYTES] = 1;
	(void)!send(fd, frames, sizeof(frames), MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

static void let_in(struct control *control, int fd, uint64_t now_ns)
{
	struct ucred who;
	socklen_t bytes = sizeof(who);
	struct control_client *client;
	bool may_all;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0) {
		close(fd);
		return;
	}
	may_all = who.uid == 0 || (control->owner != 0 && who.uid == control->owner);
	client = find_place(control, who.uid, may_all);
	if (!client) {
		turn_away(fd);
		return;
	}
	*client = (struct control_client){.fd = fd,
	                                  .pid = who.pid,
	                                  .uid = who.uid,
	                                  .may_all = may_all,
	                                  .reads_request = true,
	                                  .pass_fd = -1,
	                                  .t_connected_ns = now_ns,
	                                  .t_moved_ns = now_ns,
	                                  .events = EPOLLIN};
	control->client_count++;
	if (add_event(control, fd, (uint64_t)(client - control->clients), EPOLLIN))
		drop(control, client);
}

static void accept_all(struct control *control, uint64_t now_ns)
{
	for (int i = 0; i < ACCEPTS_MAX && control->client_count < CONTROL_CLIENTS_MAX; i++) {
		int fd = accept4(control->socket.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			let_in(control, fd, now_ns);
		} else if (errno == EAGAIN) {
			return;
		} else if (errno != EINTR && errno != ECONNABORTED) {
			set_listening(control, false); /* no descriptors left: again at the next tick */
			return;
		}
	}
	if (control->client_count == CONTROL_CLIENTS_MAX)
		set_listening(control, false);
}

static void look_after(struct control *control, uint64_t now_ns)
{
	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++)
		if (control->clients[i].fd >= 0 && !control_client_check(&control->clients[i], now_ns))
			drop(control, &control->clients[i]);
	if (control->client_count < CONTROL_CLIENTS_MAX)
		set_listening(control, true);
}

static void send_replies(struct control *control, uint64_t now_ns)
{
	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		struct control_client *client = &control->clients[i];

		if (client->fd >= 0 && client->reply && !control_client_write(control, client, now_ns))
			drop(control, client);
	}
}

static void client_event(struct control *control, struct control_client *client, uint32_t events, uint64_t now_ns)
{
	bool stays;

	if (client->reads_request)
		stays = !(events & (EPOLLHUP | EPOLLERR)) && control_client_read(control, client, now_ns);
	else
		stays = !(events & (EPOLLHUP | EPOLLERR)) && control_client_write(control, client, now_ns);
	if (!stays)
		drop(control, client);
}

void control_step(struct control *control)
{
	struct epoll_event events[CONTROL_CLIENTS_MAX + 3];
	uint64_t now_ns = clock_now_ns(), count;
	bool accepts = false;
	int ready = epoll_wait(control->epoll_fd, events, (int)(sizeof(events) / sizeof(events[0])), 0);

	for (int i = 0; i < ready; i++) {
		uint64_t about = events[i].data.u64;

		if (about == EVENT_LISTEN) {
			/* Last: a new client must not get the events of the one whose place it takes. */
			accepts = true;
		} else if (about == EVENT_WAKE) {
			(void)!read(control->wake_fd, &count, sizeof(count));
			send_replies(control, now_ns);
		} else if (about == EVENT_TIMER) {
			(void)!read(control->timer_fd, &count, sizeof(count));
			look_after(control, now_ns);
		} else if (about >= CONTROL_PIPES) {
			send_replies(control, now_ns);
		} else if (about < CONTROL_CLIENTS_MAX && control->clients[about].fd >= 0) {
			client_event(control, &control->clients[about], events[i].events, now_ns);
		}
	}
	if (accepts)
		accept_all(control, now_ns);
	set_ticking(control);
}

static int open_polling(struct control *control)
{
	int err;

	control->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	control->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	control->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (control->epoll_fd < 0 || control->wake_fd < 0 || control->timer_fd < 0)
		return -errno;
	err = add_event(control, control->wake_fd, EVENT_WAKE, EPOLLIN);
	if (!err)
		err = add_event(control, control->timer_fd, EVENT_TIMER, EPOLLIN);
	if (!err)
		err = add_event(control, control->socket.fd, EVENT_LISTEN, EPOLLIN);
	control->listens = true;
	return err;
}

int control_open(struct control **ret_control, const struct control_options *options, struct fault *fault)
{
	struct control *control = calloc(1, sizeof(*control));
	int err;

	if (!control)
		return fault_set(fault, -ENOMEM, "", "out of memory");
	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++)
		control->clients[i] = (struct control_client){.fd = -1, .pass_fd = -1};
	control->epoll_fd = control->wake_fd = control->timer_fd = -1;
	control->owner = options->owner;
	control->handler = options->handler;
	control->context = options->context;
	atomic_init(&control->held_bytes, 0);
	err = control_socket_open(&control->socket, options->path, options->inherited_fd, fault);
	if (!err) {
		err = open_polling(control);
		if (err)
			fault_set(fault, err, "", "%s", strerror(-err));
	}
	if (err) {
		control_free(control);
		return err;
	}
	*ret_control = control;
	return 0;
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

void control_free(struct control *control)
{
	if (!control)
		return;
	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++)
		drop(control, &control->clients[i]);
	control_socket_close(&control->socket);
	close_if_open(control->timer_fd);
	close_if_open(control->wake_fd);
	close_if_open(control->epoll_fd);
	free(control);
}
