# SPDX-License-Identifier: Apache-2.0
"""Names of native frames: of real files in all the ways in which they have symbols and debug data, by the same child that names a profile's frames
(tests/tools/name_places), and against elfutils' and binutils' own addr2line."""
import bisect
import functools
import http.client
import lzma
import os
import random
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

import support

PROGRAM = os.path.join(support.TOP, "build", "tests", "tools", "name_places")

C_SOURCE = """\
#include <math.h>
#include <stdlib.h>
static inline __attribute__((always_inline)) double inner(double x) { return sin(x) + sqrt(x); }
static inline __attribute__((always_inline)) double middle(double x)
{
	return inner(x) * 3;
}
__attribute__((noinline)) double outer(double x)
{
	volatile double kept = x; /* a compiler's mistake with DWARF 4: what is inlined at the very beginning has no ranges */
	return middle(kept) * 2;
}
static __attribute__((noinline)) double hidden(double x) { return cos(x) * outer(x); }
double entry(double x)
{
	void *volatile kept = malloc((size_t)x);
	double result = hidden(x) + outer(x + 1);
	free(kept);
	return result;
}
"""

CPP_SOURCE = """\
#include <vector>
namespace shapes {
template <typename T> struct Box {
	__attribute__((noinline)) T grow(T by) { volatile T held = by; return held + 1; }
};
static __attribute__((noinline)) int local(int x) { volatile int held = x; return held; }
}
extern "C" int start(int x)
{
	auto twice = [](int y) __attribute__((noinline)) { volatile int held = y; return held * 2; };
	shapes::Box<int> box;
	return box.grow(x) + twice(x) + shapes::local(x);
}
"""

RUST_SOURCE = """\
pub mod shapes {
    pub struct Square(pub u64);
    impl Square {
        #[inline(never)]
        pub fn area(&self) -> u64 { std::hint::black_box(self.0) * self.0 }
    }
}
#[no_mangle]
pub extern "C" fn start(x: u64) -> u64 { shapes::Square(x).area() }
"""


def run(*argv, **more):
    return subprocess.run(argv, check=True, capture_output=True, **more).stdout


def name_places(file, offsets, *options, env=None):
    """{offset: [(name, file, line), …]}; None where nothing is known."""
    done = subprocess.run([PROGRAM, *options, file], input="".join("%x\n" % o for o in offsets), text=True, capture_output=True, check=True,
                          timeout=120, env=env)
    result = {}
    for line in done.stdout.splitlines():
        offset, *frames = line.split("\t")
        result[int(offset, 16)] = None if frames == ["?"] else [tuple(frame.split("|")) for frame in frames]
    return result


def symbols(file):
    """{name: (address, size)} of functions."""
    result = {}
    for line in run("nm", "-S", file).decode().splitlines():
        part = line.split()
        if len(part) == 4 and part[2] in "tTwWi":
            result[part[3]] = int(part[0], 16), int(part[1], 16)
    return result


@functools.lru_cache
def segments(file, changed):
    found = (re.match(r"\s+LOAD\s+(\S+)\s+(\S+)\s+\S+\s+(\S+)", line) for line in run("readelf", "-lW", file).decode().splitlines())
    return [tuple(int(text, 16) for text in match.groups()) for match in found if match]


def offset_of(file, address):
    """Of the file, by its program headers."""
    for offset, start, size in segments(file, os.stat(file).st_mtime_ns):
        if start <= address < start + size:
            return address - start + offset
    raise ValueError("%x is nowhere in %s" % (address, file))


def build_id(file):
    return re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", file).decode()).group(1)


class Built(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        subprocess.run(["make", "-s", "build/tests/tools/name_places"], cwd=support.TOP, check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "MAKEFLAGS": ""})

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sampled-names-")
        os.chmod(self.folder, 0o755)  # the child is nobody's
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def build(self, *options, name="lib.so", source=C_SOURCE, suffix=".c", compiler="gcc"):
        with open(self.path("code" + suffix), "w") as file:
            file.write(source)
        run(compiler, "-shared", "-fPIC", "-O2", "-Wl,--build-id", "-fcf-protection=none", *options, "-o", self.path(name),
            self.path("code" + suffix), "-lm")
        return self.path(name)


class Lines(Built):
    def check_inlined(self, file, whole, *options, root=None):
        start, size = symbols(whole)["outer"]
        found = name_places(file, [offset_of(whole, a) for a in range(start, start + size)], *options)
        names = {tuple(frame[0] for frame in frames) for frames in found.values() if frames}
        self.assertIn(("outer", "middle", "inner"), names)
        self.assertLessEqual(names, {("outer",), ("outer", "middle"), ("outer", "middle", "inner")})
        for frames in found.values():
            if frames and len(frames) == 3:
                self.assertEqual([int(frame[2]) for frame in frames], [11, 6, 3])
                self.assertEqual({os.path.basename(frame[1]) for frame in frames}, {"code.c"})
                self.assertTrue(frames[0][1].startswith("/"), frames)

    def test_dwarf_4_and_5(self):
        for version in "45":
            with self.subTest(version):
                file = self.build("-gdwarf-" + version)
                self.check_inlined(file, file)

    def test_compressed_debug_sections(self):
        file = self.build("-g", "-gz=zlib")
        self.check_inlined(file, file)

    def test_split_by_dwz(self):
        if not shutil.which("dwz"):
            self.skipTest("dwz is not installed")
        file = self.build("-g")
        subprocess.run(["dwz", file], capture_output=True, check=False)  # a small file may have nothing to be shared
        self.check_inlined(file, file)

    def test_debug_file_by_link_beside_it(self):
        for place in "", ".debug":
            with self.subTest(place):
                whole = self.build("-g")
                os.makedirs(self.path(place), exist_ok=True)
                debug, stripped = os.path.join(self.path(place), "apart.debug"), self.path("stripped.so")
                run("objcopy", "--only-keep-debug", whole, debug)
                run("objcopy", "--strip-all", "--add-gnu-debuglink=" + debug, whole, stripped)
                self.check_inlined(stripped, whole)
                with open(debug, "ab") as file:
                    file.write(b"\0")  # the checksum is another one
                start, _ = symbols(whole)["hidden"]
                self.assertRegex(name_places(stripped, [offset_of(whole, start)])[offset_of(whole, start)][0][0], r"\Astripped\.so\+0x", "no name of its own")
                os.unlink(debug)

    def test_debug_file_by_build_id_in_the_process_root(self):
        whole, stripped = self.build("-g"), self.path("stripped.so")
        own = build_id(whole)
        root = self.path("root")
        folder = os.path.join(root, "usr/lib/debug/.build-id", own[:2])
        os.makedirs(folder)
        run("objcopy", "--only-keep-debug", whole, os.path.join(folder, own[2:] + ".debug"))
        run("objcopy", "--strip-all", whole, stripped)
        self.check_inlined(stripped, whole, "--root", root)
        # That of another file is not taken, whatever it is called.
        other = self.build("-g", "-DOTHER=1", "-O1", name="other.so")
        run("objcopy", "--only-keep-debug", other, os.path.join(folder, own[2:] + ".debug"))
        place = offset_of(whole, symbols(whole)["hidden"][0])
        self.assertRegex(name_places(stripped, [place], "--root", root)[place][0][0], r"\Astripped\.so\+0x", "no name of its own")

    def test_a_file_known_by_path_and_build_id_alone(self):
        file = self.build("-g")
        self.check_inlined(file, file, "--build-id", build_id(file))
        place = offset_of(file, symbols(file)["outer"][0])
        self.assertIsNone(name_places(file, [place], "--build-id", "00" * 20)[place])


class Symbols(Built):
    def test_stripped_files_have_no_wrong_names(self):
        whole, stripped = self.build("-g"), self.path("stripped.so")
        run("strip", "-o", stripped, whole)
        known = symbols(whole)
        for name, expected in ("outer", "outer"), ("entry", "entry"), ("hidden", None):
            start, size = known[name]
            expected = expected or "stripped.so+0x%x" % offset_of(whole, start)
            for place, frames in name_places(stripped, [offset_of(whole, a) for a in range(start, start + size)]).items():
                self.assertEqual(frames[0], (expected, "", "0"), (name, place))
        end = sum(known["entry"])
        self.assertNotIn(end, [start for start, _ in known.values()])
        self.assertIsNone(name_places(stripped, [end])[end], "what is behind a function is not in it")
        # Without tables for unwinding nothing tells where a function begins.
        bare = self.build("-fno-asynchronous-unwind-tables", "-Wl,--no-eh-frame-hdr", "-s", "-nostartfiles", name="bare.so")
        start = offset_of(bare, next(a for o, a, _ in segments(bare, os.stat(bare).st_mtime_ns) if o == 0x1000) + 0x40)
        self.assertNotIn("bare.so", str(name_places(bare, range(start, start + 64))))

    def test_of_a_stripped_interpreter_it_is_said_that_it_ran(self):
        whole, stripped = self.build("-g"), self.path("python3.x")
        run("strip", "-o", stripped, whole)
        start, size = symbols(whole)["hidden"]
        places = [offset_of(whole, a) for a in range(start, start + size, 3)]
        for options, expected in ([], "python3.x+0x%x" % places[0]), (["--fold"], "[python3.x]"):
            for place, frames in name_places(stripped, places, "--interpreter", *options).items():
                self.assertEqual([frame[0] for frame in frames], [expected], (options, place))

    def test_packed_symbols(self):
        whole, mini, stripped = self.build("-g"), self.path("mini"), self.path("stripped.so")
        run("objcopy", "-S", "--remove-section", ".gdb_index", "--remove-section", ".comment", "--keep-symbol=hidden", whole, mini)
        with open(mini, "rb") as file, lzma.open(mini + ".xz", "wb") as packed:
            packed.write(file.read())
        run("strip", "-o", stripped, whole)
        run("objcopy", "--add-section", ".gnu_debugdata=" + mini + ".xz", stripped)
        place = offset_of(whole, symbols(whole)["hidden"][0])
        self.assertEqual(name_places(stripped, [place])[place], [("hidden", "", "0")])

    def test_stubs(self):
        for options in ["-fcf-protection=none"], ["-fcf-protection=full", "-Wl,-z,ibtplt"], ["-Wl,-z,now"], ["-Wl,-z,lazy"]:
            with self.subTest(options):
                file = self.build(*options)
                expected = {}
                for line in run("objdump", "-d", "-j", ".plt", "-j", ".plt.sec", "-j", ".plt.got", file).decode().splitlines():
                    match = re.match(r"([0-9a-f]+) <(\w+@plt)>:", line)
                    if match:
                        expected[offset_of(file, int(match.group(1), 16))] = match.group(2)
                self.assertIn("malloc@plt", expected.values())
                found = name_places(file, expected)
                self.assertEqual({place: frames[0][0] for place, frames in found.items()}, expected)

    def test_cpp(self):
        for options in [], ["-g"]:
            with self.subTest(options):
                file = self.build(*options, source=CPP_SOURCE, suffix=".cpp", compiler="g++")
                known = symbols(file)
                names = {name: frames[0][0] for name in known
                         for frames in name_places(file, [offset_of(file, known[name][0])]).values() if frames}
                self.assertIn("shapes::Box<int>::grow", names.values())
                self.assertIn("shapes::local", names.values())
                self.assertIn("start::{lambda(int)#1}::operator()", names.values())

    @unittest.skipUnless(shutil.which("rustc"), "Rust is not installed")
    def test_rust(self):
        for mangling in "legacy", "v0":
            with self.subTest(mangling):
                with open(self.path("code.rs"), "w") as file:
                    file.write(RUST_SOURCE)
                env = dict(os.environ, RUSTC_BOOTSTRAP="1")
                library = self.path("rust.so")
                run("rustc", "--crate-type", "cdylib", "-g", "-O", "-C", "symbol-mangling-version=" + mangling, "-Z", "unstable-options",
                    "--crate-name", "figures", "-o", library, self.path("code.rs"), env=env)
                known = symbols(library)
                area = next(name for name in known if "area" in name)
                place = offset_of(library, known[area][0])
                frames = name_places(library, [place])[place]
                self.assertRegex(frames[0][0], r"^figures(\[[0-9a-f]+\])?::shapes::Square(>)?::area$|^<figures(\[[0-9a-f]+\])?::shapes::Square>::area$")
                self.assertEqual(os.path.basename(frames[0][1]), "code.rs")

    def test_the_vdso(self):
        found = name_places("[vdso]", range(0x800, 0x1400, 16))
        names = {frames[0][0] for frames in found.values() if frames}
        self.assertTrue(names & {"__vdso_clock_gettime", "__kernel_clock_gettime"}, names)

    def test_a_perf_map(self):
        with open(self.path("perf.map"), "w") as file:
            file.write("7f0000001000 40 jitted loop\n7f0000001040 40 py::work:/app/x.py\nrubbish\n7f0000001080 zz bad\n"
                       "7f0000001000 20 newer\n")
        options = ["--perf-map", self.path("perf.map"), "7f0000001000"]
        found = name_places("memory", [0, 0x20, 0x40, 0x80], *options)
        self.assertEqual(found, {0: [("newer", "", "0")], 0x20: [("jitted loop", "", "0")],
                                 0x40: [("py::work:/app/x.py", "", "0")], 0x80: None})
        self.assertEqual(name_places("memory", [0x40], "--fold", *options), {0x40: []})


def blocks(text):
    """What addr2line says by address: [(function, file, line), …], innermost first."""
    result, at = {}, None
    for line in text.splitlines():
        if re.fullmatch("0x[0-9a-f]+", line):
            at = result.setdefault(int(line, 16), [])
        else:
            at.append(line)
    return {address: list(zip(lines[::2], lines[1::2])) for address, lines in result.items()}


def plain(name):
    """A function's name without parameters and the marks of clones."""
    name = re.sub(r" inlined at .*| \[clone [^]]*\]", "", name)
    return re.sub(r"(\.(cold|part|isra|constprop|lto_priv|localalias|\d+))+$", "", name)


def place(text):
    match = re.match(r"(.*?):(\d+)", text)
    return (os.path.basename(match.group(1)), int(match.group(2))) if match and match.group(1) != "??" else ("", 0)


class Addr2line(Built):
    """Random addresses of real libraries. Where the two others differ, either will do: each has its own mistakes."""

    def compare(self, library, count, exact):
        known = sorted((start, start + size) for start, size in symbols_of(library).values() if size)
        starts = [start for start, _ in known]
        chosen = random.Random(library)
        addresses = set()
        while len(addresses) < count:
            start, end = chosen.choice(known)
            addresses.add(chosen.randrange(start, end))
        asked = "".join("0x%x\n" % a for a in sorted(addresses)).encode()
        others = [blocks(subprocess.run([program, "-i", "-f", "-a", "-e", library], input=asked, capture_output=True, check=False).stdout.decode())
                  for program in ("eu-addr2line", "addr2line")]  # which exit with 1 where one address has no line
        found = name_places(library, [offset_of(library, a) for a in addresses])
        wrong = []
        for address in addresses:
            frames = found[offset_of(library, address)]
            self.assertIsNotNone(frames, "%x in %s" % (address, known[bisect.bisect(starts, address) - 1]))
            ours = [(name, (os.path.basename(file), int(line))) for name, file, line in reversed(frames)]
            theirs = [[(plain(name), place(where)) for name, where in other.get(address, [])] for other in others]
            if not any(exact(ours, one) for one in theirs):
                wrong.append((hex(address), ours, theirs))
        self.assertLessEqual(len(wrong), count // 200, wrong[:5])

    def test_an_interpreter_with_debug_data(self):
        library = os.path.expanduser("~/.pyenv/versions/3.13.0/lib/libpython3.13.so.1.0")
        if not os.path.exists(library):
            self.skipTest("there is no such interpreter with debug data")
        self.compare(library, 600, lambda ours, theirs: ours == theirs)

    def test_libraries_without_debug_data(self):
        for name in "libcrypto.so.3", "libz.so.1":
            library = next((path for path in ("/usr/lib/x86_64-linux-gnu/" + name, "/usr/lib/aarch64-linux-gnu/" + name, "/usr/lib64/" + name)
                            if os.path.exists(path)), None)
            if library:
                with self.subTest(name):
                    # Functions at one place have several names.
                    self.compare(os.path.realpath(library), 300, lambda ours, theirs: bool(theirs) and aliases(library, ours[0][0], theirs[0][0]))


@functools.lru_cache
def symbols_of(library):
    found = symbols(library)
    if found:
        return found
    for line in run("nm", "-D", "-S", library).decode().splitlines():
        part = line.split()
        if len(part) == 4 and part[2] in "tTwWi":
            found[part[3].split("@")[0]] = int(part[0], 16), int(part[1], 16)
    return found


def aliases(library, one, other):
    known = symbols_of(library)
    return one == other or (one in known and other in known and known[one][0] == known[other][0])


class Debuginfod(Built):
    def free_port(self):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            return one.getsockname()[1]

    def start_server(self, folder):
        port = self.free_port()
        server = subprocess.Popen(["debuginfod", "-p", str(port), "-d", ":memory:", "-F", folder, "-t", "0", "-g", "0"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        return server, port

    def wait_for(self, port, path):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                connection.request("GET", path)
                status = connection.getresponse().status
                connection.close()
                if status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        self.fail("debuginfod does not serve " + path)

    @unittest.skipUnless(shutil.which("debuginfod"), "debuginfod is not installed")
    def test_debug_data_is_fetched_once(self):
        served = self.path("served")
        os.makedirs(served)
        whole, stripped = self.build("-g"), self.path("stripped.so")
        run("objcopy", "--only-keep-debug", whole, os.path.join(served, "lib.debug"))
        run("strip", "-o", stripped, whole)
        own = build_id(whole)
        server, port = self.start_server(served)
        self.wait_for(port, "/buildid/%s/debuginfo" % own)
        cache = self.path("cache")
        env = dict(os.environ, DEBUGINFOD_URLS="http://127.0.0.1:%d" % port, XDG_CACHE_HOME=cache)
        wanted = offset_of(whole, symbols(whole)["hidden"][0])
        self.assertRegex(name_places(stripped, [wanted], env=env)[wanted][0][0], r"\Astripped\.so\+0x", "not asked for")
        self.assertEqual(name_places(stripped, [wanted], "--debuginfod", env=env)[wanted][0][0], "hidden")
        kept = os.path.join(cache, "sampled", "debuginfod")
        self.assertEqual(os.listdir(kept), [own + ".debuginfo"])
        # What no server has is not asked for again.
        other = self.build("-g0", "-DOTHER", "-O1", "-s", name="other.so")
        self.assertRegex(name_places(other, [wanted], "--debuginfod", env=env)[wanted][0][0], r"\Aother\.so\+0x")
        self.assertIn(build_id(other) + ".debuginfo.missing", os.listdir(kept))
        server.kill()
        server.wait()
        self.assertEqual(name_places(stripped, [wanted], "--debuginfod", env=env)[wanted][0][0], "hidden", "from the cache")

    def test_a_server_that_says_nothing_holds_nobody_up(self):
        with socket.socket() as deaf:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(8)
            env = dict(os.environ, DEBUGINFOD_URLS="http://127.0.0.1:%d" % deaf.getsockname()[1], XDG_CACHE_HOME=self.path("cache"))
            stripped = self.build("-s")
            start = time.monotonic()
            name_places(stripped, [0x1000], "--debuginfod", "--timeout-ms", "1500", env=env)
            self.assertLess(time.monotonic() - start, 10)
            kept = os.path.join(self.path("cache"), "sampled", "debuginfod")
            self.assertFalse([name for name in os.listdir(kept) if name.endswith(".missing")], "that it is nowhere was not said")


class Hostile(Built):
    def test_a_file_of_rubbish_costs_its_own_names_only(self):
        whole = self.build("-g")
        with open(whole, "rb") as file:
            good = file.read()
        chosen = random.Random(7)
        start, size = symbols(whole)["outer"]
        places = [offset_of(whole, start + i) for i in range(0, size, 8)]
        for round_ in range(60):
            broken = bytearray(good)
            for _ in range(chosen.choice((1, 8, 64, 512))):
                broken[chosen.randrange(len(broken))] = chosen.randrange(256)
            if round_ % 5 == 0:
                del broken[chosen.randrange(len(broken)):]
            with open(self.path("broken.so"), "wb") as file:
                file.write(broken)
            name_places(self.path("broken.so"), places)

    def test_what_is_no_file_is_no_matter(self):
        os.mkfifo(self.path("pipe"))
        self.assertEqual(name_places("/proc/self/mem", [0]), {0: None})
        self.assertEqual(name_places(self.path("pipe"), [0], "--build-id", "00" * 20), {0: None})
        self.assertEqual(name_places("/nonexistent", [0]), {0: None})


if __name__ == "__main__":
    unittest.main()
