/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/parse.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"

struct unit {
	const char *name;
	double factor;
};

static const struct unit rate_units[] = {
	{"", 1}, {"hz", 1}, {"k", 1e3}, {"khz", 1e3}, {NULL, 0},
};

static const struct unit duration_units[] = {
	{"", 1}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}, {NULL, 0},
};

#define KIB 1024.0
static const struct unit byte_units[] = {
	{"", 1},
	{"B", 1},
	{"K", KIB},
	{"KB", KIB},
	{"KiB", KIB},
	{"M", KIB *KIB},
	{"MB", KIB *KIB},
	{"MiB", KIB *KIB},
	{"G", KIB *KIB *KIB},
	{"GB", KIB *KIB *KIB},
	{"GiB", KIB *KIB *KIB},
	{"T", KIB *KIB *KIB *KIB},
	{"TB", KIB *KIB *KIB *KIB},
	{"TiB", KIB *KIB *KIB *KIB},
	{NULL, 0},
};

static const struct unit share_units[] = {
	{"%", 0.01},
	{NULL, 0},
};

#define RATE_MIN_HZ    0.001
#define RATE_MAX_HZ    1e6
#define BYTES_MAX      (KIB * KIB * KIB * KIB * KIB) /* a pebibyte */
#define DURATION_MAX_S (10 * 366 * 86400.0)

/* A plain decimal number with one of the units: digits and at most one point, no sign, no exponent, no blank. (strtod
 * alone would take "0x10", "1e3", "inf" and "nan".) */
static int parse_quantity(const char *text, const struct unit *units, double *ret_value)
{
	size_t length = strspn(text, "0123456789."), digits = strspn(text, "0123456789");
	size_t rest = text[digits] == '.' ? 1 + strspn(text + digits + 1, "0123456789") : 0;

	if (length != digits + rest || length == 0 || length > 32 || (digits == 0 && rest < 2))
		return -EINVAL;
	for (; units->name; units++)
		if (strcasecmp(text + length, units->name) == 0) {
			*ret_value = strtod(text, NULL) * units->factor;
			return 0;
		}
	return -EINVAL;
}

int parse_rate(const char *text, uint64_t *ret_interval_ns)
{
	double hz;

	if (strcasecmp(text, "max") == 0) {
		*ret_interval_ns = 0;
		return 0;
	}
	if (parse_quantity(text, rate_units, &hz) || hz < RATE_MIN_HZ || hz > RATE_MAX_HZ)
		return -EINVAL;
	*ret_interval_ns = (uint64_t)((double)NS_PER_S / hz + 0.5);
	return 0;
}

int parse_time(const char *text, uint64_t *ret_ns)
{
	double seconds;

	if (parse_quantity(text, duration_units, &seconds) || seconds > DURATION_MAX_S)
		return -EINVAL;
	*ret_ns = (uint64_t)(seconds * (double)NS_PER_S + 0.5);
	return 0;
}

int parse_duration(const char *text, uint64_t *ret_ns)
{
	uint64_t ns;

	if (parse_time(text, &ns) || ns == 0)
		return -EINVAL;
	*ret_ns = ns;
	return 0;
}

int parse_bytes(const char *text, uint64_t *ret_bytes)
{
	double bytes;

	if (parse_quantity(text, byte_units, &bytes) || bytes > BYTES_MAX)
		return -EINVAL;
	*ret_bytes = (uint64_t)(bytes + 0.5);
	return 0;
}

int parse_share(const char *text, double *ret_share)
{
	return parse_quantity(text, share_units, ret_share);
}

int parse_u64(const char *text, uint64_t *ret_value)
{
	size_t length = strspn(text, "0123456789");
	unsigned long long value;

	if (length == 0 || text[length])
		return -EINVAL;
	errno = 0;
	value = strtoull(text, NULL, 10);
	if (errno)
		return -EINVAL;
	*ret_value = value;
	return 0;
}

int parse_pid(const char *text, pid_t *ret_pid)
{
	uint64_t value;

	if (parse_u64(text, &value) || value == 0 || value > INT_MAX)
		return -EINVAL;
	*ret_pid = (pid_t)value;
	return 0;
}
