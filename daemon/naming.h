/* SPDX-License-Identifier: Apache-2.0 */
/* Names of native frames (exporters/names.h) in a session: the files behind mappings are opened the moment their record goes by, while the process
 * lives; profiles get names before they are written. */
#ifndef SAMPLED_DAEMON_NAMING_H
#define SAMPLED_DAEMON_NAMING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "aggregator/profile.h"
#include "daemon/options.h"
#include "sampler/core.h"
#include "sampler/record.h"

struct naming;

/* Starts the child that reads files. Before any target is opened, and before there are threads. NULL: native frames are not asked for, or (which is
 * reported) there can be no child; every function below takes it. */
struct naming *naming_new(enum native_frames show, bool debuginfod);
void naming_free(struct naming *naming);

/* The process of targets that no record told of: a dump has one alone. */
void naming_set_pid(struct naming *naming, pid_t pid);
/* All targets are this core, which must outlive `naming`. */
void naming_set_core(struct naming *naming, struct core *core);
/* Looks at a record of the stream. In the thread that takes them. */
void naming_take(struct naming *naming, const struct rec_head *record);
/* Gives the profile names, as far as they are found; what fails is reported, once. In the thread that writes profiles. */
void naming_apply(struct naming *naming, struct profile **profile);
/* For who keeps the places of a profile with their names: what exporters/recording.h asks for. NULL: there are none. */
struct names *naming_prepare(struct naming *naming, const struct profile *profile);

/* Names of this host's files for a profile that was read and has places without names. Before there are threads. */
void naming_of_host(struct profile **profile);

#endif
