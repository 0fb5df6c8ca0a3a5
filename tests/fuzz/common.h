/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzzers share. A fuzzer of a format's reader says how its bytes are made and what must hold besides; that the bytes are refused for a
 * reason or become a profile that hangs together is seen to here. */
#ifndef SAMPLED_TESTS_FUZZ_COMMON_H
#define SAMPLED_TESTS_FUZZ_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include "exporters/format.h"

/* What libFuzzer calls, and each fuzzer defines. 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Ends the fuzzer, with the input as a finding, where what must hold does not. */
void expect(bool holds);

/* The profile in these bytes, read as `format` (which need not be what they look like): checked, and freed with profile_free(); NULL: the builder
 * had none. options NULL: the stacks alone. *ret_err (NULL: not asked): 0 or what the reader returned; there may be a profile then, too, of what
 * came before. */
struct profile *fuzz_read(const char *format, const void *data, size_t bytes, const struct builder_options *options,
                          int *ret_err);
/* The same for formats of function totals: *ret_graph is to be released, whatever is returned. 0 or what the reader returned. */
int fuzz_read_callgraph(struct callgraph *ret_graph, const char *format, const void *data, size_t bytes);

/* The most memory that fuzz_read() gives to trees and symbols, unless options say another. */
#define FUZZ_MEMORY_MAX_BYTES (UINT64_C(64) << 20)

/* Trees and runs that a profile must not have, whatever it was read from, end the fuzzer: fuzz_read() sees to it. */
void fuzz_check(const struct profile *profile);
/* Each sample is in a run: fuzz_read() sees to it where the reader says that all is well and the runs were asked for. A reader that says that
 * samples have no time may leave a profile in which it does not hold. */
void fuzz_check_runs(const struct profile *profile);

/* Written to where nobody looks: what is read on the way counts. It must go well. */
void fuzz_write(const struct profile *profile, const char *format);

/* A writer into memory; what was written, with a NUL behind it, is closed and handed out, and freed by the caller. */
void fuzz_memory(struct writer *to);
char *fuzz_written(struct writer *to, size_t *ret_bytes);

#endif
