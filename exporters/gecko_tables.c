/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/gecko_tables.h"

struct gecko_table gecko_table(const struct json_tree *tree, const struct json_value *shared, const struct json_value *thread,
                               const char *name)
{
	const struct json_value *of = json_member(tree, thread, name);
	struct gecko_table table = {.tree = tree};

	of = of ? of : json_member(tree, shared, name);
	table.schema = json_member(tree, of, "schema");
	table.rows = json_member(tree, of, "data");
	if (table.schema && table.rows) {
		table.length = table.rows->type == JSON_ARRAY ? table.rows->count : 0;
	} else {
		table.columns = of;
		for (const struct json_value *v = json_first(of); v; v = json_after(tree, of, v))
			if (v->type == JSON_ARRAY && v->count > table.length)
				table.length = v->count;
	}
	return table;
}

struct gecko_column gecko_column(const struct gecko_table *table, const char *name)
{
	struct gecko_column column = {.table = table, .place = UINT64_MAX};

	if (table->columns)
		column.values = json_member(table->tree, table->columns, name);
	else
		column.place = json_index(json_member(table->tree, table->schema, name), 64);
	return column;
}

const struct json_value *gecko_cell(const struct gecko_column *column, const struct json_value *row, uint64_t index)
{
	if (column->table->columns)
		return json_at(column->table->tree, column->values, index);
	return column->place == UINT64_MAX ? NULL : json_at(column->table->tree, row, column->place);
}
