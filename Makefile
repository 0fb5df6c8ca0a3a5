# SPDX-License-Identifier: Apache-2.0
# sampled: one plain, non-recursive Makefile. `make help` lists what it can do.
V ?= 0
SANITIZE ?=
CC ?= gcc
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
DESTDIR ?=

ifeq ($(SANITIZE),)
BUILD ?= build
else
comma := ,
BUILD ?= build/san-$(subst $(comma),-,$(SANITIZE))
SAN_FLAGS := -fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all
endif

# What the code needs; a `make CFLAGS=…` cannot drop it.
REQUIRED_FLAGS := -std=gnu17 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -I. -pthread -MMD -MP \
	-Wall -Wextra -Wmissing-prototypes -Wshadow -Wconversion -Wstrict-prototypes -Wvla -Werror=implicit-function-declaration
LIBS := -lelf -pthread -lm

BASE_SRC := $(wildcard base/*.c)
SAMPLER_SRC := $(wildcard sampler/*.c sampler/pyabi/*.c)
AGGREGATOR_SRC := $(wildcard aggregator/*.c)
EXPORTERS_SRC := $(wildcard exporters/*.c)
DAEMON_SRC := $(wildcard daemon/*.c)
LIB_SRC := $(BASE_SRC) $(SAMPLER_SRC) $(AGGREGATOR_SRC) $(EXPORTERS_SRC)
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o)
DAEMON_OBJ := $(DAEMON_SRC:%.c=$(BUILD)/obj/%.o)

Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-4s %s\n' $(1) $(2);)

.PHONY: all clean
all: $(BUILD)/sampled

$(BUILD)/sampled: $(DAEMON_OBJ) $(LIB_OBJ)
	$(call say,LD,$@)$(CC) $(CFLAGS) $(SAN_FLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(REQUIRED_FLAGS) $(CPPFLAGS) $(CFLAGS) $(SAN_FLAGS) -c -o $@ $<

clean:
	rm -rf build

-include $(LIB_OBJ:.o=.d) $(DAEMON_OBJ:.o=.d)
