/* SPDX-License-Identifier: Apache-2.0 */
/* What the module chain consists of: functions whose calls are known from this source. Each uses what its callee returns, so that none
 * becomes a jump, and is kept apart from its caller, but where the variant is about inlining. */
#ifndef SAMPLED_TESTS_NATIVE_CHAIN_H
#define SAMPLED_TESTS_NATIVE_CHAIN_H

#define APART   __attribute__((noinline))
#define VISIBLE __attribute__((visibility("default")))

/* deep_outer → deep_middle → deep_inner → sin and pow of the C library, `rounds` times. In a stripped module only deep_middle has a name. */
double deep_outer(int rounds);
double deep_middle(int rounds);

/* product_all → product_row → product_dot: products of two matrices of doubles, as an array library would. */
double product_all(int rounds);

/* lines_outer → lines_middle, lines_inner, lines_loop: the last three inlined into the first. */
double lines_outer(int rounds);

/* nap_outer → nap_middle → nap_inner → clock_nanosleep. */
long nap_outer(double seconds);

/* read_outer → read_middle → read_inner → read; how many bytes, or below 0. */
long read_outer(int fd);

/* spin_outer → spin_middle → spin_inner until so much time has passed. */
double spin_outer(double seconds);

#endif
