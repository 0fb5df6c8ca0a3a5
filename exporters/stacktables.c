/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/stacktables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"

void stack_tables_init(struct stack_tables *t, const struct profile *profile)
{
	*t = (struct stack_tables){.profile = profile};
	t->symbol_functions = calloc((size_t)profile->symbol_count + 1, sizeof(*t->symbol_functions));
	if (!t->symbol_functions)
		t->err = -ENOMEM;
	stack_tables_string(t, "");
}

void stack_tables_release(struct stack_tables *t)
{
	text_set_release(&t->strings);
	pair_set_release(&t->names);
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

static uint32_t function_of(struct stack_tables *t, uint32_t symbol)
{
	const struct symbol *s = &t->profile->symbols[symbol];
	uint32_t name, file, function;

	if (t->symbol_functions[symbol])
		return t->symbol_functions[symbol] - 1;
	name = stack_tables_string(t, s->name);
	file = stack_tables_string(t, s->file);
	function =
		checked(t, pair_set_add(&t->functions, checked(t, pair_set_add(&t->names, name, file)), s->first_line));
	t->symbol_functions[symbol] = function + 1;
	return function;
}

uint32_t stack_tables_location(struct stack_tables *t, uint32_t symbol, uint32_t line)
{
	return t->err ? 0 : checked(t, pair_set_add(&t->locations, function_of(t, symbol), line));
}

struct stack_function stack_tables_function(const struct stack_tables *t, uint32_t function)
{
	struct pair pair = pair_set_get(&t->functions, function), name = pair_set_get(&t->names, pair.a);

	return (struct stack_function){.name = name.a, .file = name.b, .first_line = pair.b};
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

	/* "cpu" is the name by which all consumers of pprof know this. */
	column.name = column_text(t, v == VALUE_ON_CPU && profile_has(t->profile, v) ? "cpu" : type->name);
	column.unit = column_text(t, type->unit);
	return column;
}

unsigned stack_tables_columns(struct stack_tables *t, struct value_column ret_columns[VALUE_COUNT])
{
	static const enum value_index own[] = {VALUE_SAMPLES, VALUE_WALL, VALUE_ON_CPU, VALUE_GIL};
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
