/* SPDX-License-Identifier: Apache-2.0 */
/* What the system must have that this is built on. The Makefile compiles it before all else, so that what is missing is said first, and once. */
#ifndef SAMPLED_BASE_REQUIRED_H
#define SAMPLED_BASE_REQUIRED_H

#include <features.h>
#include <linux/version.h>

#ifdef __GLIBC__
#if !__GLIBC_PREREQ(2, 34)
#error "sampled needs glibc 2.34 or newer to be built (Debian 12 has it, Debian 11 does not): see Install in README.md"
#endif
#endif
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 8, 0)
#error "sampled needs the headers of Linux 5.8 or newer to be built: see Install in README.md"
#endif

#endif
