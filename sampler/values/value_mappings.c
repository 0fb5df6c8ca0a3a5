/* SPDX-License-Identifier: Apache-2.0 */
/* Dicts, what is built on them, and their views, up to the bounds of containers. */
#include <errno.h>
#include <string.h>

#include "base/secrets.h"
#include "sampler/pydict.h"
#include "sampler/values/value.h"

enum {
	DICT_USED = 16,
	DEFAULT_FACTORY = 48, /* behind the dict */
	VIEW_OF = 16,         /* what a view, or a proxy, is of */
	DICT_READS = 8,       /* what going through one costs, about */
};

enum pairs { PAIRS_DICT, PAIRS_KEYS, PAIRS_VALUES, PAIRS_TUPLES };

struct dict_walk {
	struct value_reader *v;
	enum pairs pairs;
	uint64_t done, count;
	bool full;
};

/* Whether a key names what is nobody else's business. */
static bool is_secret_key(struct value_reader *v, raddr_t key)
{
	char text[VALUE_KEY_BYTES];
	struct object_type type;
	unsigned char bytes[VALUE_KEY_BYTES];
	uint64_t size;

	if (v->secrets)
		return false;
	if (value_name(v, key, text, sizeof(text)))
		return secrets_is_name(text, strlen(text));
	if (value_type_of(v, key, &type) != 0 || strcmp(type.name, "bytes") != 0 ||
	    value_read_word(v, key + (raddr_t)v->abi->bytes.size, &size) != 0)
		return false;
	size = size < sizeof(bytes) ? size : sizeof(bytes);
	return size > 0 && value_read(v, key + (raddr_t)v->abi->bytes.data, bytes, (size_t)size) == 0 &&
	       secrets_is_name((const char *)bytes, (size_t)size);
}

static int show_pair(void *context, const struct pykey *key)
{
	struct dict_walk *walk = context;
	struct value_reader *v = walk->v;
	bool secret;

	if (walk->done >= walk->count || !value_has_room(v, walk->done, walk->count)) {
		walk->full = true;
		return 1;
	}
	walk->done++;
	secret = walk->pairs != PAIRS_KEYS && is_secret_key(v, key->key);
	buf_puts(v->to, walk->pairs == PAIRS_TUPLES ? "(" : "");
	if (walk->pairs != PAIRS_VALUES)
		value_show(v, key->key);
	buf_puts(v->to, walk->pairs == PAIRS_DICT ? ": " : walk->pairs == PAIRS_TUPLES ? ", " : "");
	if (secret)
		buf_puts(v->to, VALUE_HIDDEN);
	else if (walk->pairs != PAIRS_KEYS)
		value_show(v, key->value);
	buf_puts(v->to, walk->pairs == PAIRS_TUPLES ? ")" : "");
	return 0;
}

static int show_pairs(struct value_reader *v, raddr_t dict, enum pairs pairs, const char *open, const char *close)
{
	struct dict_walk walk = {.v = v, .pairs = pairs};
	int err = value_read_word(v, dict + DICT_USED, &walk.count);

	if (!err && walk.count > VALUE_COUNT_MAX)
		err = -EPROTO;
	if (err)
		return err;
	if (!value_enter(v, dict, open, close, walk.count))
		return 0;
	v->reads += DICT_READS;
	err = pydict_walk(v->remote, v->abi, dict, show_pair, &walk);
	value_leave(v);
	if (err >= 0 && !walk.full && walk.done < walk.count)
		return -EAGAIN; /* it has more than its own table */
	buf_puts(v->to, close);
	return err < 0 ? err : 0;
}

int value_show_dict(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	(void)type;
	return show_pairs(v, object, PAIRS_DICT, "{", "}");
}

int value_show_defaultdict(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	raddr_t factory;
	int err = value_read_word(v, object + DEFAULT_FACTORY, &factory);

	(void)type;
	if (err)
		return err;
	buf_puts(v->to, "defaultdict(");
	if (factory)
		value_show(v, factory);
	else
		buf_puts(v->to, "None");
	buf_puts(v->to, ", ");
	err = show_pairs(v, object, PAIRS_DICT, "{", "}");
	buf_putc(v->to, ')');
	return err;
}

int value_show_ordereddict(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	uint64_t count;
	int err = value_read_word(v, object + DICT_USED, &count);

	(void)type;
	if (err)
		return err;
	buf_puts(v->to, "OrderedDict(");
	if (count > 0 && v->objects->ordered_as_dict)
		err = show_pairs(v, object, PAIRS_DICT, "{", "}");
	else if (count > 0)
		err = show_pairs(v, object, PAIRS_TUPLES, "[", "]");
	buf_putc(v->to, ')');
	return err;
}

int value_show_mappingproxy(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	raddr_t of;
	int err = value_read_word(v, object + VIEW_OF, &of);

	(void)type;
	if (err)
		return err;
	buf_puts(v->to, "mappingproxy(");
	value_show(v, of);
	buf_putc(v->to, ')');
	return 0;
}

int value_show_dictview(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	enum pairs pairs = strcmp(type->name, "dict_keys") == 0     ? PAIRS_KEYS
	                   : strcmp(type->name, "dict_values") == 0 ? PAIRS_VALUES
	                                                            : PAIRS_TUPLES;
	raddr_t of;
	int err = value_read_word(v, object + VIEW_OF, &of);

	if (err)
		return err;
	buf_printf(v->to, "%s(", type->name);
	err = show_pairs(v, of, pairs, "[", "]");
	buf_putc(v->to, ')');
	return err;
}
