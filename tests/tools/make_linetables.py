# SPDX-License-Identifier: Apache-2.0
"""Prints the line tables of some tricky code objects, with what the interpreter itself says they mean.

Run by each Python from 3.6 on; the outputs, one after the other, are the entries of tests/unit/linetables_data.h:

    for python in python3.8 ... python3.15; do $python make_linetables.py; done

(`--header` prints the lines before the first, `--footer` the one after the last.) What is expected never comes from
our decoder, nor from a decoder of this script: dis.findlinestarts() to 3.9, code.co_lines() since, which is compared
with co_positions() where that exists.
"""
import dis
import sys

HEADER = """\
/* SPDX-License-Identifier: Apache-2.0 */
/* Line tables of real interpreters, and the lines that these interpreters say they hold. Made by
 * tests/tools/make_linetables.py: do not edit. One table, as long as there are cases. */
#ifndef SAMPLED_TESTS_UNIT_LINETABLES_DATA_H
#define SAMPLED_TESTS_UNIT_LINETABLES_DATA_H

#include <stdint.h>

#include "sampler/pyabi/pyabi.h"

struct linetable_case {
	const char *python, *name;
	enum py_lines format;
	uint32_t first_line, code_bytes;
	const char *table;    /* hexadecimal */
	const char *expected; /* "offset:line" from this offset on, 0: none; in bytes */
};

static const struct linetable_case linetable_cases[] = {
"""
FOOTER = "};\n\n#endif\n"

# Blank lines are part of the cases: @N@ stands for N of them.
SOURCE = '''
import contextlib
def plain(): return 1
@1@
def loops(n):
    total = 0
    for i in range(n):
        while total < i:
            total += 1
            if total %% 3 == 0:
                continue
            elif total > 100:
                break
        else:
            total -= 1
    return total

def multi_line_call(f, a, b, *rest, **more):
    return f(
        a,
        b(
            1,
            2)
        [3]
        .real,
        *rest,
        key=a +
            b,
        **more
    )

def wrap(first, second):
    def around(function):
        return function
    return around

@wrap(1,
      2)
@wrap(
    3, 4
)
def decorated(a=lambda: 1,
              b=[x for x in (1, 2)]):
    @wrap(5, 6)
    class Inner(dict):
        """Text."""
        attribute = 1
@30@
        def method(self): pass
    return Inner

lambdas = [
    lambda x: x,
    lambda x: (x +
        1),
]

def comprehensions(rows):
    a = [cell
         for row in rows
         for cell in row
         if cell]
    b = {cell: row for row in rows
         for cell in row}
    c = {c for c in a}
    return sum(
        x
        for x in a
        if x > 1), b, c

def try_finally(f):
    for i in range(3):
        try:
            f(i)
        except ValueError as e:
            f(e)
            continue
        except (KeyError,
                TypeError):
            return f(1)
        else:
            f(2)
        finally:
            f(
              3)
    try:
        return f(4)
    finally:
        f(5)

def with_blocks(f):
    with f(1) as a, \\
         f(2) as b:
        if a:
            return b
        f(3)
    with contextlib.suppress(
            ValueError):
        pass

def generator(n):
    while True:
        got = yield n
        if got:
            yield from range(
                got)

async def coroutine(f):
    async with f() as g:
        async for x in g:
            await x(
                1)
    return [y async for y in f()]

def asserts(a):
    assert a, (
        "text")
    del a
    global g; g = 1; return (g,
        2)

def nothing_after_return(a):
    while a:
        if a > 1:
            return a
    return

def far_apart(a, b):
    a()
@126@
    a()
@127@
    a()
@128@
    b()
@254@
    b()
@260@
    a()
@400@
    return a

def far_back(f):
    return f(1,
@140@
        f(2,
@300@
          3) + f(4), *f(
@5@
              6)).real

def long_expression(a):
    return a(%s,
        %s)

def long_body(a):
%s
@300@
    return a
''' % (', '.join('a + %d' % i for i in range(40)),
       ', '.join('a.x%d' % i for i in range(40)),
       '\n'.join('    a(%d)' % i if i % 7 else '    a(\n        %d)' % i for i in range(30)))


def expand(source):
    lines = []
    for line in source.split('\n'):
        if line.startswith('@') and line.endswith('@') and line[1:-1].isdigit():
            lines += [''] * int(line[1:-1])
        else:
            lines.append(line)
    return '\n'.join(lines)


def code_objects(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, type(code)):
            yield from code_objects(constant)


def expected_lines(code):
    """[(offset, line or 0)] that cover the code, equal neighbours joined."""
    if hasattr(code, 'co_lines'):
        ranges = [(start, line or 0) for start, end, line in code.co_lines() if end > start]
    else:
        ranges = [(start, line) for start, line in dis.findlinestarts(code) if start < len(code.co_code)]
    joined = []
    for start, line in ranges:
        if not joined or joined[-1][1] != line:
            joined.append((start, line))
    if hasattr(code, 'co_positions'):
        at = {}
        for start, line in joined:
            at[start] = line
        line = None
        for i, position in enumerate(code.co_positions()):
            line = at.get(2 * i, line)
            assert line == (position[0] or 0), (code.co_name, 2 * i, line, position)
    return joined


def in_pieces(text, indent='\t\t'):
    pieces = [text[i:i + 108] for i in range(0, len(text), 108)] or ['']
    return '\n'.join('%s"%s"' % (indent, piece) for piece in pieces)


def main():
    if sys.argv[1:] == ['--header']:
        sys.stdout.write(HEADER)
        return
    if sys.argv[1:] == ['--footer']:
        sys.stdout.write(FOOTER)
        return
    version = sys.version_info
    form = 'LINES_311' if version >= (3, 11) else 'LINES_310' if version >= (3, 10) else 'LINES_LNOTAB'
    module = compile(expand(SOURCE), 'tricky.py', 'exec')
    for code in code_objects(module):
        table = code.co_linetable if version >= (3, 10) else code.co_lnotab
        print('\t{')
        print('\t\t.python = "%d.%d", .name = "%s", .format = %s,' % (version[0], version[1], code.co_name, form))
        print('\t\t.first_line = %d, .code_bytes = %d,' % (code.co_firstlineno, len(code.co_code)))
        print('\t\t.table =\n%s,' % in_pieces(bytes(table).hex()))
        print('\t\t.expected =\n%s,' % in_pieces(' '.join('%d:%d' % pair for pair in expected_lines(code))))
        print('\t},')


if __name__ == '__main__':
    main()
