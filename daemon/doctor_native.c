/* SPDX-License-Identifier: Apache-2.0 */
/* What --blocking and --native need. */
#include "daemon/doctor.h"
#include "daemon/opening.h"

static void check_stopping(struct doctor *d)
{
	struct fault fault;

	if (opening_check_ptrace(&fault) == 0)
		doctor_line(d, VERDICT_OK, "", "threads can be stopped, for --blocking and --native");
	else
		doctor_line(d, VERDICT_WARN, fault.hint, "threads cannot be stopped, for --blocking and --native: %s", fault.why);
}

void doctor_host_native(struct doctor *d)
{
	check_stopping(d);
}

void doctor_native(struct doctor *d, struct target *target)
{
	struct fault fault;

	if (opening_check_stops(target_proc(target)->pid, &fault) != 0)
		doctor_line(d, VERDICT_WARN, fault.hint, "its threads cannot be stopped: %s", fault.why);
	else if (target_knows_loop(target))
		doctor_line(d, VERDICT_OK, "", "native stacks: where the interpreter's loop lies is known");
	else
		doctor_line(d, VERDICT_WARN, "--native shows Python's frames only",
		            "native stacks: where the interpreter's loop lies is not known");
}
