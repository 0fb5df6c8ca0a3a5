/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, as repr() has them. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/values/value.h"

enum {
	INT_SIZE = 16,
	INT_DIGITS = 24,
	DIGIT_BITS = 30,
	DECIMAL_DIGITS_MAX = 4300, /* sys.int_info.default_max_str_digits */
	DIGITS_MAX = 477,          /* of 30 bits hold no fewer */
	CHUNK = 1000000000,        /* nine decimal digits are had by one division */
	CHUNKS_MAX = DIGITS_MAX * DIGIT_BITS / 29 + 1,
};

struct integer {
	uint32_t digits[DIGITS_MAX]; /* lowest first */
	uint32_t count;
	bool negative;
	uint64_t bits;               /* of one that has more digits than this, of which none was read; else 0 */
};

static int read_int(struct value_reader *v, raddr_t object, struct integer *ret_int)
{
	uint64_t word, count, top = 0;
	int err = value_read_word(v, object + INT_SIZE, &word);

	if (err)
		return err;
	ret_int->bits = 0;
	if (v->objects->int_tag) {
		ret_int->negative = (word & 3) == 2;
		count = (word & 3) == 1 ? 0 : word >> 3;
	} else {
		ret_int->negative = (int64_t)word < 0;
		count = ret_int->negative ? (uint64_t)0 - word : word;
	}
	if (count > UINT64_C(1) << 34)
		return -EPROTO;
	ret_int->count = (uint32_t)(count <= DIGITS_MAX ? count : 0);
	if (count > DIGITS_MAX) {
		err = value_read(v, object + INT_DIGITS + (count - 1) * 4, &top, 4);
		ret_int->bits = (count - 1) * DIGIT_BITS + (uint64_t)(64 - __builtin_clzll(top | 1));
		return err;
	}
	if (count)
		err = value_read(v, object + INT_DIGITS, ret_int->digits, count * sizeof(ret_int->digits[0]));
	for (uint32_t i = 0; !err && i < ret_int->count; i++)
		if (ret_int->digits[i] >> DIGIT_BITS)
			err = -EPROTO;
	return err;
}

int value_int64(struct value_reader *v, raddr_t object, int64_t *ret_value)
{
	struct integer n;
	uint64_t value = 0;
	int err = read_int(v, object, &n);

	if (err)
		return err;
	if (n.bits || n.count > 2)
		return -ERANGE;
	for (uint32_t i = n.count; i-- > 0;)
		value = value << DIGIT_BITS | n.digits[i];
	*ret_value = n.negative ? -(int64_t)value : (int64_t)value;
	return 0;
}

/* Divides by CHUNK until nothing is left: quadratic, of at most 477 digits. */
static void add_decimal(struct buf *to, struct integer *n)
{
	char text[CHUNKS_MAX * 9 + 2], *at = text + sizeof(text);
	size_t bytes;

	if (n->count == 0) {
		buf_putc(to, '0');
		return;
	}
	while (n->count > 0) {
		uint64_t rest = 0;

		for (uint32_t i = n->count; i-- > 0;) {
			rest = rest << DIGIT_BITS | n->digits[i];
			n->digits[i] = (uint32_t)(rest / CHUNK);
			rest %= CHUNK;
		}
		while (n->count > 0 && n->digits[n->count - 1] == 0)
			n->count--;
		for (unsigned i = 0; i < 9; i++, rest /= 10)
			*--at = (char)('0' + rest % 10);
	}
	while (at < text + sizeof(text) - 1 && *at == '0')
		at++;
	bytes = (size_t)(text + sizeof(text) - at);
	if (bytes > DECIMAL_DIGITS_MAX) {
		buf_printf(to, "<int of %zu digits>", bytes);
		return;
	}
	if (n->negative)
		buf_putc(to, '-');
	buf_add(to, at, bytes);
}

int value_show_int(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	struct integer n;
	int err = read_int(v, object, &n);

	(void)type;
	if (err)
		return err;
	if (n.bits)
		buf_printf(v->to, "<int of %" PRIu64 " bits>", n.bits);
	else
		add_decimal(v->to, &n);
	return 0;
}

int value_show_bool(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	int64_t value;
	int err = value_int64(v, object, &value);

	(void)type;
	if (!err)
		buf_puts(v->to, value ? "True" : "False");
	return err;
}

/* The shortest digits that are read back as this number; with an exponent below 1e-4 and from 1e16 on (float_repr_style "short"). `whole`: ".0" behind
 * an integer. */
static void add_float(struct buf *to, double value, bool whole)
{
	char text[40], digits[24], *exponent;
	int precision = 0, power, count = 0;

	if (!isfinite(value)) {
		buf_puts(to, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
		return;
	}
	do
		snprintf(text, sizeof(text), "%.*e", precision, value);
	while (strtod(text, NULL) != value && ++precision < 17);
	if (signbit(value))
		buf_putc(to, '-');
	exponent = strchr(text, 'e');
	power = exponent ? atoi(exponent + 1) : 0;
	for (const char *c = text; c < exponent; c++)
		if (*c >= '0' && *c <= '9')
			digits[count++] = *c;
	digits[count] = '\0';
	if (power < -4 || power >= 16) {
		buf_printf(to, "%c%s%se%c%02d", digits[0], count > 1 ? "." : "", digits + 1, power < 0 ? '-' : '+', abs(power));
	} else if (power < 0) {
		buf_printf(to, "0.%.*s%s", -power - 1, "000", digits);
	} else if (count <= power + 1) {
		buf_printf(to, "%s%.*s%s", digits, power + 1 - count, "0000000000000000", whole ? ".0" : "");
	} else {
		buf_printf(to, "%.*s.%s", power + 1, digits, digits + power + 1);
	}
}

int value_show_float(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	double value;
	int err = value_read(v, object + OBJECT_HEAD, &value, sizeof(value));

	(void)type;
	if (!err)
		add_float(v->to, value, true);
	return err;
}

int value_show_complex(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	double parts[2];
	int err = value_read(v, object + OBJECT_HEAD, parts, sizeof(parts));

	(void)type;
	if (err)
		return err;
	if (parts[0] == 0 && !signbit(parts[0])) {
		add_float(v->to, parts[1], false);
		buf_puts(v->to, "j");
		return 0;
	}
	buf_putc(v->to, '(');
	add_float(v->to, parts[0], false);
	if (isnan(parts[1]) || !signbit(parts[1]))
		buf_putc(v->to, '+');
	add_float(v->to, parts[1], false);
	buf_puts(v->to, "j)");
	return 0;
}

/* mpd_t of libmpdec, from 24 on: flags, exponent, digits, length, allocated, pointer to words of 19 decimal digits, lowest first. */
struct decimal {
	uint64_t flags;
	int64_t exponent, digits, words, allocated;
	raddr_t data;
};

enum {
	DECIMAL_AT = 24,
	DECIMAL_NEGATIVE = 1,
	DECIMAL_INFINITE = 2,
	DECIMAL_NAN = 4,
	DECIMAL_SNAN = 8,
	DECIMAL_WORD_DIGITS = 19,
	DECIMAL_WORDS_MAX = 64,
};

/* The scientific notation of the General Decimal Arithmetic Specification, "to-scientific-string". */
static void add_scientific(struct buf *to, const char *digits, int64_t count, int64_t exponent)
{
	int64_t adjusted = exponent + count - 1, before;

	if (exponent > 0 || adjusted < -6) {
		buf_printf(to, "%c%s%sE%+" PRId64, digits[0], count > 1 ? "." : "", digits + 1, adjusted);
		return;
	}
	before = count + exponent;
	if (exponent == 0)
		buf_puts(to, digits);
	else if (before > 0)
		buf_printf(to, "%.*s.%s", (int)before, digits, digits + before);
	else
		buf_printf(to, "0.%.*s%s", (int)-before, "000000", digits);
}

int value_show_decimal(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	uint64_t words[DECIMAL_WORDS_MAX];
	char text[DECIMAL_WORDS_MAX * DECIMAL_WORD_DIGITS + 2];
	size_t bytes = 0;
	struct decimal d;
	int err = value_read(v, object + DECIMAL_AT, &d, sizeof(d));

	(void)type;
	if (err)
		return err;
	buf_puts(v->to, "Decimal('");
	if (d.flags & DECIMAL_NEGATIVE)
		buf_putc(v->to, '-');
	if (d.flags & (DECIMAL_INFINITE | DECIMAL_NAN | DECIMAL_SNAN)) {
		buf_puts(v->to, d.flags & DECIMAL_INFINITE ? "Infinity')" : d.flags & DECIMAL_NAN ? "NaN')" : "sNaN')");
		return 0;
	}
	if (d.words < 1 || d.digits < 1 || d.words > INT32_MAX)
		return -EPROTO;
	if (d.words > DECIMAL_WORDS_MAX) {
		buf_printf(v->to, "…') … %" PRId64 " digits", d.digits);
		return 0;
	}
	err = value_read(v, d.data, words, (size_t)d.words * sizeof(words[0]));
	if (err)
		return err;
	for (int64_t i = d.words; i-- > 0;) {
		if (words[i] >= UINT64_C(10000000000000000000))
			return -EPROTO;
		bytes += (size_t)snprintf(text + bytes, sizeof(text) - bytes, i == d.words - 1 ? "%" PRIu64 : "%019" PRIu64, words[i]);
	}
	if (d.exponent < -(INT64_C(1) << 60) || d.exponent > INT64_C(1) << 60)
		return -EPROTO;
	add_scientific(v->to, text, (int64_t)bytes, d.exponent);
	buf_puts(v->to, "')");
	return 0;
}
