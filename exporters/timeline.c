/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/timeline.h"

#include "base/clock.h"

bool timeline_next(struct timeline *line, struct timeline_slice *ret_slice)
{
	const struct thread_tree *thread = line->thread;

	while (line->at < thread->run_count) {
		const struct run *run = &thread->runs[line->at++];
		uint64_t end_ns = run->t_first_ns + run->span_ns;
		uint64_t start_ns = end_ns > run->weight_ns ? end_ns - run->weight_ns : 0;

		if (start_ns < line->end_ns)
			start_ns = line->end_ns;
		if (end_ns <= start_ns)
			continue;
		line->end_ns = end_ns;
		*ret_slice = (struct timeline_slice){
			.start_ns = start_ns, .end_ns = end_ns, .node = run->node, .status = run->status};
		return true;
	}
	return false;
}

uint64_t timeline_gap_ns(const struct profile *profile)
{
	/* Without a rate (unthrottled, or not known), what people call "at once". */
	return profile->interval_ns ? 2 * profile->interval_ns : NS_PER_MS;
}

uint64_t timeline_base_ns(const struct profile *profile)
{
	uint64_t base_ns = profile->t_start_ns ? profile->t_start_ns : UINT64_MAX;

	for (uint32_t i = 0; i < profile->thread_count; i++) {
		struct timeline line = {.thread = &profile->threads[i]};
		struct timeline_slice first;

		if (timeline_next(&line, &first) && first.start_ns < base_ns)
			base_ns = first.start_ns;
	}
	return base_ns == UINT64_MAX ? 0 : base_ns;
}
