# SPDX-License-Identifier: Apache-2.0
# sampled: one plain, non-recursive Makefile. `make help` lists what it can do.
V ?= 0
SANITIZE ?=
STATIC ?=
CC ?= gcc
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
DESTDIR ?=
SYSCONFDIR ?= /etc
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
UNITDIR ?= $(PREFIX)/lib/systemd/system
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d
PYTHON ?= python3

comma := ,

ifneq ($(STATIC),)
BUILD ?= build/static
STATIC_FLAGS := -DSAMPLED_STATIC
else ifeq ($(SANITIZE),)
BUILD ?= build
else
BUILD ?= build/san-$(subst $(comma),-,$(SANITIZE))
SAN_FLAGS := -fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all
endif

# What the code needs; a `make CFLAGS=…` cannot drop it.
REQUIRED_FLAGS := -std=gnu17 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -I. -pthread -MMD -MP $(STATIC_FLAGS)
WARN_FLAGS := -Wall -Wextra -Wmissing-prototypes -Wshadow -Wconversion -Wstrict-prototypes -Wvla \
	-Werror=implicit-function-declaration
LIBS := -Wl,--as-needed -lelf -lz -liberty -lyajl -lsqlite3 -ledit -pthread -lm
# zstd, where it is there: smaller recordings.
ifeq ($(shell pkg-config --exists libzstd 2>/dev/null && echo yes),yes)
REQUIRED_FLAGS += -DHAVE_ZSTD
LIBS += -lzstd
endif

# The portable program: what the other loads is linked in, but what pushes.
ifneq ($(STATIC),)
LIBS := -static-pie -s -ldw -lelf -lseccomp -lz -llzma -lbz2 -lzstd -liberty -lyajl_s -lsqlite3 -ledit -ltinfo -lbsd -lmd -pthread -lm
endif

# The layers, from the lowest up; tests/checks/layers.sh holds their includes to that order.
LIB_SRC := $(wildcard base/*.c sampler/*.c sampler/pyabi/*.c sampler/values/*.c aggregator/*.c exporters/*.c)
DAEMON_SRC := $(wildcard daemon/*.c)
UNIT_SRC := $(wildcard tests/unit/*.c)
STRESS_SRC := $(wildcard tests/stress/*.c)
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
PAGES := flamegraph heatmap
HEADERS := $(wildcard base/*.h sampler/*.h sampler/pyabi/*.h sampler/values/*.h aggregator/*.h exporters/*.h daemon/*.h)

PAGE_OBJ := $(PAGES:%=$(BUILD)/obj/exporters/%_page.o)
SYSCALLS_OBJ := $(BUILD)/obj/sampler/syscall_names.o
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o) $(PAGE_OBJ) $(SYSCALLS_OBJ)
DAEMON_OBJ := $(DAEMON_SRC:%.c=$(BUILD)/obj/%.o)
UNIT_OBJ := $(UNIT_SRC:%.c=$(BUILD)/obj/%.o)
STRESS_OBJ := $(STRESS_SRC:%.c=$(BUILD)/obj/%.o)
STRESS_BIN := $(STRESS_SRC:%.c=$(BUILD)/%)
FUZZ_BIN := $(FUZZ_SRC:%.c=$(BUILD)/%)

Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-5s %s\n' $(1) $(2);)

.PHONY: all static objects unit stress browser native oracle soak fuzz check check-full check-long setup-tests check-headers coverage mutate bench bench-bounds bench-formats bench-native bench-history bench-service demo clean install uninstall deb wheel image pictures format-check \
	help FORCE
.DELETE_ON_ERROR:
all: $(BUILD)/sampled ## build the program: build/sampled

$(BUILD)/sampled: $(DAEMON_OBJ) $(LIB_OBJ) $(BUILD)/flags
	$(call say,LD,$@)$(CC) $(CFLAGS) $(SAN_FLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS)

# One file for any Linux of its machine, whatever C library is there; for another machine: make static CC=aarch64-linux-gnu-gcc BUILD=build/static-arm64
static: ## build the portable program: build/static/sampled
	$(Q)$(MAKE) --no-print-directory STATIC=1 all

# Compiled only, nothing linked: for a cross compiler that lacks the target's libraries.
objects: $(DAEMON_OBJ) $(LIB_OBJ)

# The flags of the last build: when they change, everything that was built with them is built again, where the system has what that takes.
FLAGS_NOW := $(CC) $(REQUIRED_FLAGS) $(WARN_FLAGS) $(CPPFLAGS) $(CFLAGS) $(SAN_FLAGS) $(LDFLAGS) $(LIBS)
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(FLAGS_NOW))' | cmp -s - $@ || \
		{ $(CC) -fsyntax-only -x c base/required.h && printf '%s\n' '$(subst ','\'',$(FLAGS_NOW))' >$@; }

$(BUILD)/obj/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(REQUIRED_FLAGS) $(WARN_FLAGS) $(CPPFLAGS) $(CFLAGS) $(SAN_FLAGS) -c -o $@ $<

# Pages are joined from their parts and embedded.
$(BUILD)/gen/flamegraph.page: $(wildcard exporters/flamegraph/*)
$(BUILD)/gen/heatmap.page: $(wildcard exporters/heatmap/*)
$(PAGES:%=$(BUILD)/gen/%.page): $(BUILD)/gen/%.page: exporters/flamegraph/bundle.sh exporters/flamegraph/head.html
	@mkdir -p $(@D)
	$(call say,PAGE,$@)sh exporters/flamegraph/bundle.sh $* >$@

$(PAGE_OBJ): $(BUILD)/obj/exporters/%_page.o: exporters/%_page.S $(BUILD)/gen/%.page $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,AS,$<)$(CC) $(CFLAGS) -Wa,-I$(BUILD)/gen -c -o $@ $<

# The names of system calls are those of the machine that is compiled for, as its compiler's headers have them.
$(BUILD)/gen/syscall_names.c: sampler/syscall_names.awk $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,GEN,$@)printf '%s\n' '#include <sys/syscall.h>' | $(CC) $(CPPFLAGS) -E -dM -x c - | LC_ALL=C sort | awk -f sampler/syscall_names.awk >$@

$(SYSCALLS_OBJ): $(BUILD)/gen/syscall_names.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(REQUIRED_FLAGS) $(WARN_FLAGS) $(CPPFLAGS) $(CFLAGS) $(SAN_FLAGS) -c -o $@ $<

# Criterion's assertion macros convert between signed and unsigned by themselves, so -Wconversion stops at our own code.
$(UNIT_OBJ): WARN_FLAGS += -Wno-conversion
$(BUILD)/tests/unit: $(UNIT_OBJ) $(filter-out %/daemon/main.o,$(DAEMON_OBJ)) $(LIB_OBJ) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CFLAGS) $(SAN_FLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) -lcriterion $(LIBS)
unit: $(BUILD)/tests/unit ## build the unit tests (and run them: make check)

$(STRESS_BIN): $(BUILD)/%: $(BUILD)/obj/%.o $(LIB_OBJ) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CFLAGS) $(SAN_FLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS)
stress: $(STRESS_BIN) ## build the stress tests (SANITIZE=thread is what they are for)

# Writes the pages that the browser test opens; built like a unit test's helper.
$(BUILD)/obj/tests/browser/%.o: WARN_FLAGS += -Wno-conversion
$(BUILD)/tests/browser/make_profile: $(BUILD)/obj/tests/browser/make_profile.o $(BUILD)/obj/tests/unit/build_profile.o $(LIB_OBJ)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CFLAGS) $(SAN_FLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)
browser: $(BUILD)/tests/browser/make_profile ## build the browser test's page writer

# Makes a recording of any length, for measuring.
$(BUILD)/tests/tools/make_recording: $(BUILD)/obj/tests/tools/make_recording.o $(LIB_OBJ) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CFLAGS) $(SAN_FLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS)

# Names places of files, for tests and measuring.
$(BUILD)/tests/tools/name_places: $(BUILD)/obj/tests/tools/name_places.o $(LIB_OBJ) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CFLAGS) $(SAN_FLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS)

# Simulates processes for the history, for measuring.
$(BUILD)/tests/tools/measure_history: $(BUILD)/obj/tests/tools/measure_history.o $(LIB_OBJ) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CFLAGS) $(SAN_FLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS)

# Modules for Python whose native stacks are known, in variants; one file for all versions from 3.6 on. PYTHON's headers are the ones used.
NATIVE := $(BUILD)/tests/native
NATIVE_FLAGS = -shared -fPIC -fvisibility=hidden -O2 -Wall -Wextra -I$(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
CHAIN_fp := -fno-omit-frame-pointer
CHAIN_nofp := -fomit-frame-pointer
CHAIN_stripped := -fomit-frame-pointer
CHAIN_lto := -fomit-frame-pointer -flto
CHAIN_lines := -g -DINLINED
CHAIN_notables := -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables
CHAINS := $(patsubst CHAIN_%,$(NATIVE)/chain_%.abi3.so,$(filter CHAIN_%,$(.VARIABLES)))
$(CHAINS): $(NATIVE)/chain_%.abi3.so: tests/native/chain.c tests/native/chain_work.c tests/native/chain.h Makefile
	@mkdir -p $(@D)
	$(call say,CC,$@)gcc $(NATIVE_FLAGS) $(CHAIN_$*) -DCHAIN=chain_$* -o $@ $(filter %.c,$^) -lm
	$(Q)cp $@ $(@:.abi3.so=.whole)
	$(Q)$(if $(filter stripped,$*),strip $@)
$(NATIVE)/chain_cxx.abi3.so: tests/native/chain_cxx.cc Makefile
	@mkdir -p $(@D)
	$(call say,CXX,$@)g++ $(NATIVE_FLAGS) -o $@ $<
$(NATIVE)/chain_pyx.abi3.so: tests/native/chain_pyx.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$@)gcc $(NATIVE_FLAGS) -g -o $@ $<
$(NATIVE)/waits.abi3.so: tests/native/waits.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$@)gcc $(NATIVE_FLAGS) -o $@ $<
native: $(CHAINS) $(NATIVE)/chain_cxx.abi3.so $(NATIVE)/chain_pyx.abi3.so $(NATIVE)/waits.abi3.so ## build the modules that native stacks are tested with

# The oracles (the long form: ORACLE_ARGS="--samples 10000000 --bias --together"), and their reading of the stopped process.
$(BUILD)/tests/oracle/truth: $(BUILD)/obj/tests/oracle/truth.o $(LIB_OBJ)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CFLAGS) $(SAN_FLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)
ORACLE_ARGS ?= --seconds 2 --together
oracle: all $(BUILD)/tests/oracle/truth ## programs whose true stacks are known: no sample may show another
	$(Q)SAMPLED=$(BUILD)/sampled SAMPLED_TRUTH=$(BUILD)/tests/oracle/truth $(PYTHON) tests/oracle/run $(ORACLE_ARGS)

# The service for a while (hours by hand: SOAK_SECONDS=14400 SOAK_KILLS=200), among processes that come and go; needs root.
SOAK_SECONDS ?= 120
SOAK_KILLS ?= 20
soak: all ## the service among processes that come and go: memory, descriptors, accounting, kill -9, a full disk
	$(Q)SAMPLED=$(abspath $(BUILD)/sampled) $(PYTHON) -B tests/soak/run $(SOAK_SECONDS) $(SOAK_KILLS)

# Fuzzers want every file instrumented, so they compile all but main() themselves: make fuzz CC=clang
FUZZ_OBJ_DIR := $(BUILD)/fuzz-obj
FUZZ_FLAGS := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -g -O1
FUZZ_LIB_OBJ := $(patsubst %.c,$(FUZZ_OBJ_DIR)/%.o,$(LIB_SRC) $(filter-out daemon/main.c,$(DAEMON_SRC)))
$(FUZZ_OBJ_DIR)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,FUZZ,$<)$(CC) $(REQUIRED_FLAGS) $(WARN_FLAGS) $(CPPFLAGS) $(FUZZ_FLAGS) -c -o $@ $<
$(FUZZ_BIN): $(BUILD)/%: $(FUZZ_OBJ_DIR)/%.o $(FUZZ_OBJ_DIR)/tests/fuzz/common.o $(FUZZ_LIB_OBJ) $(PAGE_OBJ) $(SYSCALLS_OBJ)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $^ $(LIBS)
fuzz: $(FUZZ_BIN) ## build the fuzzers (CC=clang)

check: ## the tests before a commit: build, unit tests, checks, an old and a new Python; under four minutes
	$(Q)$(PYTHON) tests/run check
# What the tests need besides packages: fetched once, kept in ~/.cache/sampled; what is fetched is said.
setup-tests:
	$(Q)tests/setup-roots || true
	$(Q)tests/setup-cores || true
	$(Q)tests/setup-consumers || true
	$(Q)tests/bench/setup-peers py-spy austin || true
check-full: setup-tests ## every test: all interpreters, sanitizers, analysis, cross-compilation, browser; CI runs it
	$(Q)$(PYTHON) tests/run full
check-long: setup-tests ## that, and oracles at length, 200 kills, hours of soak, every patch release, bounds that want a quiet machine
	$(Q)$(PYTHON) tests/run long

# Minutes; SUITES= for the unit tests alone, or others of tests/run.
SUITES ?= first_integration
coverage: ## which lines the unit tests and those of make check on real Pythons reach, by folder and module
	$(Q)tests/coverage $(SUITES)
# A minute or two a file; MUTANTS=60 changes of each, drawn by SEED=1; TESTS="ring plan" for some suites alone.
mutate: ## which small changes of FILES no unit test notices: make mutate FILES=base/utf8.c
	$(Q)tests/mutate $(FILES)

# Each header must compile alone; HEADER_CHECKS are stamps, one a header.
HEADER_CHECKS := $(HEADERS:%=$(BUILD)/header/%.ok)
$(BUILD)/header/%.ok: % $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,HDR,$<)printf '#include "%s"\n' $< | \
		$(CC) $(filter-out -MMD -MP,$(REQUIRED_FLAGS)) $(WARN_FLAGS) -Werror -fsyntax-only -x c - && touch $@
$(HEADER_CHECKS): $(HEADERS)
check-headers: $(HEADER_CHECKS)

# Quick, half an hour with the service; BENCH_FULL=1 takes every workload and peer, and well over an hour; BENCH_ARGS: tests/bench/run --help.
$(BUILD)/tests/bench/limit: $(BUILD)/obj/tests/bench/limit.o $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CFLAGS) $(SAN_FLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^)
bench: all $(BUILD)/tests/bench/limit $(BUILD)/tests/oracle/truth $(BUILD)/tests/tools/make_recording ## measure: rate, CPU a sample, memory, what the target loses, formats, the service
	$(Q)tests/bench/setup-peers $(if $(BENCH_FULL),,tachyon austin) || true
	$(Q)tests/bench/setup-web || true
	$(Q)SAMPLED=$(BUILD)/sampled LIMIT=$(BUILD)/tests/bench/limit SAMPLED_TRUTH=$(BUILD)/tests/oracle/truth $(PYTHON) \
		tests/bench/run $(if $(BENCH_FULL),--full) $(BENCH_ARGS)
	$(if $(BENCH_ARGS),,$(Q)$(MAKE) --no-print-directory bench-bounds bench-formats bench-native bench-service)

bench-bounds: all ## measure: shares, losses and latenesses that must hold on a quiet machine
	$(Q)$(PYTHON) tests/run full bounds

bench-formats: all $(BUILD)/tests/tools/make_recording ## measure: ten million samples into each format, bytes a sample beside the peers
	$(Q)tests/bench/setup-peers tachyon austin || true
	$(Q)SAMPLED=$(BUILD)/sampled MAKE_RECORDING=$(BUILD)/tests/tools/make_recording $(PYTHON) tests/bench/formats.py $(BENCH_ARGS)

bench-native: all native ## measure: CPU and stop of native and exact samples, beside py-spy --native and austinp
	$(Q)tests/bench/setup-peers py-spy austin || true
	$(Q)SAMPLED=$(BUILD)/sampled $(PYTHON) -B tests/bench/stops.py $(BENCH_ARGS)

bench-history: $(BUILD)/tests/tools/measure_history ## measure: bytes a slice of the service's history, and how far back 64 MiB reach
	$(Q)MEASURE_HISTORY=$(BUILD)/tests/tools/measure_history $(PYTHON) tests/bench/history.py

# As root; BENCH_FULL=1 takes three rounds instead of one.
bench-service: all $(BUILD)/tests/bench/limit $(BUILD)/tests/tools/measure_history ## measure: cores by number of processes, credited time, budget, dumps, history
	$(Q)SAMPLED=$(BUILD)/sampled LIMIT=$(BUILD)/tests/bench/limit MEASURE_HISTORY=$(BUILD)/tests/tools/measure_history $(PYTHON) \
		tests/bench/service.py $(if $(BENCH_FULL),--rounds 3) $(BENCH_ARGS)

demo: all ## profile a small Python program for 5 s: ./flamegraph.html
	$(Q)SAMPLED=$(BUILD)/sampled PYTHON=$(PYTHON) tests/demo.sh

# The units name the program where it is installed.
UNITS := sampled.service sampled-push.service
$(BUILD)/units/%: systemd/% FORCE
	@mkdir -p $(@D)
	@sed 's,/usr/bin/sampled,$(PREFIX)/bin/sampled,' $< >$@

MANUALS := $(wildcard docs/*.[158])
EXAMPLE := $(PREFIX)/share/doc/sampled/examples/push.conf
# For bash, zsh and fish: where each looks by itself.
COMPLETIONS := $(PREFIX)/share/bash-completion/completions/sampled $(ZSHDIR)/_sampled \
	$(PREFIX)/share/fish/vendor_completions.d/sampled.fish
INSTALLED := $(COMPLETIONS) $(PREFIX)/bin/sampled $(EXAMPLE) $(UNITS:%=$(UNITDIR)/%) $(SYSUSERSDIR)/sampled.conf $(TMPFILESDIR)/sampled.conf \
	$(foreach page,$(MANUALS),$(PREFIX)/share/man/man$(subst .,,$(suffix $(page)))/$(notdir $(page)))
CONFIG := $(DESTDIR)$(SYSCONFDIR)/sampled/sampled.conf
install: all $(UNITS:%=$(BUILD)/units/%) ## install the program, its manual, units and configuration: PREFIX, DESTDIR, UNITDIR, SYSCONFDIR
	install -D -m 0755 $(BUILD)/sampled $(DESTDIR)$(PREFIX)/bin/sampled
	install -D -m 0644 -t $(DESTDIR)$(UNITDIR) $(UNITS:%=$(BUILD)/units/%)
	install -D -m 0644 systemd/sampled.sysusers.conf $(DESTDIR)$(SYSUSERSDIR)/sampled.conf
	install -D -m 0644 systemd/sampled.tmpfiles.conf $(DESTDIR)$(TMPFILESDIR)/sampled.conf
	for page in $(MANUALS); do install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man$${page##*.} $$page; done
	install -D -m 0644 systemd/push.conf $(DESTDIR)$(EXAMPLE)
	install -D -m 0644 packaging/completions/sampled.bash $(DESTDIR)$(word 1,$(COMPLETIONS))
	install -D -m 0644 packaging/completions/_sampled $(DESTDIR)$(word 2,$(COMPLETIONS))
	install -D -m 0644 packaging/completions/sampled.fish $(DESTDIR)$(word 3,$(COMPLETIONS))
	[ -e $(CONFIG) ] || install -D -m 0644 systemd/sampled.conf $(CONFIG)
uninstall: ## remove what install put there, but a configuration that was changed
	rm -f $(INSTALLED:%=$(DESTDIR)%)
	! cmp -s systemd/sampled.conf $(CONFIG) || rm -f $(CONFIG)
	[ ! -d $(dir $(CONFIG)) ] || rmdir --ignore-fail-on-non-empty $(dir $(CONFIG))

deb: ## build a Debian package: build/sampled_VERSION_ARCHITECTURE.deb
	$(Q)systemd/make-deb

wheel: static ## build the package for pip: build/sampled_profiler-VERSION-….whl
	$(Q)$(PYTHON) packaging/make-wheel $(or $(filter-out build,$(BUILD)),build/static)/sampled

image: static ## build an OCI image of the portable program alone: build/image (needs umoci)
	$(Q)packaging/make-image $(or $(filter-out build,$(BUILD)),build/static)/sampled

pictures: all ## make the pictures of README.md from a real profile, with Chromium
	$(Q)SAMPLED=$(BUILD)/sampled PYTHON=$(PYTHON) docs/make-pictures

format-check: ## tell where clang-format would change something
	clang-format --dry-run -Werror $(LIB_SRC) $(DAEMON_SRC) $(UNIT_SRC) $(STRESS_SRC) $(FUZZ_SRC) tests/fuzz/common.[ch] $(HEADERS)

clean: ## remove everything that was built
	rm -rf build
	rm -f flamegraph.html

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r target what; do \
		printf '  make %-13s %s\n' "$$target" "$$what"; done
	@echo '  V=1 shows commands; SANITIZE=address,undefined or thread; CFLAGS, PREFIX, DESTDIR as usual'

-include $(LIB_OBJ:.o=.d) $(DAEMON_OBJ:.o=.d) $(UNIT_OBJ:.o=.d) $(STRESS_OBJ:.o=.d) $(FUZZ_LIB_OBJ:.o=.d) \
	$(FUZZ_SRC:%.c=$(FUZZ_OBJ_DIR)/%.d) $(FUZZ_OBJ_DIR)/tests/fuzz/common.d \
	$(BUILD)/obj/tests/browser/make_profile.d $(BUILD)/obj/tests/oracle/truth.d $(BUILD)/obj/tests/tools/make_recording.d $(BUILD)/obj/tests/tools/measure_history.d \
	$(BUILD)/obj/tests/tools/name_places.d
