/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/affinity.h"

void affinity_begin(struct affinity *a)
{
	/* Fails where there are more CPUs than a cpu_set_t holds: then there are enough. */
	a->known = sched_getaffinity(0, sizeof(a->own), &a->own) == 0;
	a->left = a->own;
}

void affinity_avoid(struct affinity *a, pid_t target)
{
	cpu_set_t theirs, common, left;

	if (!a->known || sched_getaffinity(target, sizeof(theirs), &theirs) != 0)
		return;
	CPU_AND(&common, &a->own, &theirs);
	if (CPU_COUNT(&common) == 0 || CPU_EQUAL(&common, &a->own))
		return;
	CPU_AND(&common, &a->left, &theirs);
	CPU_XOR(&left, &a->left, &common);
	if (CPU_COUNT(&left) == 0 || CPU_EQUAL(&left, &a->left))
		return;
	if (sched_setaffinity(0, sizeof(left), &left) == 0)
		a->left = left;
}
