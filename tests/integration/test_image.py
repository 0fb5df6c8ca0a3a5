# SPDX-License-Identifier: Apache-2.0
"""The OCI image (make image) and Kubernetes' manifests: what is in them, and the service under the manifest's own limits."""
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import support

IMAGE = os.path.join(support.TOP, "build", "image")
MANIFESTS = sorted(glob.glob(os.path.join(support.TOP, "packaging", "kubernetes", "*.yaml")))
VALIDATE = os.path.join(support.CACHE, "consumers", "kubernetes", "bin", "kubernetes-validate")
IN_A_POD = dict(os.environ, KUBERNETES_SERVICE_HOST="10.0.0.1")


class Manifests(unittest.TestCase):
    @unittest.skipUnless(os.access(VALIDATE, os.X_OK), "kubernetes-validate is not installed (tests/consumers/setup-kubernetes)")
    def test_fit_the_schema(self):
        self.assertGreater(len(MANIFESTS), 1)
        done = subprocess.run([VALIDATE, "--strict", *MANIFESTS], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout.decode())

    def test_are_those_of_the_documents(self):
        with open(os.path.join(support.TOP, "docs", "KUBERNETES.md"), encoding="utf-8") as file:
            text = file.read()
        for path in MANIFESTS:
            self.assertIn("packaging/kubernetes/" + os.path.basename(path), text)


@unittest.skipUnless(shutil.which("umoci"), "umoci is not installed")
class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        made = subprocess.run(["make", "--no-print-directory", "-j%d" % os.cpu_count(), "image"], cwd=support.TOP, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={key: value for key, value in os.environ.items() if key != "BUILD"})
        if made.returncode != 0:
            raise AssertionError("make image: " + made.stdout.decode()[-3000:])
        folder = tempfile.mkdtemp(prefix="sampled-image-")
        cls.addClassCleanup(shutil.rmtree, folder)
        index = cls.json(os.path.join(IMAGE, "index.json"))["manifests"][0]
        cls.config = cls.json(cls.blob(cls.json(cls.blob(index))["config"]))
        tag = index["annotations"]["org.opencontainers.image.ref.name"]
        subprocess.run(["umoci", "unpack", "--rootless", "--image", IMAGE + ":" + tag, os.path.join(folder, "bundle")], check=True)
        cls.root = os.path.join(folder, "bundle", "rootfs")

    @staticmethod
    def json(path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    @staticmethod
    def blob(descriptor):
        return os.path.join(IMAGE, "blobs", *descriptor["digest"].split(":"))

    def test_holds_the_program_alone(self):
        self.assertEqual(os.listdir(self.root), ["sampled"])
        self.assertEqual(self.config["config"]["Entrypoint"], ["/sampled"])
        self.assertEqual(self.config["os"], "linux")
        said = subprocess.run([os.path.join(self.root, "sampled"), "--version"], stdout=subprocess.PIPE, check=True).stdout
        self.assertEqual(said, support.sampled("--version").stdout)

    @support.need_root
    @support.needs_python
    def test_the_service_of_the_manifest(self):
        """Root of the container, with the two capabilities alone, nothing but its volumes to write to: it samples, and gives a profile away."""
        with open(os.path.join(support.TOP, "packaging", "kubernetes", "daemonset.yaml"), encoding="utf-8") as file:
            text = file.read()
        wanted = re.search(r"add: \[(.*)\]", text).group(1).lower().split(", ")
        self.assertEqual(wanted, ["sys_ptrace", "dac_read_search"])
        os.makedirs(os.path.join(self.root, "proc"))
        for folder in ("run/sampled", "var/lib/sampled", "etc/sampled"):
            os.makedirs(os.path.join(self.root, folder))
        config = re.search(r"sampled\.conf: \|\n((?:    .*\n)+)", text).group(1)
        with open(os.path.join(self.root, "etc/sampled/sampled.conf"), "w", encoding="utf-8") as file:
            file.write(re.sub(r"(?m)^    ", "", config))
        capabilities = "-all," + ",".join("+" + name for name in wanted + ["sys_chroot"])  # the last for chroot itself
        script = """
            cd "$0" && mount -t proc proc proc || exit 1
            setpriv --bounding-set %s --inh-caps %s chroot . /sampled daemon --config /etc/sampled/sampled.conf &
            daemon=$!
            for try in $(seq 600); do
                chroot . /sampled ctl dump "$1" -f collapsed -o - >dump 2>said && grep -q busy.py dump && break
                sleep 0.1
            done
            cat dump said; chroot . /sampled ctl status; kill $daemon; wait $daemon; echo "ended $?"
        """ % (capabilities, capabilities)
        with support.Target(support.newest(), "busy.py") as target:
            done = subprocess.run(["unshare", "--mount", "sh", "-c", script, self.root, str(target.pid)], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=support.SAMPLED_TIMEOUT_S)
        said = done.stdout.decode()
        self.assertIn("busy.py", said)
        self.assertRegex(said, r"targets +\d+ sampled")
        self.assertIn("ended 0", said)


@support.need_root
class Doctor(unittest.TestCase):
    """In a pid namespace of its own, as a pod's container is."""

    def doctor(self, *setpriv):
        command = ["unshare", "--pid", "--fork", "--mount-proc", "setpriv", *setpriv, "sh", "-c", '"$0" doctor; exit 0', support.SAMPLED]
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=IN_A_POD, cwd="/", check=True).stdout.decode()

    def test_says_what_to_write(self):
        text = self.doctor("--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace")
        self.assertIn("ok    in a Kubernetes pod", text)
        self.assertRegex(text, r"warn  .*\(securityContext: \{capabilities: \{add: \[SYS_PTRACE\]\}\}; kubectl debug --profile=general\)")
        self.assertRegex(text, r"warn  .*\(kubectl debug --target=CONTAINER; shareProcessNamespace: true in the pod; hostPID: true for all of the node\)")
        self.assertNotIn("emptyDir", text)

    def test_where_no_file_can_be_written(self):
        self.assertRegex(self.doctor("--reuid", "65534", "--clear-groups"), r"warn  no file can be written here.*emptyDir")

    def test_is_silent_elsewhere(self):
        self.assertNotIn("kubectl", support.sampled("doctor").stdout.decode())


if __name__ == "__main__":
    unittest.main()
