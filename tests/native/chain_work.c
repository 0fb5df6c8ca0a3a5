/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of chain.h. The lines that a test knows are marked with an @ and a word. */
#include <math.h>
#include <time.h>
#include <unistd.h>

#include "chain.h"

enum { SIDE = 96 };

static double left[SIDE][SIDE], right[SIDE][SIDE];
static volatile double sink;

/* As in chain.c: two functions of one name, which link-time optimisation tells apart by a suffix. */
static APART double shared_name(double of)
{
	double sum = 0;

	for (int i = 0; i < 40; i++)
		sum += of / (i + 1);
	return sum;
}

static APART double deep_inner(int rounds)
{
	double sum = 0;

	for (int i = 0; i < rounds; i++)
		sum += sin(sum + i) + pow(1.0 + i % 7, 0.3); /* @libm */
	return sum;
}

APART VISIBLE double deep_middle(int rounds)
{
	return deep_inner(rounds) + 1;
}

APART double deep_outer(int rounds)
{
	return deep_middle(rounds) + 1;
}

static APART double product_dot(int row, int column)
{
	double sum = 0;

	for (int i = 0; i < SIDE; i++)
		sum += left[row][i] * right[i][column];
	return sum;
}

static APART double product_row(int row)
{
	double sum = 0;

	for (int column = 0; column < SIDE; column++)
		sum += product_dot(row, column) + 1;
	return sum;
}

APART double product_all(int rounds)
{
	double sum = 0;

	left[0][0] = sink + 1;
	for (int i = 0; i < rounds; i++)
		for (int row = 0; row < SIDE; row++)
			sum += product_row(row);
	sink = sum;
	return sum;
}

#ifdef INLINED
#define INTO static inline __attribute__((always_inline))
#else
#define INTO static APART
#endif

INTO double lines_loop(int rounds)
{
	double sum = 1;

	for (int i = 0; i < rounds; i++)
		sum = sum / 3 + i % 5; /* @lines_loop */
	return sum;
}

INTO double lines_inner(int rounds)
{
	return lines_loop(rounds) + 1; /* @lines_inner */
}

INTO double lines_middle(int rounds)
{
	return lines_inner(rounds) + 1; /* @lines_middle */
}

APART double lines_outer(int rounds)
{
	return lines_middle(rounds) + shared_name(rounds); /* @lines_outer */
}

static APART long nap_inner(double seconds)
{
	struct timespec left_over = {0, 0},
			for_ns = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

	return clock_nanosleep(CLOCK_MONOTONIC, 0, &for_ns, &left_over) + left_over.tv_sec;
}

static APART long nap_middle(double seconds)
{
	return nap_inner(seconds) + 1;
}

APART long nap_outer(double seconds)
{
	return nap_middle(seconds) - 1;
}

static APART long read_inner(int fd)
{
	char bytes[16];

	return (long)read(fd, bytes, sizeof(bytes)) + (bytes[0] == 'x');
}

static APART long read_middle(int fd)
{
	return read_inner(fd) + 1;
}

APART long read_outer(int fd)
{
	return read_middle(fd) - 1;
}

static APART double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static APART double spin_inner(int rounds)
{
	double sum = 0;

	for (int i = 0; i < rounds; i++)
		sum = sum / 3 + i % 5;
	return sum;
}

static APART double spin_middle(int rounds)
{
	return spin_inner(rounds) + 1;
}

APART double spin_outer(double seconds)
{
	double end = now_s() + seconds, sum = 0;

	while (now_s() < end)
		sum += spin_middle(20000);
	return sum;
}
