/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fault.h"

#include <stdarg.h>
#include <stdio.h>

int fault_set(struct fault *fault, int err, const char *hint, const char *why, ...)
{
	va_list args;

	if (!fault)
		return err;
	fault->err = err;
	va_start(args, why);
	vsnprintf(fault->why, sizeof(fault->why), why, args);
	va_end(args);
	snprintf(fault->hint, sizeof(fault->hint), "%s", hint ? hint : "");
	return err;
}
