# SPDX-License-Identifier: Apache-2.0
"""Programs in C that use a Python: what they do to its thread states, and threads without a Python frame."""
import json
import unittest

import embedding
import htmlprofile
import support


def dump(pid):
    done = support.sampled("dump", pid, "--json")
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode())
    return json.loads(done.stdout)["threads"]


def profile(target, pid, *options):
    page = target.path("out.html")
    done = support.sampled("attach", pid, "-d", "1", "-f", "flamegraph", "-o", page, *options)
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode())
    with open(page, "rb") as file:
        return htmlprofile.Profile(file.read())


@support.each_python
class Forked(unittest.TestCase):
    """fork() in C copies the states of threads that it leaves behind, and all numbers of threads with them."""

    def check_one_thread(self, python):
        with embedding.Program(python, "embedding", "fork") as target:
            child = target.facts["child"]
            for options in ((), ("--blocking",)):
                with self.subTest(options=options):
                    threads = profile(target, child, *options).threads
                    self.assertEqual([thread.tid for thread in threads], [child])
                    self.assertIn("work", [node.name for node in threads[0].nodes])
                    self.assertEqual(threads[0].share("unknown"), 0)
            self.assertEqual([thread["tid"] for thread in dump(child)], [child])


if __name__ == "__main__":
    unittest.main()
