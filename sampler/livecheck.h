/* SPDX-License-Identifier: Apache-2.0 */
/* Does the memory of a process look as its Python's layout says? */
#ifndef SAMPLED_SAMPLER_LIVECHECK_H
#define SAMPLED_SAMPLER_LIVECHECK_H

#include "sampler/discover.h"

/* Looks at interpreters, threads, the GIL and frames of a running interpreter. It moves on meanwhile, so that a look that
 * fails is repeated a few times. 0, -EAGAIN (nothing there yet), -EPROTO with *fault, or -ESRCH, -EPERM. */
int livecheck(const struct pyproc *proc, const struct remote *r, struct fault *fault);

#endif
