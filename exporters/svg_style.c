/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/svg_style.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/utf8.h"

enum {
	HUES = 24,
	STEPS = 4, /* shades of a change */
};

void svg_write_xml(struct writer *to, const char *text)
{
	size_t left = strlen(text);

	while (left > 0) {
		uint32_t c;
		size_t length = utf8_next(text, left, &c);

		if (c == '<')
			writer_puts(to, "&lt;");
		else if (c == '>')
			writer_puts(to, "&gt;");
		else if (c == '&')
			writer_puts(to, "&amp;");
		else if (c == '"')
			writer_puts(to, "&quot;");
		else if (c == 0xfffd || c == 0xfffe || c == 0xffff || utf8_is_unsafe(c))
			writer_puts(to, "\xef\xbf\xbd");
		else
			writer_add(to, text, length);
		text += length;
		left -= length;
	}
}

/* h in degrees, s and l in percent (https://www.w3.org/TR/css-color-3/#hsl-color), as six digits: not all that draw SVG know hsl(). */
static uint32_t rgb_of(double h, double s, double l)
{
	static const int shifts[3] = {0, 8, 4}; /* of red, green, blue on the circle of twelve */
	double a = s / 100 * fmin(l, 100 - l) / 100;
	uint32_t rgb = 0;

	for (int i = 0; i < 3; i++) {
		double k = fmod(shifts[i] + h / 30, 12);
		double part = l / 100 - a * fmax(-1, fmin(fmin(k - 3, 9 - k), 1));

		rgb = rgb << 8 | (uint32_t)lround(255 * part);
	}
	return rgb;
}

static void write_fills(struct writer *to, bool dark)
{
	for (int i = 0; i < HUES; i++) /* as the page colours files */
		writer_printf(to, ".c%d{fill:#%06" PRIx32 "}", i,
		              dark ? rgb_of(i * 360.0 / HUES, 34, 38) : rgb_of(i * 360.0 / HUES, 58, 78));
	for (int i = 0; i < STEPS; i++)
		writer_printf(to, ".g%d{fill:#%06" PRIx32 "}.s%d{fill:#%06" PRIx32 "}", i,
		              dark ? rgb_of(6, 30 + 12 * i, 27 + 6 * i) : rgb_of(6, 76 + 3 * i, 88 - 8 * i), i,
		              dark ? rgb_of(216, 28 + 11 * i, 28 + 7 * i) : rgb_of(216, 72 + 3 * i, 90 - 8 * i));
	/* The page's colour of native code. */
	writer_printf(to, ".v{fill:#%06" PRIx32 "}", dark ? rgb_of(100, 36, 32) : rgb_of(96, 44, 72));
	writer_puts(to, dark ? ".n{fill:#4a4843}.t{fill:#383d46}.o{fill:#2f3742}.bg{fill:#12161d}text{fill:#f1f4f8}."
	                       "dim{fill:#9aa6b5}"
	                       ".loss{fill:#ffc67a}rect:hover{stroke:#c9d3df}\n"
	                     : ".n{fill:#e9e7df}.t{fill:#dadde3}.o{fill:#d3d9e1}.bg{fill:#ffffff}text{fill:#17202b}."
	                       "dim{fill:#5b6675}"
	                       ".loss{fill:#8a4b00}rect:hover{stroke:#3c4a5b}\n");
}

void svg_write_style(struct writer *to)
{
	writer_puts(to, "<style>\ntext{font:11px ui-monospace,Menlo,Consolas,\"DejaVu Sans "
	                "Mono\",monospace;pointer-events:none;"
	                "white-space:pre}\n.head{font-size:14px;font-weight:bold}\n");
	write_fills(to, false);
	writer_puts(to, "@media (prefers-color-scheme:dark){");
	write_fills(to, true);
	writer_puts(to, "}\n</style>\n");
}

void svg_symbol_class(char *to, size_t room, const struct symbol *symbol)
{
	if (symbol && symbol->kind == FRAME_NATIVE)
		snprintf(to, room, "v");
	else if (!symbol || symbol->file[0] == '\0')
		snprintf(to, room, "t");
	else
		snprintf(to, room, "c%u", (unsigned)(hash_bytes(0, symbol->file, strlen(symbol->file)) % HUES));
}

void svg_change_class(char *to, size_t room, const struct change *change, double larger_percent)
{
	int step = (int)(STEPS * fabs(change->points) / fmax(larger_percent, 1e-9));

	if (change->is_certain)
		snprintf(to, room, "%c%d", change->points > 0 ? 'g' : 's', step < STEPS ? step : STEPS - 1);
	else
		snprintf(to, room, "n");
}
