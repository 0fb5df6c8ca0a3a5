# SPDX-License-Identifier: Apache-2.0
"""Pprof files of any writer, on the published descriptor, whatever a strict reader says of them: pprof_edit.py sum DESCRIPTORS FILE prints what the
samples' values add up to, as JSON; pprof_edit.py at DESCRIPTORS FILE NANOSECONDS writes the file, of that time, to standard output. Run by the Python
that tests/consumers/setup-pprof makes."""
import gzip
import json
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

what, descriptors, path = sys.argv[1:4]
files = descriptor_pb2.FileDescriptorSet()
with open(descriptors, "rb") as file:
    files.ParseFromString(file.read())
pool = descriptor_pool.DescriptorPool()
for file in files.file:
    pool.Add(file)
profile = message_factory.GetMessageClass(pool.FindMessageTypeByName("perftools.profiles.Profile"))()
with open(path, "rb") as file:
    profile.ParseFromString(gzip.decompress(file.read()))
if what == "sum":
    print(json.dumps([sum(values) for values in zip(*(sample.value for sample in profile.sample))]))
else:
    profile.time_nanos = int(sys.argv[4])
    sys.stdout.buffer.write(gzip.compress(profile.SerializeToString()))
