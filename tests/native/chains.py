# SPDX-License-Identifier: Apache-2.0
"""Each function of the module chain_VARIANT in turn, a few milliseconds each, for ever: chains.py VARIANT. STACKS says what may stand on
what (tests/integration/native_grammar.py)."""
import importlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
chain = importlib.import_module("chain_" + (sys.argv[1] if len(sys.argv) > 1 else "nofp"))

STACKS = {
    "": ["module"],
    "module": ("python", "<module>", {"loop": ["loop"]}),
    "loop": ("python", "loop", {"deep": ["deep"], "product": ["product"], "lines": ["lines"], "call": ["call"], "plain": ["plain"]}),
    "plain": ("python", "plain", {}),
    "deep": ("python", "deep", {"c_deep": ["chain_deep"]}),
    "chain_deep": ("glue", "chain_deep", ["deep_outer"]),
    "deep_outer": ("native", "deep_outer", ["deep_middle"]),
    "deep_middle": ("native", "deep_middle", ["deep_inner"]),
    "deep_inner": ("native", "deep_inner", ["libm"]),
    "libm": ("library", r"libm[.-]", []),
    "product": ("python", "product", {"c_product": ["chain_product"]}),
    "chain_product": ("glue", "chain_product", ["product_all"]),
    "product_all": ("native", "product_all", ["product_row"]),
    "product_row": ("native", "product_row", ["product_dot"]),
    "product_dot": ("native", "product_dot", []),
    "lines": ("python", "lines", {"c_lines": ["chain_lines"]}),
    "chain_lines": ("glue", "chain_lines", ["lines_outer", "shared_name"]),
    "lines_outer": ("native", "lines_outer", ["lines_middle", "shared_name"]),
    "lines_middle": ("native", "lines_middle", ["lines_inner"]),
    "lines_inner": ("native", "lines_inner", ["lines_loop"]),
    "lines_loop": ("native", "lines_loop", []),
    "shared_name": ("native", "shared_name", []),
    "call": ("python", "call", {"c_call": ["chain_call"]}),
    "chain_call": ("glue", "chain_call", ["call_outer"]),
    "call_outer": ("glue", "call_outer", ["call_inner"]),
    "call_inner": ("glue", "call_inner", ["back"]),
    "back": ("python", "back", {"b_deep": ["chain_deep"], "b_plain": ["plain"]}),
}


def plain(times):
    total = 0
    for number in range(times):
        total += number % 7
    return total


def deep():
    return chain.deep(60000)  #@ c_deep


def product():
    return chain.product(2)  #@ c_product


def lines():
    return chain.lines(300000)  #@ c_lines


def back(number):
    total = chain.deep(number)  #@ b_deep
    return total + plain(number)  #@ b_plain


def call():
    chain.call(back, 500, 40)  #@ c_call


def loop():
    while True:
        deep()  #@ deep
        product()  #@ product
        lines()  #@ lines
        call()  #@ call
        plain(10000)  #@ plain


if __name__ == "__main__":
    print("READY {}", flush=True)
    loop()  #@ loop
