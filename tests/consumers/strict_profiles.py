# SPDX-License-Identifier: Apache-2.0
"""Strict readers of pprof and OTLP files, on the published descriptors: strict_profiles.py pprof DESCRIPTORS FILE, or otlp FILE. Run by the Python
that tests/consumers/setup-pprof makes. Every rule that a consumer may insist on is an assertion; prints what the file adds up to, as JSON."""
import collections
import gzip
import json
import re
import sys


def texts_are_clean(strings):
    assert strings[0] == "", "string 0 is %r" % strings[0]
    assert len(set(strings)) == len(strings), "a string stands there twice"


def ids_are_sequential(entries, what):
    assert [entry.id for entry in entries] == list(range(1, len(entries) + 1)), "ids of %s" % what


def read_pprof(descriptors, data):
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    files = descriptor_pb2.FileDescriptorSet()
    with open(descriptors, "rb") as file:
        files.ParseFromString(file.read())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName("perftools.profiles.Profile"))()
    assert data[4:8] == b"\0\0\0\0", "a time in the gzip head"
    message.ParseFromString(gzip.decompress(data))  # strings that are not UTF-8 raise
    return message


def check_pprof(profile):
    strings = profile.string_table
    texts_are_clean(strings)
    types = [(strings[t.type], strings[t.unit]) for t in profile.sample_type]
    assert types and len(set(types)) == len(types)
    for name, unit in types:
        assert name and unit and not re.search(r"[-:\s]", name + unit), (name, unit)
    ids_are_sequential(profile.mapping, "mappings")
    ids_are_sequential(profile.location, "locations")
    ids_are_sequential(profile.function, "functions")
    assert profile.mapping[0].has_functions
    for mapping in profile.mapping[1:]:  # of native code
        assert strings[mapping.filename] and re.fullmatch("([0-9a-f]{2})*", strings[mapping.build_id])
        assert mapping.memory_start == mapping.file_offset and mapping.memory_start <= mapping.memory_limit
    for function in profile.function:
        assert strings[function.name] and 0 <= function.start_line
        strings[function.filename], strings[function.system_name]
    places = set()
    for location in profile.location:
        assert 1 <= location.mapping_id <= len(profile.mapping) and len(location.line) <= 1
        mapping = profile.mapping[location.mapping_id - 1]
        if not location.line:  # for a store to find its name
            assert location.mapping_id > 1 and not mapping.has_functions
            assert mapping.memory_start <= location.address < mapping.memory_limit
            assert (location.mapping_id, "at", location.address) not in places, "a location stands there twice"
            places.add((location.mapping_id, "at", location.address))
            continue
        line = location.line[0]
        assert 1 <= line.function_id <= len(profile.function) and line.line >= 0
        assert (line.function_id, line.line) not in places, "a location stands there twice"
        places.add((line.function_id, line.line))
    used = set()
    sums = [0] * len(types)
    threads = collections.Counter()
    for sample in profile.sample:
        assert len(sample.value) == len(types) and all(value >= 0 for value in sample.value) and any(sample.value)
        assert all(1 <= at <= len(profile.location) for at in sample.location_id)
        used.update(sample.location_id)
        assert len(sample.label) <= 100
        keys = [strings[label.key] for label in sample.label]
        assert all(keys) and len(set(keys)) == len(keys)
        for label in sample.label:
            assert bool(label.str) != bool(label.num)
            strings[label.str]
        for i, value in enumerate(sample.value):
            sums[i] += value
        thread = {strings[label.key]: strings[label.str] or label.num for label in sample.label}
        threads["%s %s" % (thread.get("tid"), thread.get("thread"))] += sample.value[0]
    assert used == set(range(1, len(profile.location) + 1)), "a location that no sample has"
    assert profile.time_nanos > 0 and profile.duration_nanos > 0 and profile.period > 0
    assert strings[profile.period_type.type] and strings[profile.period_type.unit]
    assert strings[profile.default_sample_type] in [name for name, _unit in types]
    comments = [strings[at] for at in profile.comment]
    assert any(comment.startswith("in_profile: ") for comment in comments)
    return {"types": types, "sums": sums, "samples": len(profile.sample), "threads": threads, "comments": comments,
            "names": sorted({strings[function.name] for function in profile.function})}


def read_otlp(data):
    from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2

    request = profiles_service_pb2.ExportProfilesServiceRequest()
    request.ParseFromString(data)
    return request


class Dictionary:
    """The tables, and which of their elements something referred to."""

    def __init__(self, dictionary):
        self.tables = {field.name: list(getattr(dictionary, field.name)) for field in dictionary.DESCRIPTOR.fields}
        self.used = {name: {0} for name in self.tables}
        for name, table in self.tables.items():
            assert table, "%s is empty" % name
            zero = table[0]
            assert zero == "" if isinstance(zero, str) else zero.ByteSize() == 0, "element 0 of %s" % name
            keys = [entry if isinstance(entry, str) else entry.SerializeToString(deterministic=True) for entry in table]
            assert len(set(keys)) == len(keys), "an element of %s stands there twice" % name

    def get(self, name, index):
        assert 0 <= index < len(self.tables[name]), "%s[%d]" % (name, index)
        self.used[name].add(index)
        return self.tables[name][index]

    def text(self, index):
        return self.get("string_table", index)

    def attributes(self, indices):
        found = {}
        for index in indices:
            assert index > 0
            attribute = self.get("attribute_table", index)
            key = self.text(attribute.key_strindex)
            assert key and key not in found and attribute.value.WhichOneof("value")
            found[key] = getattr(attribute.value, attribute.value.WhichOneof("value"))
            self.text(attribute.unit_strindex)
        return found

    def stack(self, index):
        for at in self.get("stack_table", index).location_indices:
            assert at > 0
            if at in self.used["location_table"]:
                continue
            location = self.get("location_table", at)
            mapping = self.get("mapping_table", location.mapping_index)
            if location.mapping_index:  # of native code
                assert self.text(mapping.filename_strindex) and mapping.memory_start == mapping.file_offset
                assert all(re.fullmatch("([0-9a-f]{2})+", text) for text in self.attributes(mapping.attribute_indices).values())
            if not location.lines:  # for a store to find its name
                assert location.mapping_index and mapping.memory_start <= location.address < mapping.memory_limit
                continue
            assert len(location.lines) == 1
            function = self.get("function_table", location.lines[0].function_index)
            assert location.lines[0].function_index > 0
            assert self.text(function.name_strindex)
            self.text(function.filename_strindex), self.text(function.system_name_strindex)

    def assert_no_orphans(self):
        for name, table in self.tables.items():
            assert len(self.used[name]) == len(table), "%s: %d of %d are used" % (name, len(self.used[name]), len(table))


def keys_once(attributes):
    keys = [attribute.key for attribute in attributes]
    assert all(keys) and len(set(keys)) == len(keys)
    return {attribute.key: getattr(attribute.value, attribute.value.WhichOneof("value")) for attribute in attributes}


def check_otlp(request):
    dictionary = Dictionary(request.dictionary)
    sums = collections.Counter()
    threads = collections.Counter()
    resources = []
    facts = {}
    for resource in request.resource_profiles:
        resources.append(keys_once(resource.resource.attributes))
        assert resources[-1]["service.name"]
        for scope in resource.scope_profiles:
            assert scope.scope.name == "sampled"
            facts = keys_once(scope.scope.attributes)
            for profile in scope.profiles:
                kind = dictionary.text(profile.sample_type.type_strindex), dictionary.text(profile.sample_type.unit_strindex)
                assert all(kind)
                assert profile.time_unix_nano > 0 and profile.duration_nano > 0 and profile.period > 0
                assert dictionary.text(profile.period_type.type_strindex) and dictionary.text(profile.period_type.unit_strindex)
                assert len(profile.profile_id) in (0, 16) and not profile.original_payload and not profile.original_payload_format
                identities = set()
                for sample in profile.samples:
                    assert sample.values or sample.timestamps_unix_nano
                    assert not sample.values or not sample.timestamps_unix_nano or len(sample.values) == len(sample.timestamps_unix_nano)
                    assert sample.link_index == 0
                    dictionary.stack(sample.stack_index)
                    thread = dictionary.attributes(sample.attribute_indices)
                    identity = sample.stack_index, frozenset(sample.attribute_indices)
                    assert identity not in identities, "two samples of one stack and thread"
                    identities.add(identity)
                    assert all(value > 0 for value in sample.values)
                    sums["%s/%s" % kind] += sum(sample.values)
                    if kind[0] == "samples":
                        threads["%s %s" % (thread.get("thread.id"), thread.get("thread.name"))] += sum(sample.values)
    dictionary.assert_no_orphans()
    first = [profile.sample_type for resource in request.resource_profiles[:1] for profile in resource.scope_profiles[0].profiles[:1]]
    return {"sums": sums, "threads": threads, "resources": resources, "facts": facts, "shown": [dictionary.text(t.type_strindex) for t in first]}


def main(kind, *paths):
    with open(paths[-1], "rb") as file:
        data = file.read()
    json.dump(check_pprof(read_pprof(paths[0], data)) if kind == "pprof" else check_otlp(read_otlp(data)), sys.stdout)


main(*sys.argv[1:])
