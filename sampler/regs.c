/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/regs.h"

void regs_take(struct unwind_regs *regs, const struct user_regs_struct *user)
{
	regs->known = 0;
#if defined(__x86_64__)
	const uint64_t values[UNWIND_REGS] = {user->rax, user->rdx, user->rcx, user->rbx, user->rsi, user->rdi,
	                                      user->rbp, user->rsp, user->r8,  user->r9,  user->r10, user->r11,
	                                      user->r12, user->r13, user->r14, user->r15, user->rip};
#elif defined(__aarch64__)
	uint64_t values[UNWIND_REGS];

	for (unsigned i = 0; i < 31; i++)
		values[i] = user->regs[i];
	values[UNWIND_SP] = user->sp;
	values[UNWIND_IP] = user->pc;
#endif
	for (unsigned i = 0; i < UNWIND_REGS; i++)
		unwind_set(regs, i, values[i]);
}
