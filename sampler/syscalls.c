/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/syscalls.h"

#include <stddef.h>

const char *syscall_name(int32_t number)
{
	return number >= 0 && (uint32_t)number < syscall_name_count ? syscall_names[number] : NULL;
}
