/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/affinity.h"

void affinity_begin(struct affinity *a)
{
	/* Fails where there are more CPUs than a cpu_set_t holds: then there are enough. */
	a->known = sched_getaffinity(0, sizeof(a->own), &a->own) == 0;
	a->left = a->own;
	a->at = -1;
}

bool affinity_go(struct affinity *a, int cpu)
{
	cpu_set_t there;

	if (!a->known || cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET((size_t)cpu, &a->own))
		return false;
	CPU_ZERO(&there);
	CPU_SET((size_t)cpu, &there);
	if (sched_setaffinity(0, sizeof(there), &there) != 0)
		return false;
	a->at = cpu;
	return true;
}

bool affinity_is_there(const struct affinity *a)
{
	return a->at >= 0 && sched_getcpu() == a->at;
}

void affinity_leave(struct affinity *a)
{
	cpu_set_t others = a->left;

	if (a->at < 0)
		return;
	CPU_CLR((size_t)a->at, &others);
	if (CPU_COUNT(&others) == 0)
		others = a->left;
	if (sched_setaffinity(0, sizeof(others), &others) == 0)
		a->at = -1;
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
	if (sched_setaffinity(0, sizeof(left), &left) == 0) {
		a->left = left;
		a->at = -1;
	}
}
