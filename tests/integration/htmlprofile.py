# SPDX-License-Identifier: Apache-2.0
"""Reads the profile out of a flame graph page: the data format that exporters/flamegraph.c describes."""
import base64
import json
import re


class Node:
    __slots__ = ("parent", "name", "file", "line", "self")

    def __init__(self, parent, name, file, line, values):
        self.parent, self.name, self.file, self.line, self.self = parent, name, file, line, values


class Thread:
    """nodes[0] is the root; a node's self is {value name: number}."""

    def __init__(self, pid, interpreter, tid, name, is_main, nodes):
        self.pid, self.interpreter, self.tid, self.name, self.is_main, self.nodes = pid, interpreter, tid, name, is_main, nodes

    def total(self, value):
        return sum(node.self.get(value, 0) for node in self.nodes)

    def share(self, value):
        """Share of the thread's sampled time."""
        return self.total(value) / max(1, self.total("wall"))

    def paths(self):
        """{((name, file, line), …) root first: total samples at or below}."""
        totals = [node.self.get("samples", 0) for node in self.nodes]
        for index in range(len(self.nodes) - 1, 0, -1):
            totals[self.nodes[index].parent] += totals[index]
        paths = [()]
        for node in self.nodes[1:]:
            paths.append(paths[node.parent] + ((node.name, node.file, node.line),))
        return dict(zip(paths, totals))


class Profile:
    def __init__(self, page):
        match = re.search(rb'<script id="data" type="application/json">(.*?)</script>', page, re.S)
        if not match or not page.rstrip().endswith(b"</html>"):
            raise ValueError("not a whole flame graph page")
        data = json.loads(match.group(1))
        self.data = data
        self.sequence = data["sequence"]
        self.facts = {key: number for key, _label, number, _text, _weight in data["facts"]}
        self.threads = [self._thread(entry) for entry in data["threads"]]

    def _thread(self, entry):
        process, interpreter, tid, name, is_main, count, tree = entry
        numbers = varints(base64.b64decode(tree))
        values = self.data["values"]
        nodes = []
        last = 0
        for _ in range(count):
            word, up = next(numbers), next(numbers)
            own = {}
            if word & 1:
                own["samples"], wall, codes = next(numbers), next(numbers), next(numbers)
                own["wall"] = wall
                for index, value in enumerate(values[2:]):
                    code = codes >> 2 * index & 3
                    own[value] = 0 if code == 0 else wall if code == 1 else next(numbers)
            parent = last
            for _ in range(up):
                parent = nodes[parent].parent
            frame = word >> 1
            name_, file, line = self._frame(frame) if nodes else ("", "", 0)
            nodes.append(Node(parent if nodes else -1, name_, file, line, own))
            last = len(nodes) - 1
        if next(numbers, None) is not None:
            raise ValueError("bytes behind the tree of thread %d" % tid)
        return Thread(self.data["processes"][process][0], interpreter, tid, name, bool(is_main), nodes)

    def _frame(self, number):
        symbol, line = self.data["frames"][2 * number : 2 * number + 2]
        name, file = self.data["symbols"][6 * symbol : 6 * symbol + 2]
        return self.data["strings"][name], self.data["strings"][file], line

    def thread(self, tid):
        return next(thread for thread in self.threads if thread.tid == tid)


def varints(data):
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            yield number
            number = shift = 0
