/* SPDX-License-Identifier: Apache-2.0 */
/* What the standard library, and numpy, are made of: ranges, dates and times, UUIDs, paths, arrays. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sampler/values/value.h"

enum { /* Include/datetime.h */
	DATE_DATA = 25,
	DATETIME_BYTES = 10,
	DATETIME_FOLD = 35,
	DATETIME_ZONE = 40,
	HAS_ZONE = 24, /* u8 */
	TIME_BYTES = 6,
	TIME_FOLD = 31,
	TIME_ZONE = 32,
	DELTA_DAYS = 24, /* i32, as seconds and microseconds behind it */
	ZONE_OFFSET = 16,
	ZONE_NAME = 24,
};

int value_show_range(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	raddr_t parts[3]; /* start, stop, step */
	int64_t step;
	int err = value_read(v, object + OBJECT_HEAD, parts, sizeof(parts));

	(void)type;
	if (err)
		return err;
	buf_puts(v->to, "range(");
	value_show(v, parts[0]);
	buf_puts(v->to, ", ");
	value_show(v, parts[1]);
	if (value_int64(v, parts[2], &step) != 0 || step != 1) {
		buf_puts(v->to, ", ");
		value_show(v, parts[2]);
	}
	buf_putc(v->to, ')');
	return 0;
}

int value_show_slice(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	raddr_t parts[3];
	int err = value_read(v, object + OBJECT_HEAD, parts, sizeof(parts));

	(void)type;
	if (err || !value_enter(v, object, "slice(", ")", 3))
		return err;
	for (int i = 0; i < 3; i++) {
		buf_puts(v->to, i ? ", " : "");
		value_show(v, parts[i]);
	}
	value_leave(v);
	buf_putc(v->to, ')');
	return 0;
}

static unsigned year_of(const unsigned char *data)
{
	return (unsigned)data[0] << 8 | data[1];
}

static unsigned micros_of(const unsigned char *data)
{
	return (unsigned)data[0] << 16 | (unsigned)data[1] << 8 | data[2];
}

/* ", seconds, microseconds" as far as they are not 0. */
static void add_small(struct buf *to, unsigned seconds, unsigned micros)
{
	if (seconds || micros)
		buf_printf(to, ", %u", seconds);
	if (micros)
		buf_printf(to, ", %u", micros);
}

static int add_zone(struct value_reader *v, raddr_t object, int32_t fold_off, int32_t zone_off)
{
	uint8_t has_zone, fold;
	raddr_t zone;
	int err = value_read(v, object + HAS_ZONE, &has_zone, 1);

	if (!err)
		err = value_read(v, object + (raddr_t)fold_off, &fold, 1);
	if (err)
		return err;
	if (fold)
		buf_puts(v->to, ", fold=1");
	if (!has_zone)
		return 0;
	err = value_read_word(v, object + (raddr_t)zone_off, &zone);
	if (!err && value_enter(v, object, ", tzinfo=", "", 1)) {
		value_show(v, zone);
		value_leave(v);
	}
	return err;
}

int value_show_date(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	unsigned char data[4];
	int err = value_read(v, object + DATE_DATA, data, sizeof(data));

	(void)type;
	if (!err)
		buf_printf(v->to, "datetime.date(%u, %u, %u)", year_of(data), data[2], data[3]);
	return err;
}

int value_show_datetime(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	unsigned char data[DATETIME_BYTES];
	int err = value_read(v, object + DATE_DATA, data, sizeof(data));

	(void)type;
	if (err)
		return err;
	buf_printf(v->to, "datetime.datetime(%u, %u, %u, %u, %u", year_of(data), data[2], data[3], data[4], data[5]);
	add_small(v->to, data[6], micros_of(data + 7));
	err = add_zone(v, object, DATETIME_FOLD, DATETIME_ZONE);
	buf_putc(v->to, ')');
	return err;
}

int value_show_time(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	unsigned char data[TIME_BYTES];
	int err = value_read(v, object + DATE_DATA, data, sizeof(data));

	(void)type;
	if (err)
		return err;
	buf_printf(v->to, "datetime.time(%u, %u", data[0], data[1]);
	add_small(v->to, data[2], micros_of(data + 3));
	err = add_zone(v, object, TIME_FOLD, TIME_ZONE);
	buf_putc(v->to, ')');
	return err;
}

int value_show_timedelta(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	static const char *const names[] = {"days=", "seconds=", "microseconds="};
	int32_t parts[3];
	const char *comma = "";
	int err = value_read(v, object + DELTA_DAYS, parts, sizeof(parts));

	(void)type;
	if (err)
		return err;
	buf_puts(v->to, "datetime.timedelta(");
	for (int i = 0; i < 3; i++) {
		bool shown = v->objects->named_deltas ? parts[i] != 0 : i == 0 || parts[i] != 0 || (i == 1 && parts[2] != 0);

		if (!shown)
			continue;
		buf_printf(v->to, "%s%s%" PRId32, comma, v->objects->named_deltas ? names[i] : "", parts[i]);
		comma = ", ";
	}
	buf_puts(v->to, *comma ? ")" : "0)");
	return 0;
}

int value_show_timezone(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	raddr_t offset, name;
	int32_t parts[3];
	int err = value_read_word(v, object + ZONE_OFFSET, &offset);

	(void)type;
	if (!err)
		err = value_read_word(v, object + ZONE_NAME, &name);
	if (!err)
		err = value_read(v, offset + DELTA_DAYS, parts, sizeof(parts));
	if (err)
		return err;
	if (!name && !parts[0] && !parts[1] && !parts[2]) {
		buf_puts(v->to, "datetime.timezone.utc");
		return 0;
	}
	if (!value_enter(v, object, "datetime.timezone(", ")", 1))
		return 0;
	value_show(v, offset);
	if (name) {
		buf_puts(v->to, ", ");
		value_show(v, name);
	}
	value_leave(v);
	buf_putc(v->to, ')');
	return 0;
}

/* Its attribute `int`, of at most five digits of 30 bits. */
int value_show_uuid(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	uint32_t digits[5] = {0};
	unsigned __int128 id = 0;
	uint64_t word, count;
	raddr_t number;
	char hex[33];
	int err = value_attr(v, object, "int", &number);

	(void)type;
	if (!err)
		err = value_read_word(v, number + OBJECT_HEAD, &word);
	if (err)
		return err;
	count = !v->objects->int_tag ? word : (word & 3) == 1 ? 0 : word >> 3;
	if (count > 5)
		return -EPROTO;
	err = count ? value_read(v, number + 24, digits, count * sizeof(digits[0])) : 0;
	if (err)
		return err;
	for (int i = 4; i >= 0; i--)
		id = id << 30 | digits[i];
	snprintf(hex, sizeof(hex), "%016" PRIx64 "%016" PRIx64, (uint64_t)(id >> 64), (uint64_t)id);
	buf_printf(v->to, "UUID('%.8s-%.4s-%.4s-%.4s-%.12s')", hex, hex + 8, hex + 12, hex + 16, hex + 20);
	return 0;
}

enum { PATH_PARTS_MAX = 64, PATH_BYTES = 1024 };

/* The strs in a list, joined; a part that begins with a slash stands for all before it. */
static bool join_parts(struct value_reader *v, raddr_t list, struct buf *path)
{
	uint64_t words[2]; /* size, array */
	char part[PATH_BYTES];

	if (value_read(v, list + OBJECT_HEAD, words, sizeof(words)) != 0 || words[0] > PATH_PARTS_MAX)
		return false;
	for (uint64_t i = 0; i < words[0]; i++) {
		raddr_t str;

		if (value_read_word(v, words[1] + 8 * i, &str) != 0 || !value_name(v, str, part, sizeof(part)))
			return false;
		if (part[0] == '/')
			path->bytes = 0;
		else if (path->bytes > 0 && path->data[path->bytes - 1] != '/')
			buf_putc(path, '/');
		buf_puts(path, part);
	}
	return !path->err;
}

/* As pathlib: no empty and no "." parts, no slash at the end; two slashes in front stay, three are one. */
static void normalise(const char *path, struct buf *to)
{
	size_t slashes = strspn(path, "/");

	if (slashes)
		buf_puts(to, slashes == 2 ? "//" : "/");
	while (*(path += strspn(path, "/"))) {
		size_t bytes = strcspn(path, "/");

		if (bytes != 1 || *path != '.') {
			if (to->bytes > 0 && to->data[to->bytes - 1] != '/')
				buf_putc(to, '/');
			buf_add(to, path, bytes);
		}
		path += bytes;
	}
	if (to->bytes == 0)
		buf_putc(to, '.');
}

/* pathlib keeps what it was made of, and what it has found out: `_str`; before 3.12 `_parts`, since `_raw_paths`. */
int value_show_path(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	struct buf path = {0}, normal = {0};
	char text[PATH_BYTES];
	raddr_t at;
	bool known = false;

	if (value_attr(v, object, "_str", &at) == 0 && value_name(v, at, text, sizeof(text))) {
		buf_puts(&path, text);
		known = true;
	} else if (value_attr(v, object, "_raw_paths", &at) == 0 || value_attr(v, object, "_parts", &at) == 0) {
		known = join_parts(v, at, &path);
	}
	if (known)
		normalise(buf_text(&path), &normal);
	if (known && !normal.err)
		buf_printf(v->to, "%s('%s')", value_type_name(type), buf_text(&normal));
	buf_release(&path);
	buf_release(&normal);
	return known ? 0 : value_show_instance(v, object, type);
}

enum { /* PyArrayObject_fields, PyArray_Descr: numpy 1 and 2 */
	ARRAY_DIMENSIONS = 24, /* i32 count; pointer behind */
	ARRAY_DTYPE = 56,
	DTYPE_NUMBER = 28, /* i32 */
	ARRAY_DIMENSIONS_MAX = 64,
};

static const char *dtype_name(int32_t number)
{
	static const char *const names[] = {"bool",      "int8",       "uint8",      "int16",       "uint16", "int32",
	                                    "uint32",    "int64",      "uint64",     "int64",       "uint64", "float32",
	                                    "float64",   "longdouble", "complex64",  "complex128",  "clongdouble",
	                                    "object",    "str",        "bytes",      "void",        "datetime64",
	                                    "timedelta64", "float16"};

	return number >= 0 && number < (int32_t)(sizeof(names) / sizeof(names[0])) ? names[number] : "?";
}

int value_show_ndarray(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	uint64_t dimensions, dtype, sizes[ARRAY_DIMENSIONS_MAX];
	int32_t count, number;
	int err = value_read(v, object + ARRAY_DIMENSIONS, &count, sizeof(count));

	(void)type;
	if (!err)
		err = value_read_word(v, object + ARRAY_DIMENSIONS + 8, &dimensions);
	if (!err)
		err = value_read_word(v, object + ARRAY_DTYPE, &dtype);
	if (!err)
		err = value_read(v, dtype + DTYPE_NUMBER, &number, sizeof(number));
	if (!err && (count < 0 || count > ARRAY_DIMENSIONS_MAX))
		err = -EPROTO;
	if (!err && count > 0)
		err = value_read(v, dimensions, sizes, (size_t)count * sizeof(sizes[0]));
	if (err)
		return err;
	buf_printf(v->to, "<ndarray dtype=%s shape=(", dtype_name(number));
	for (int32_t i = 0; i < count; i++)
		buf_printf(v->to, "%s%" PRIu64, i ? ", " : "", sizes[i]);
	buf_puts(v->to, count == 1 ? ",)>" : ")>");
	return 0;
}
