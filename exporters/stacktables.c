/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/stacktables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"

void stack_tables_release(struct stack_tables *t)
{
	text_set_release(&t->strings);
	pair_set_release(&t->names);
	pair_set_release(&t->lines);
	pair_set_release(&t->modules);
	text_set_release(&t->build_ids);
	buf_release(&t->mappings);
	pair_set_release(&t->functions);
	pair_set_release(&t->locations);
	free(t->symbol_functions);
	buf_release(&t->scratch);
}

static uint32_t checked(struct stack_tables *t, uint32_t number)
{
	if (number != INTERN_FAILED && !t->scratch.err)
		return number;
	t->err = -ENOMEM;
	return 0;
}

uint32_t stack_tables_string(struct stack_tables *t, const char *text)
{
	if (t->err)
		return 0;
	t->scratch.bytes = 0;
	utf8_add_valid(&t->scratch, text, strlen(text));
	return checked(t, text_set_add(&t->strings, t->scratch.data ? t->scratch.data : "", t->scratch.bytes));
}

static struct stack_mapping *mapping_at(const struct stack_tables *t, uint32_t number)
{
	return (struct stack_mapping *)(void *)t->mappings.data + number;
}

/* The number of a symbol's mapping. */
static uint32_t module_of(struct stack_tables *t, const struct symbol *s)
{
	uint32_t file = stack_tables_string(t, s->module), before = t->modules.count, number;
	uint32_t build_id = checked(t, text_set_add(&t->build_ids, s->build_id, strlen(s->build_id)));

	/* Memory without a file is a mapping of its own, though it is called like Python's. */
	if (s->mapped && !s->module[0])
		file = stack_tables_string(t, s->name);
	number = checked(t, pair_set_add(&t->modules, file, build_id));
	if (number == before && !t->err) {
		struct stack_mapping mapping = {.file = file, .build_id = build_id, .has_functions = true};

		buf_add(&t->mappings, &mapping, sizeof(mapping));
		if (t->mappings.err)
			t->err = -ENOMEM;
	}
	return t->err ? 0 : number;
}

uint32_t stack_tables_mapping_of(const struct stack_tables *t, struct pair location)
{
	return location.a & STACK_PLACE ? location.a & ~STACK_PLACE : pair_set_get(&t->functions, location.a).b;
}

struct stack_mapping stack_tables_mapping(const struct stack_tables *t, uint32_t mapping)
{
	return *mapping_at(t, mapping);
}

void stack_tables_init(struct stack_tables *t, const struct profile *profile)
{
	static const struct symbol none = {.name = "", .file = "", .module = "", .build_id = ""};

	*t = (struct stack_tables){.profile = profile};
	t->symbol_functions = calloc((size_t)profile->symbol_count + 1, sizeof(*t->symbol_functions));
	if (!t->symbol_functions)
		t->err = -ENOMEM;
	stack_tables_string(t, "");
	module_of(t, &none);
}

static uint32_t function_of(struct stack_tables *t, uint32_t symbol)
{
	const struct symbol *s = &t->profile->symbols[symbol];
	uint32_t name, file, function, mapping;

	if (t->symbol_functions[symbol])
		return t->symbol_functions[symbol] - 1;
	name = stack_tables_string(t, s->name);
	file = stack_tables_string(t, s->file);
	mapping = module_of(t, s);
	function = checked(t, pair_set_add(&t->names, name, file));
	function = checked(t, pair_set_add(&t->lines, function, s->first_line));
	function = checked(t, pair_set_add(&t->functions, function, mapping));
	if (!t->err) {
		mapping_at(t, mapping)->has_some = true;
		mapping_at(t, mapping)->has_files |= file != 0;
	}
	t->symbol_functions[symbol] = function + 1;
	return function;
}

/* The part of the file that was seen mapped; all of it up to the place where that does not lie there. */
static void widen(struct stack_mapping *mapping, const struct symbol *s, uint32_t place)
{
	if (mapping->from == mapping->to) {
		mapping->from = s->mapped_from;
		mapping->to = s->mapped_to;
	}
	if (place < mapping->from)
		mapping->from = 0;
	if (place >= mapping->to)
		mapping->to = (uint64_t)place + 1;
}

static uint32_t place_in(struct stack_tables *t, const struct symbol *s, uint32_t place)
{
	uint32_t mapping = module_of(t, s);

	if (t->err)
		return 0;
	mapping_at(t, mapping)->has_functions = false;
	widen(mapping_at(t, mapping), s, place);
	return checked(t, pair_set_add(&t->locations, STACK_PLACE | mapping, place));
}

uint32_t stack_tables_location(struct stack_tables *t, uint32_t symbol, uint32_t line)
{
	const struct symbol *s = &t->profile->symbols[symbol];

	if (!t->err && s->mapped)
		return place_in(t, s, line);
	return t->err ? 0 : checked(t, pair_set_add(&t->locations, function_of(t, symbol), line));
}

struct stack_function stack_tables_function(const struct stack_tables *t, uint32_t function)
{
	struct pair pair = pair_set_get(&t->functions, function), line = pair_set_get(&t->lines, pair.a);
	struct pair name = pair_set_get(&t->names, line.a);

	return (struct stack_function){.name = name.a, .file = name.b, .first_line = line.b, .mapping = pair.b};
}

/* Stores join type and unit with '-' or ':' into names of their own, and take neither in them. */
static uint32_t column_text(struct stack_tables *t, const char *text)
{
	char name[128];
	size_t bytes = 0;

	for (; bytes < sizeof(name) - 1 && text[bytes]; bytes++)
		name[bytes] = text[bytes] == '-' || text[bytes] == ':' ? '_' : text[bytes];
	name[bytes] = '\0';
	return stack_tables_string(t, name);
}

static struct value_column column_of(struct stack_tables *t, enum value_index v)
{
	const struct value_type *type = &t->profile->values[v];
	struct value_column column = {.from = v};

	/* Calls, rows and objects are not called samples, or who reads it would count them. */
	column.name = column_text(t, v == VALUE_SAMPLES && t->profile->uncounted && profile_has(t->profile, v) ? "records" : type->name);
	column.unit = column_text(t, type->unit);
	return column;
}

unsigned stack_tables_columns(struct stack_tables *t, struct value_column ret_columns[VALUE_COUNT])
{
	static const enum value_index own[] = {VALUE_SAMPLES, VALUE_WALL, VALUE_CPU,
	                                       VALUE_RUNNABLE, VALUE_GIL, VALUE_RUN_WAIT};
	unsigned count = 0;

	if (t->profile->imported) {
		for (enum value_index v = 0; v < VALUE_COUNT; v++)
			if (t->profile->values[v].name)
				ret_columns[count++] = column_of(t, v);
		return count;
	}
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (t->profile->values[own[i]].name)
			ret_columns[count++] = column_of(t, own[i]);
	return count;
}

bool node_has_values(const struct node *node, const struct value_column *columns, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (node->self[columns[i].from])
			return true;
	return false;
}

int64_t column_value(const struct node *node, const struct value_column *column)
{
	uint64_t value = node->self[column->from];

	return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

int64_t sampling_period_ns(const struct profile *profile, const struct facts *facts)
{
	double ns = (double)profile->interval_ns;

	if (ns <= 0 && facts->reached_hz > 0)
		ns = (double)NS_PER_S / facts->reached_hz;
	return ns < 1 ? 1 : ns > 1e18 ? (int64_t)1e18 : (int64_t)ns;
}
