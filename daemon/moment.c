/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/moment.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "daemon/parse.h"

enum { DAY_S = 24 * 60 * 60, YEAR_MIN = 1970, YEAR_MAX = 2261 /* 2^63 ns are in 2262 */ };

/* Exactly so many digits, up to max, which moves *at on. 0 or -EINVAL. */
static int take_number(const char **at, int digits, int max, int *ret_value)
{
	int value = 0;

	for (int i = 0; i < digits; i++) {
		if (!isdigit((unsigned char)(*at)[i]))
			return -EINVAL;
		value = 10 * value + ((*at)[i] - '0');
	}
	if (value > max)
		return -EINVAL;
	*at += digits;
	*ret_value = value;
	return 0;
}

static bool take_char(const char **at, const char *any)
{
	if (**at == '\0' || !strchr(any, **at))
		return false;
	(*at)++;
	return true;
}

/* ".5", up to nine digits; 0 where there is no point. */
static int take_fraction(const char **at, uint64_t *ret_ns)
{
	uint64_t unit_ns = NS_PER_S / 10;

	*ret_ns = 0;
	if (!take_char(at, "."))
		return 0;
	if (!isdigit((unsigned char)**at))
		return -EINVAL;
	for (; isdigit((unsigned char)**at) && unit_ns > 0; unit_ns /= 10)
		*ret_ns += unit_ns * (uint64_t)(*(*at)++ - '0');
	return 0;
}

/* "05:20", "05:20:30.5" */
static int take_clock(const char **at, struct tm *tm, uint64_t *ret_fraction_ns)
{
	*ret_fraction_ns = 0;
	tm->tm_sec = 0;
	if (take_number(at, 2, 23, &tm->tm_hour) || !take_char(at, ":") || take_number(at, 2, 59, &tm->tm_min))
		return -EINVAL;
	if (!take_char(at, ":"))
		return 0;
	return take_number(at, 2, 60, &tm->tm_sec) ? -EINVAL : take_fraction(at, ret_fraction_ns);
}

/* Nothing, "Z", "+02:00", "-0330": whether there is one, and by how much the clock there is ahead of UTC. */
static int take_zone(const char **at, bool *ret_is_given, int *ret_ahead_s)
{
	bool behind = **at == '-';
	int hours, minutes;

	*ret_ahead_s = 0;
	*ret_is_given = **at != '\0';
	if (!*ret_is_given || take_char(at, "Zz"))
		return 0;
	if (!take_char(at, "+-") || take_number(at, 2, 23, &hours))
		return -EINVAL;
	take_char(at, ":");
	if (take_number(at, 2, 59, &minutes))
		return -EINVAL;
	*ret_ahead_s = (behind ? -60 : 60) * (60 * hours + minutes);
	return 0;
}

static int from_seconds(time_t seconds, uint64_t fraction_ns, uint64_t *ret_ns)
{
	if (seconds < 0 || (uint64_t)seconds >= INT64_MAX / NS_PER_S)
		return -EINVAL;
	*ret_ns = (uint64_t)seconds * NS_PER_S + fraction_ns;
	return 0;
}

static int parse_date(const char *at, uint64_t *ret_ns)
{
	struct tm tm = {.tm_isdst = -1}, same;
	uint64_t fraction_ns = 0;
	bool has_zone = false;
	int ahead_s = 0;
	time_t seconds;

	if (take_number(&at, 4, YEAR_MAX, &tm.tm_year) || tm.tm_year < YEAR_MIN || !take_char(&at, "-") ||
	    take_number(&at, 2, 12, &tm.tm_mon) || tm.tm_mon == 0 || !take_char(&at, "-") ||
	    take_number(&at, 2, 31, &tm.tm_mday) || tm.tm_mday == 0)
		return -EINVAL;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	if (take_char(&at, " T") && (take_clock(&at, &tm, &fraction_ns) || take_zone(&at, &has_zone, &ahead_s)))
		return -EINVAL;
	same = tm;
	seconds = has_zone ? timegm(&tm) : mktime(&tm);
	/* The 31st of April is none. An hour that summer time leaves out, and a leap second, are the next ones. */
	if (*at != '\0' || tm.tm_mon != same.tm_mon || (tm.tm_mday != same.tm_mday && same.tm_hour < 22))
		return -EINVAL;
	return from_seconds(seconds - ahead_s, fraction_ns, ret_ns);
}

/* Today's, or yesterday's where that is still to come. */
static int parse_clock(const char *at, uint64_t now_ns, uint64_t *ret_ns)
{
	const time_t now = (time_t)(now_ns / NS_PER_S);
	struct tm today, tm;
	uint64_t fraction_ns;

	if (!localtime_r(&now, &today))
		return -EINVAL;
	for (int days = 0; days < 2; days++) {
		const char *text = at;

		tm = today;
		tm.tm_mday -= days;
		tm.tm_isdst = -1;
		if (take_clock(&text, &tm, &fraction_ns) || *text != '\0' ||
		    from_seconds(mktime(&tm), fraction_ns, ret_ns))
			return -EINVAL;
		if (*ret_ns <= now_ns)
			break;
	}
	return 0;
}

static int parse_epoch(const char *at, uint64_t *ret_ns)
{
	uint64_t seconds = 0, fraction_ns;
	int digits = 0;

	for (; isdigit((unsigned char)*at) && digits < 11; digits++)
		seconds = 10 * seconds + (uint64_t)(*at++ - '0');
	if (digits == 0 || take_fraction(&at, &fraction_ns) || *at != '\0')
		return -EINVAL;
	return from_seconds((time_t)seconds, fraction_ns, ret_ns);
}

int moment_parse(const char *text, uint64_t now_ns, uint64_t *ret_ns)
{
	uint64_t ns = 0;
	int err = 0;

	if (strcmp(text, "now") == 0)
		ns = now_ns;
	else if (*text == '@')
		err = parse_epoch(text + 1, &ns);
	else if (*text == '-')
		err = parse_time(text + 1, &ns);
	else if (strlen(text) > 4 && text[4] == '-')
		err = parse_date(text, &ns);
	else
		err = parse_clock(text, now_ns, &ns);
	if (!err && *text == '-') {
		err = ns > now_ns ? -EINVAL : 0;
		ns = now_ns - ns;
	}
	if (!err)
		*ret_ns = ns;
	return err;
}
