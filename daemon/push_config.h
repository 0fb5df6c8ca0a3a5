/* SPDX-License-Identifier: Apache-2.0 */
/* What `sampled push` is told: where profiles go (/etc/sampled/push.conf), where they come from, and where its metrics may be asked for. */
#ifndef SAMPLED_DAEMON_PUSH_CONFIG_H
#define SAMPLED_DAEMON_PUSH_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "exporters/label.h"
#include "exporters/push_request.h"

#define PUSH_CONFIG_PATH   "/etc/sampled/push.conf"
#define PUSH_SPOOL_PATH    "/var/spool/sampled"
#define PUSH_SPOOL_BYTES   (UINT64_C(256) << 20)
#define PUSH_REFUSED_BYTES (UINT64_C(16) << 20)
#define PUSH_TIMEOUT_NS    (UINT64_C(30) * 1000000000)

enum {
	PUSH_DESTINATIONS_MAX = 16,
	PUSH_LABELS_MAX = 32, /* added by a destination */
};

/* Texts are owned; NULL: not given. */
struct push_destination {
	char *name;
	enum push_type type; /* PUSH_TYPES: not given yet */
	char *url;
	char *ca_file, *bearer_file, *user,
		*password_file;               /* read when they are used, and again when they have changed */
	char *tenant;                         /* X-Scope-OrgID */
	char *proxy;                          /* none is used that is not named here */
	uint64_t timeout_ns;                  /* of one request */
	struct label labels[PUSH_LABELS_MAX]; /* their texts are owned, too */
	size_t label_count;
};

struct push_config {
	struct push_destination destinations[PUSH_DESTINATIONS_MAX];
	size_t destination_count;
	char *listen;  /* "127.0.0.1:9464"; NULL: no metrics over TCP */
	char *control; /* the daemon's socket, whose metrics are shown, too */
	char *spool;   /* owned; never NULL */
	uint64_t spool_bytes;
	uint64_t refused_bytes; /* of what destinations refused for good; 0: it is not kept */
};

/* The defaults: no destination. 0 or -ENOMEM with *fault filled. */
int push_config_init(struct push_config *ret_config, struct fault *fault);
void push_config_release(struct push_config *config);

/* Reads a file, over what is there. 0 or -errno with *fault filled: why names file and line. */
int push_config_read(struct push_config *config, const char *path, struct fault *fault);
/* One more destination, by its address alone. 0 or -errno with *fault filled. */
int push_config_add(struct push_config *config, const char *name, enum push_type type, const char *url,
                    struct fault *fault);
/* What is told only when all is read: that destinations have all they need. 0 or -EINVAL with *fault filled. */
int push_config_check(const struct push_config *config, struct fault *fault);

/* An http or https address, with no user in it. 0 or -EINVAL with *fault filled. */
int push_check_url(const char *url, struct fault *fault);

#endif
