# Quern: make help lists what can be made. Parts: mk/deps.mk (set-up), mk/tests.mk (tests, lint, fuzzing);
# pipeline.mk has the rules of a run, which mk/pipeline starts with a make of its own.

.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += -rR
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
unexport SHELLOPTS BASHOPTS

# ---- the compiler and its flags ----
BUILD ?= build
CC ?= gcc
ifeq ($(origin CC),default)
CC := gcc
endif
# x86-64-v3 runs on every x86 server since 2013, with wider code for the model beside it. For this machine
# alone: OPT='-O2 -g -march=native'.
ARCH_FLAGS := -march=x86-64-v3
OPT ?= -O2 -g $(ARCH_FLAGS)
SAN ?=
# clang: sums and products are rounded one by one, as gcc does in C11; what gcc is told of optimisation, and
# loops that stay without vectors, are no warnings.
CLANG := $(findstring clang,$(CC))
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wwrite-strings \
  -Wno-missing-field-initializers \
  $(if $(CLANG),-Wno-unknown-pragmas -Wno-pass-failed,-Wno-format-truncation)
CFLAGS := -std=c11 -D_GNU_SOURCE -I. -fopenmp $(OPT) $(SAN) $(WARN) $(if $(CLANG),-ffp-contract=off)
# Since its version 6 msgpack-c's library is named msgpack-c (Ubuntu 24.04, Debian 13).
LIB_DIRS := /usr/lib /usr/lib64 /usr/lib/* /usr/local/lib
MSGPACK = $(if $(wildcard $(addsuffix /libmsgpack-c.so,$(LIB_DIRS))),msgpack-c,msgpackc)
LIBS = -lhiredis -l$(MSGPACK) -lcurl -ljansson -lseccomp -lcrypto -lutf8proc -lzip -lz -lmicrohttpd -ldl -lm \
  -lpthread
Q := $(if $(V),,@)
# For a make within a rule: all cores, unless the command line says how many.
ALL_CORES = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$$(nproc))

include mk/deps.mk

# ---- modules, the lowest first: a program links the archive of its own module and those before it ----
# A file quern.c or quern-NAME.c is a program; a module's archive has all other files of its folder.
MODULES := base gpu artifacts ops tasks queue model llm eval generate tune export stages report lab bench
folder = $(if $(filter bench,$(1)),tests/bench,$(1))
FOUND := $(sort $(shell find $(foreach m,$(MODULES),$(call folder,$(m))) -type f))
SOURCES := $(filter-out $(wildcard tasks/*/reference.c),$(filter %.c,$(FOUND)))
MAINS := $(foreach f,$(SOURCES),$(if $(filter quern.c quern-%,$(notdir $(f))),$(f)))
in_module = $(filter $(call folder,$(1))/%,$(2))
PROGRAMS := $(patsubst %.c,$(BUILD)/bin/%,$(notdir $(MAINS)))

up_to = $(if $(filter $(1),$(firstword $(2))),$(1),$(firstword $(2)) $(call up_to,$(1),$(wordlist 2,99,$(2))))
reverse = $(if $(1),$(call reverse,$(wordlist 2,99,$(1))) $(firstword $(1)))
archives = $(patsubst %,$(BUILD)/lib/%.a,$(call reverse,$(call up_to,$(1),$(MODULES))))

# ---- objects ----
# COMPILE is the command without its source: some objects have more in CFLAGS or DEFINES.
DEFINES =
COMPILE = $(CC) $(CFLAGS) $(DEFINES) -MMD -MP -MF $(@:.o=.d) -MT $@ -c -o $@
$(BUILD)/obj/%.o: %.c $(BUILD)/flags | $(BUILD)/deps
	$(Q)mkdir -p $(@D); echo "CC $<"; $(COMPILE) $<

$(BUILD)/obj/base/version.o: VERSION
VERSION_DEFINE := -DQUERN_VERSION='"$(file <VERSION)"'
$(BUILD)/obj/base/version.o: DEFINES = $(VERSION_DEFINE)

# What includes base/embed.h embeds texts of its folder and below, which the compiler does not report.
EMBEDDING := $(shell grep -l '^#include "base/embed.h"' $(SOURCES))
EMBEDDED := $(filter %.cu %.cuh %.css %.js %.lua %.tsv %.in,$(FOUND))
$(foreach c,$(EMBEDDING),$(eval $(c:%.c=$(BUILD)/obj/%.o): $(filter $(dir $(c))%,$(EMBEDDED))))

# Device backends register themselves before main and nothing names them. As one object that defines
# device_backends, which eval/device/registry.c needs, they come into every program that looks up a device,
# and into no other.
BACKENDS := eval/cuda/device.c eval/sim/device.c
$(BUILD)/obj/eval/backends.o: $(BACKENDS:%.c=$(BUILD)/obj/%.o)
	$(Q)ld -r --defsym=device_backends=0 -o $@ $^

# The model's CPU files are compiled twice, and cpu_choice.c takes the variant for the processor that it runs
# on. With OPT=..., which decides it, and where the compiler knows no AVX-512, there is one
# variant.
CPU_FILES := $(patsubst %,model/cpu/%.c,attention_cpu decode_cpu decoder_cpu draw_cpu ops_cpu)
CPU_WIDE := $(if $(filter x86_64,$(shell uname -m)),wide)
CPU_WIDE := $(if $(filter command% environment%,$(origin OPT)),,$(CPU_WIDE))
CPU_OBJECTS := $(foreach v,narrow $(CPU_WIDE),$(CPU_FILES:model/cpu/%.c=$(BUILD)/obj/model/cpu/$(v)/%.o))
CPU_DEFINES := -include model/cpu/cpu_variant.h -DCPU_VARIANT=
$(BUILD)/obj/model/cpu/narrow/%.o: DEFINES = $(CPU_DEFINES)narrow
$(BUILD)/obj/model/cpu/wide/%.o: DEFINES = $(CPU_DEFINES)wide -march=x86-64-v4
$(BUILD)/obj/model/cpu/cpu_choice.o: DEFINES = $(if $(CPU_WIDE),,-DCPU_NO_WIDE)
define cpu_rule
$(BUILD)/obj/model/cpu/$(1)/%.o: model/cpu/%.c $(BUILD)/flags | $(BUILD)/deps
	$$(Q)mkdir -p $$(@D); echo "CC $$< ($(1))"; $$(COMPILE) $$<
endef
$(foreach v,narrow wide,$(eval $(call cpu_rule,$(v))))

# A change of compiler or flags rebuilds: decided at parse time, so that make -n and -q stay true.
FLAGS_NOW := $(CC) $(CFLAGS)
ifneq ($(file <$(BUILD)/flags),$(FLAGS_NOW))
$(BUILD)/flags: FORCE
endif
$(BUILD)/flags: ; @mkdir -p $(@D); printf '%s\n' '$(subst ','\'',$(FLAGS_NOW))' >$@
FORCE: ;

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)

# ---- archives and programs ----
LIBRARY_SOURCES := $(filter-out $(MAINS) $(BACKENDS) $(CPU_FILES),$(SOURCES))
objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(call in_module,$(1),$(LIBRARY_SOURCES))) \
  $(if $(filter eval,$(1)),$(BUILD)/obj/eval/backends.o) \
  $(if $(filter model,$(1)),$(CPU_OBJECTS))

define archive_rule
$(BUILD)/lib/$(1).a: $(call objects,$(1))
	$$(Q)mkdir -p $$(@D); rm -f $$@; ar rcs $$@ $$^
endef
$(foreach m,$(MODULES),$(eval $(call archive_rule,$(m))))

# $(1) is made of the object of source $(2), the archives of module $(3) and more objects $(4), by LINK.
LINK = $(CC) $(CFLAGS) -rdynamic
define link_rule
$(1): $(BUILD)/obj/$(2:.c=.o) $(4) $(call archives,$(3))
	$$(Q)mkdir -p $$(@D); $$(LINK) -o $$@.tmp $$^ $$(LIBS) && mv $$@.tmp $$@
endef
$(foreach m,$(MODULES),$(foreach f,$(call in_module,$(m),$(MAINS)), \
  $(eval $(call link_rule,$(BUILD)/bin/$(notdir $(f:.c=)),$(f),$(m)))))

# ---- tasks: each reference.c is a library of its own; a task of a graph needs none ----
REFERENCES := $(patsubst tasks/%/reference.c,$(BUILD)/tasks/%.so,$(wildcard tasks/*/reference.c))
$(BUILD)/tasks/%.so: tasks/%/reference.c $(BUILD)/flags | $(BUILD)/deps
	$(Q)mkdir -p $(@D)
	$(Q)echo "const char reference_source[] = \"$$(sha256sum <$< | cut -c1-64)\";" | \
	  $(CC) -std=gnu11 -O3 $(ARCH_FLAGS) -fopenmp -fPIC -shared -Wall -Wextra -Werror -o $@.tmp \
	  $< -x c - -lm && mv $@.tmp $@

# ---- everything that is not a test ----
.PHONY: all build
# Programs find the source tree by this file, so that a built tree can be moved.
$(BUILD)/root: ; @mkdir -p $(@D); realpath --relative-to=$(@D) . >$@
# The lab has scripts, too, which stand beside the programs that they call.
LAB_SCRIPTS := $(patsubst lab/%.sh,$(BUILD)/bin/%,$(wildcard lab/*.sh))
$(LAB_SCRIPTS): $(BUILD)/bin/%: lab/%.sh
	$(Q)mkdir -p $(@D); cp $< $@
all build: $(PROGRAMS) $(LAB_SCRIPTS) $(REFERENCES) $(BUILD)/root

include mk/tests.mk

# ---- for editors: the command that compiles each C file ----
define newline


endef
comma := ,
json_text = "$(subst ",\",$(subst \,\\,$(1)))"
editor_flags = $(CFLAGS) $(if $(filter base/version.c,$(1)),$(VERSION_DEFINE)) \
  $(if $(filter $(CPU_FILES),$(1)),$(CPU_DEFINES)narrow)
compile_command = {"directory": $(call json_text,$(CURDIR)), "file": $(call json_text,$(1)), \
  "command": $(call json_text,$(CC) $(strip $(call editor_flags,$(1))) -c $(1))}
.PHONY: compile_commands.json
compile_commands.json:
	$(file >$@,[$(call compile_command,$(firstword $(SOURCES)))$(foreach \
	  f,$(filter-out $(firstword $(SOURCES)),$(SOURCES) $(TEST_SOURCES)),$(comma)$(newline)$(call \
	  compile_command,$(f)))])
	@echo $@

# ---- documentation and speeds ----
# Pages that programs write of themselves: the fields of a verdict, and every setting and variable.
.PHONY: docs bench bench-gpu bench-gpu-full
docs: build
	@$(BUILD)/bin/quern-eval --schema >docs/verdict.md.tmp && mv docs/verdict.md.tmp docs/verdict.md
	@{ printf '# Settings and variables\n\n'; \
	  printf '`make docs` writes this page from `quern-config --table`. '; \
	  printf 'docs/pipeline.md says what the settings do.\n\n'; \
	  $(BUILD)/bin/quern-config --table; } >docs/environment.md.tmp && \
	  mv docs/environment.md.tmp docs/environment.md

# Speeds, one after another, in one table.
bench: build
	@tests/bench/simulator $(BUILD)

# The speeds of the evaluator and of the engine on a GPU, in two tables: about ten minutes. bench-gpu-full has
# all counts: half an hour more.
bench-gpu bench-gpu-full: build
	@tests/bench/evaluator '$(BUILD)' cuda:0 '$(filter %-full,$@)'
	@tests/bench/engine '$(BUILD)' cuda:0

# ---- installing: programs, tasks, rules, man pages, completion. All is found from where `quern` is. ----
.PHONY: install uninstall clean
PREFIX ?= /usr/local
INSTALLED := $(DESTDIR)$(PREFIX)
PRODUCTS := $(filter-out %bench $(basename $(notdir $(filter lab/%,$(MAINS)))),$(notdir $(PROGRAMS)))
install: build
	@PREFIX='$(PREFIX)' mk/install '$(BUILD)' '$(INSTALLED)' $(PRODUCTS)
uninstall:
	@mk/install --remove '$(INSTALLED)'

# Fetched headers and toolkits stay: they are downloads, not results of a build.
clean:
	find $(BUILD) -mindepth 1 -maxdepth 1 ! -name cuda ! -name cutlass -exec rm -rf {} +

# ---- the run: the queue and the evaluators live as long as it does; pipeline.mk has the rules ----
# Make's command line as words of the shell: quern-config checks every name and value.
on_command_line = $(filter command,$(firstword $(origin $(1))))
shell_word = '$(subst $(newline),'$$'\n'',$(subst ','\'',$(1)))'
given = $(strip $(foreach v,$(.VARIABLES),$(if $(call on_command_line,$(v)),$(v))))
command_line = $(foreach v,$(given),$(call shell_word,$(v)=$($(v))))
RUN_ARGUMENTS = '$(BUILD)' '$(firstword -$(MAKEFLAGS))' '$(MAKE)' $(command_line)
.PHONY: crl sft selfsup collect optimize ablation
# Before quern-config is built, which says more: a wrong name or profile ends at once, not behind the build.
ifeq ($(wildcard $(BUILD)/bin/quern-config),)
ifneq ($(filter crl sft selfsup collect crl-% selfsup-% report-%,$(MAKECMDGOALS)),)
SETTINGS_KNOWN := LAB_% $(shell sed -n 's/^| `\([A-Z_]*\)` .*/\1/p' docs/environment.md)
$(foreach v,$(filter-out $(SETTINGS_KNOWN),$(given)),$(error \
  quern: $(v)=$($(v)): there is no such variable; make help lists them))
$(foreach p,$(PROFILE),$(if $(wildcard configs/$(p).mk),,$(error \
  quern: PROFILE=$(p): expected the name of a file in configs/, such as smoke or default)))
endif
endif
pipeline = +@exec mk/pipeline $@ $(RUN_ARGUMENTS)
crl sft selfsup collect: build
	$(pipeline)
# A step of the rounds or of the report, as its log is called: make crl-3-samples
crl-%: build
	$(pipeline)
selfsup-%: build
	$(pipeline)
report-%: build
	$(pipeline)

# From one operator to the package of its fastest kernel: make optimize OP=model.py BUDGET=30m
optimize: build
	+@exec mk/optimize optimize $(RUN_ARGUMENTS)

# Arms x seeds in one tree, and one table: lab/arms has the arms.
ablation: build
	+@exec lab/ablation $(RUN_ARGUMENTS)

.PHONY: help
help:
	@sed -n 's/^## //p' mk/help.txt
