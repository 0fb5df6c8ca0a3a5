# SPDX-License-Identifier: Apache-2.0
"""Says where functions of the standard library call what by name, by their source: callnames.py FILE. FILE gets a line of JSON for each code object: its
address, its file and name, {offset: [kind, name]}, for calls whose callable is a name or an attribute, {offset: address}, for those with a generator
expression as their only argument, of its code, and {offset: name}, for those whose only argument is such a call. Then it waits. 3.11+."""
import argparse
import ast
import asyncio
import collections
import configparser
import dataclasses
import dis
import email.parser
import gc
import http.client
import http.server
import inspect
import json
import logging.handlers
import os
import sys
import tarfile
import time
import types
import typing
import unittest.mock
import urllib.request
import zipfile

import truth

SEEN = [argparse, asyncio, collections, configparser, dataclasses, email.parser, http.client, http.server, inspect, json, logging.handlers, tarfile, typing,
        unittest.mock, urllib.request, zipfile]  # and what these import
CALL, RESUME = 1, 2


def name_of(node):
    """Of what is called; None: it is no call, or not by a name."""
    if not isinstance(node, ast.Call):
        return None
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else None


def place_of(node):
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


class Source:
    """What the nodes of a file call, by their places."""

    def __init__(self, path):
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
        self.calls, self.resumed, self.made, self.given = {}, {}, {}, {}
        for node in ast.walk(tree):
            name = name_of(node)
            if name:
                self.calls[place_of(node)] = self.resumed[place_of(node)] = name
            if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
                if isinstance(node.args[0], ast.GeneratorExp):
                    self.made[place_of(node)] = node.args[0].lineno
                if name_of(node.args[0]):
                    self.given[place_of(node)] = name_of(node.args[0])
        for node in ast.walk(tree):
            if isinstance(node, (ast.Await, ast.YieldFrom)):
                self.resumed[place_of(node)] = name_of(node.value)

    def named(self, code):
        found = {}
        for step in dis.get_instructions(code):
            p = step.positions
            place = p.lineno, p.end_lineno, p.col_offset, p.end_col_offset
            if step.opname in ("CALL", "CALL_KW", "CALL_FUNCTION_EX"):
                found[step.offset] = CALL, self.calls.get(place)
            elif step.opname in ("SEND", "FOR_ITER"):
                found[step.offset] = RESUME, self.resumed.get(place)
        return {offset: pair for offset, pair in found.items() if pair[1]}

    def generators(self, code):
        expressions = [one for one in code.co_consts if isinstance(one, types.CodeType) and one.co_name == "<genexpr>"]
        lines = [one.co_firstlineno for one in expressions]
        by_line = {one.co_firstlineno: id(one) for one in expressions if lines.count(one.co_firstlineno) == 1}
        found, given = {}, {}
        for step in dis.get_instructions(code):
            p = step.positions
            place = p.lineno, p.end_lineno, p.col_offset, p.end_col_offset
            if step.opname == "CALL" and step.arg == 1 and place in self.given:
                given[step.offset] = self.given[place]
            line = self.made.get(place) if step.opname == "CALL" and step.arg == 1 else None
            if line in by_line:
                found[step.offset] = by_line[line]
        return found, list(by_line.values()), given


def main():
    sources, lines = {}, []
    for function in gc.get_objects():
        if not isinstance(function, types.FunctionType):
            continue
        code = function.__code__
        if not os.path.isabs(code.co_filename) or not os.path.exists(code.co_filename):
            continue
        if code.co_filename not in sources:
            sources[code.co_filename] = Source(code.co_filename)
        named = sources[code.co_filename].named(code)
        made, expressions, given = sources[code.co_filename].generators(code)
        if named or made:
            lines.append({"address": id(code), "file": code.co_filename, "function": code.co_qualname, "named": named, "made": made,
                          "expressions": expressions, "given": given})
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        for line in lines:
            print(json.dumps(line), file=file)
    truth.ready(count=len(lines))
    time.sleep(3600)


main()
