# SPDX-License-Identifier: Apache-2.0
"""Programs in C that use a Python: what they do to its thread states, and threads without a Python frame."""
import json
import unittest

import embedding
import htmlprofile
import service
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


@support.each_python
class Idle(unittest.TestCase):
    """A thread that runs no Python is one, with an empty stack, and with C frames where these are asked for."""

    def check_empty_stack(self, python):
        with embedding.Program(python, "embedding", "idle") as target:
            target.wait_still()
            for options in ((), ("--blocking",)):
                with self.subTest(options=options):
                    (thread,) = profile(target, target.pid, *options).threads
                    self.assertEqual((thread.tid, len(thread.nodes)), (target.pid, 1))
                    self.assertGreater(thread.share("idle"), 0.8)
                    self.assertEqual(thread.share("unknown"), 0)
            (thread,) = dump(target.pid)
            self.assertEqual((thread["tid"], thread["sampled"], thread["frames"]), (target.pid, True, []))
            if python.version >= (3, 8):
                (thread,) = profile(target, target.pid, "--native").threads
                self.assertIn("wait_in_c", [node.name for node in thread.nodes])

    @support.on(support.few)
    def check_run(self, python):
        with embedding.Program(python, "embedding", "idle") as target:
            command = target.command("embedding") + ["idle", str(support.LIFE_S)]
            done = support.sampled("run", "-f", "collapsed", "-o", target.path("out"), "--", *command)
            lines = [line for line in support.read_collapsed(target.path("out")) if not line.frames]
            self.assertEqual([line.tid > 0 for line in lines], [True], done.stderr)

    @support.on(support.few)
    def check_service(self, python):
        with embedding.Program(python, "embedding", "idle") as target, service.Service("*%s*" % target.inside) as running:
            running.wait_sampled(target.pid)
            done = running.ctl("dump", target.pid, "-f", "collapsed", "-o", "-")
            lines = support.parse_collapsed(done.stdout)
            self.assertEqual([(line.tid, line.frames) for line in lines], [(target.pid, [])], done.stderr)


if __name__ == "__main__":
    unittest.main()
