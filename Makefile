# Quern: build, dependencies, tests, and the names of the stages. `make help` lists them.
# The run's dependency rules are in pipeline.mk.

.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += -rR
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

BUILD ?= build
CC ?= gcc
ifeq ($(origin CC),default)
CC := gcc
endif
# x86-64-v3 runs on every x86 server since 2013, with wider code for the model beside it; NATIVE=1 is for this
# machine alone.
ARCH_FLAGS := $(if $(NATIVE),-march=native,-march=x86-64-v3)
OPT ?= -O2 -g $(ARCH_FLAGS)
SAN ?=
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wwrite-strings \
  -Wno-missing-field-initializers -Wno-format-truncation
# gcc checks the warnings; clang, which make fuzz uses, has others.
ifneq ($(LIBFUZZER),)
WARN := -w
endif
CFLAGS := -std=c11 -D_GNU_SOURCE -I. -fopenmp $(OPT) $(SAN) $(WARN)
# Since its version 6 msgpack-c's library is named msgpack-c (Ubuntu 24.04, Debian 13).
LIB_DIRS := /usr/lib /usr/lib64 /usr/lib/* /usr/local/lib
MSGPACK = $(if $(wildcard $(addsuffix /libmsgpack-c.so,$(LIB_DIRS))),msgpack-c,msgpackc)
LIBS = -lhiredis -l$(MSGPACK) -lcurl -ljansson -lseccomp -lcrypto -lutf8proc -lzip -lz -lmicrohttpd -ldl -lm \
  -lpthread
Q := $(if $(V),,@)

include mk/deps.mk

# ---- modules: an include goes down this list only; a program links its module and those above it ----
MODULES := base gpu artifacts ops tasks queue model llm eval export stages report lab bench
FOUND := $(shell find $(filter-out bench,$(MODULES)) tests/bench -type f)
SOURCES := $(filter %.c,$(FOUND))
below = $(sort $(patsubst %/,%,$(dir $(filter $(1)/%,$(SOURCES)))))
DIRS_tasks := $(filter tasks tasks/graph tasks/derive tasks/import tasks/generate,$(call below,tasks))
DIRS_bench := $(call below,tests/bench)
$(foreach m,$(filter-out tasks bench,$(MODULES)),$(eval DIRS_$(m) := $(call below,$(m))))

main_files = $(foreach d,$(DIRS_$(1)),$(wildcard $(d)/quern.c $(d)/quern-*.c))
SRC = $(filter-out $(main_files),$(foreach d,$(DIRS_$(1)),$(wildcard $(d)/*.c)))
MAINS := $(foreach m,$(MODULES),$(call main_files,$(m)))
PROGRAMS := $(patsubst %.c,$(BUILD)/bin/%,$(notdir $(MAINS)))
up_to = $(if $(filter $(1),$(firstword $(2))),$(1),$(firstword $(2)) $(call up_to,$(1),$(wordlist 2,99,$(2))))
reverse = $(if $(1),$(call reverse,$(wordlist 2,99,$(1))) $(firstword $(1)))
archives = $(patsubst %,$(BUILD)/lib/%.a,$(call reverse,$(call up_to,$(1),$(MODULES))))

# Device backends register themselves before main and nothing names them. As one object that defines
# device_backends, which eval/device/registry.c needs, they come into every program that looks up a device,
# and into no other.
BACKENDS := eval/cuda/device.c eval/sim/device.c
$(BUILD)/obj/eval/backends.o: $(BACKENDS:%.c=$(BUILD)/obj/%.o)
	$(Q)ld -r --defsym=device_backends=0 -o $@ $^

# The model's CPU files are compiled twice, and cpu_choice.c takes the variant for the processor that it runs
# on. With NATIVE=1 or OPT=..., which decide it, and where the compiler knows no AVX-512, there is one
# variant.
CPU_FILES := $(patsubst %,model/cpu/%.c,attention_cpu decode_cpu decoder_cpu draw_cpu ops_cpu)
CPU_WIDE := $(if $(filter x86_64,$(shell uname -m)),wide)
CPU_WIDE := $(if $(NATIVE)$(filter command% environment%,$(origin OPT)),,$(CPU_WIDE))
CPU_OBJECTS := $(foreach v,narrow $(CPU_WIDE),$(CPU_FILES:model/cpu/%.c=$(BUILD)/obj/model/cpu/$(v)/%.o))
$(BUILD)/obj/model/cpu/narrow/%.o: VARIANT := narrow
$(BUILD)/obj/model/cpu/wide/%.o: VARIANT := wide -march=x86-64-v4
define variant_rule
$(BUILD)/obj/model/cpu/$(1)/%.o: model/cpu/%.c $(BUILD)/flags | $(BUILD)/deps
	$$(Q)mkdir -p $$(@D); echo "CC $$< ($(1))"; $$(CC) $$(CFLAGS) -include model/cpu/cpu_variant.h \
	  -DCPU_VARIANT=$$(VARIANT) -MMD -MP -MF $$(@:.o=.d) -MT $$@ -c -o $$@ $$<
endef
$(foreach v,narrow wide,$(eval $(call variant_rule,$(v))))
$(BUILD)/obj/model/cpu/cpu_choice.o: CFLAGS += $(if $(CPU_WIDE),,-DCPU_NO_WIDE)

objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out $(BACKENDS) $(CPU_FILES),$(SRC))) \
  $(if $(filter eval,$(1)),$(BUILD)/obj/eval/backends.o) \
  $(if $(filter model,$(1)),$(CPU_OBJECTS))

# Tests check and compute little themselves: they are compiled for a short build, and linked by gold, in half
# the time, where it is. What they call is the product's code as it is.
$(BUILD)/obj/tests/unit/%.o: CFLAGS += -Og -g1
LINK_TEST = $(CC) $(CFLAGS) $(if $(LIBFUZZER),,$(if $(wildcard /usr/bin/ld.gold),-fuse-ld=gold)) -rdynamic

define module_rules
$(BUILD)/lib/$(1).a: $(call objects,$(1))
	$$(Q)mkdir -p $$(@D); rm -f $$@; ar rcs $$@ $$^
$(foreach p,$(call main_files,$(1)),
$(BUILD)/bin/$(notdir $(p:.c=)): $(BUILD)/obj/$(p:.c=.o) $(call archives,$(1))
	$$(Q)mkdir -p $$(@D); $(CC) $(CFLAGS) -rdynamic -o $$@.tmp $$^ $(LIBS) && mv $$@.tmp $$@
)
$(foreach t,$(wildcard tests/unit/$(1)/*.c),
$(BUILD)/test/$(1)/$(notdir $(t:.c=)): $(BUILD)/obj/$(t:.c=.o) $(call archives,$(1))
	$$(Q)mkdir -p $$(@D); $$(LINK_TEST) -o $$@.tmp $$^ $(LIBS) -lcmocka && mv $$@.tmp $$@
)
$(foreach t,$(wildcard tests/fuzz/$(1)/*.c),
$(BUILD)/fuzz/$(notdir $(t:.c=)): $(BUILD)/obj/$(t:.c=.o) \
  $(if $(LIBFUZZER),,$(BUILD)/obj/tests/fuzz/driver.o) $(call archives,$(1))
	$$(Q)mkdir -p $$(@D); $$(LINK_TEST) $(if $(LIBFUZZER),-fsanitize=fuzzer) -o $$@.tmp $$^ $(LIBS) && \
	  mv $$@.tmp $$@
)
endef
$(foreach m,$(MODULES),$(eval $(call module_rules,$(m))))

$(BUILD)/obj/%.o: %.c $(BUILD)/flags | $(BUILD)/deps
	$(Q)mkdir -p $(@D); echo "CC $<"; $(CC) $(CFLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c -o $@ $<

$(BUILD)/obj/base/version.o: VERSION
$(BUILD)/obj/base/version.o: CFLAGS += -DQUERN_VERSION='"$(file <VERSION)"'

# What includes base/embed.h embeds texts of its folder and of those below.
EMBEDDING := $(shell grep -rl --include='*.c' '^#include "base/embed.h"' $(filter-out bench,$(MODULES)))
EMBEDDED := $(filter %.cu %.cuh %.css %.js %.lua %.tsv %.tmpl,$(FOUND))
$(foreach c,$(EMBEDDING),$(eval $(c:%.c=$(BUILD)/obj/%.o): $(filter $(dir $(c))%,$(EMBEDDED))))

# A change of compiler or flags rebuilds: decided at parse time, so that make -n and -q stay true.
FLAGS_NOW := $(CC) $(CFLAGS)
ifneq ($(file <$(BUILD)/flags),$(FLAGS_NOW))
$(BUILD)/flags: FORCE
endif
$(BUILD)/flags: ; @mkdir -p $(@D); printf '%s\n' '$(subst ','\'',$(FLAGS_NOW))' >$@
FORCE: ;

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)

# ---- tasks: each reference.c is a library of its own; a task of a graph needs none ----
REFERENCES := $(patsubst tasks/%/reference.c,$(BUILD)/tasks/%.so,$(wildcard tasks/*/reference.c))
$(BUILD)/tasks/%.so: tasks/%/reference.c $(BUILD)/flags
	$(Q)mkdir -p $(@D)
	$(Q)echo "const char reference_source[] = \"$$(sha256sum <$< | cut -c1-64)\";" | \
	  $(CC) -std=gnu11 -O3 $(ARCH_FLAGS) -fopenmp -fPIC -shared -Wall -Wextra -Werror -o $@.tmp \
	  $< -x c - -lm && mv $@.tmp $@

# ---- everything ----
.PHONY: all build test test-tasks lint format fuzz docs test-gpu test-san bench bench-gpu install uninstall \
  clean help
# Programs find the source tree by this file, so that a built tree can be moved.
$(BUILD)/root: ; @mkdir -p $(@D); realpath --relative-to=$(@D) . >$@
all build: $(PROGRAMS) $(REFERENCES) $(BUILD)/root

UNIT_TESTS := \
  $(foreach m,$(MODULES),$(patsubst tests/unit/$(m)/%.c,$(BUILD)/test/$(m)/%,$(wildcard tests/unit/$(m)/*.c)))
FUZZERS := \
  $(foreach m,$(MODULES),$(patsubst tests/fuzz/$(m)/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/$(m)/*.c)))
SHELL_TESTS := $(sort $(wildcard tests/shell/*.t))
shell_tests = $(patsubst %,tests/shell/%.t,$(1))
eval_units = $(patsubst %,$(BUILD)/test/eval/test_%,$(1))
# What takes longest on two idle cores, longest first. Those that mostly wait (queue_kill, llm, records,
# hosts, sandbox, fuzz) are among them by their time, so that others compute beside them. engine_build
# compiles what the engine's other tests run.
LONG_TESTS := $(call shell_tests,queue_kill resume) $(call eval_units,engine_build) \
  $(call shell_tests,cheats generate faults llm records) \
  $(call eval_units,op_kernels) $(call shell_tests,eval fuzz hosts optimize) $(call eval_units,sandbox) \
  $(call shell_tests,precompile remake) $(call eval_units,engine_sampler cuda_device) \
  $(call shell_tests,gpubench storms ablation gap derive wide ranking) \
  $(call eval_units,engine_decode compile) $(call shell_tests,undefined status) \
  $(BUILD)/test/tasks/test_tolerance $(BUILD)/test/tasks/test_derive \
  $(call shell_tests,oplines lint outside tasksets) \
  $(call eval_units,op_routes engine_paged compile_server)
ALL_TESTS := $(LONG_TESTS) $(filter-out $(LONG_TESTS),$(SHELL_TESTS) $(UNIT_TESTS))

# prove runs each test in a process and a folder of its own, under its own time limit; the long ones come
# first. Five at a time keep two cores busy, since some tests mostly wait. The test programs are compiled on
# all cores, without -j too.
test: build
	+@$(MAKE) --no-print-directory $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$$(nproc)) \
	  test-programs
	@build="$$(realpath '$(BUILD)')"; rm -rf "$$build/trash/compiled"; \
	  QUERN_BUILD="$$build" QUERN_TEST_CACHE="$$build/trash/compiled" QUERN_CC='$(CC)' \
	  QUERN_OPT='$(OPT)' QUERN_SAN='$(SAN)' prove --timer -j5 --exec tests/run $(ALL_TESTS)

.PHONY: test-programs
test-programs: $(UNIT_TESTS) $(FUZZERS) ; @:

# Gates every task of every set; make test gates a sample.
test-tasks: build
	@$(BUILD)/bin/quern-task gate '*'

# On a real GPU: its device, every kernel of tests/cheats, and the engine. Skipped, with a word, where there
# is none.
GPU ?= cuda:0
test-gpu: build $(filter $(BUILD)/test/model/%_cuda,$(UNIT_TESTS)) \
  $(patsubst %,$(BUILD)/test/eval/test_%,op_routes op_kernels library)
	@QUERN_BUILD="$$(realpath '$(BUILD)')" QUERN_TEST_DEVICE='$(GPU)' prove --timer --exec tests/run \
	  $(sort $(wildcard tests/gpu/*.t))

# A run's page in a headless browser, with screenshots in build/report/. REPORT names it; else a small run is
# made. PICTURE=1 renews docs/report.png.
REPORT ?= runs/test-report/report.html
.PHONY: test-report
test-report: build
	@[ -e '$(REPORT)' ] || $(MAKE) --no-print-directory crl PROFILE=smoke RUN=test-report
	@mk/test-report '$(REPORT)' '$(BUILD)/report' $(if $(PICTURE),docs/report.png)

# The unit tests and short fuzzing again, under AddressSanitizer and UndefinedBehaviorSanitizer.
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined
test-san:
	@mkdir -p $(BUILD)/san; [ ! -d $(BUILD)/cuda ] || ln -sfn ../cuda $(BUILD)/san/cuda # the wheels once
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/san SAN="$(SANITIZE)" OPT="-O1 -g $(ARCH_FLAGS)" san-run
.PHONY: san-run
san_tests = $(filter-out $(SKIP:%=$(BUILD)/test/%),$(UNIT_TESTS)) # SKIP: names as eval/test_stall
san-run: build $(san_tests) $(FUZZERS)
	@build="$$(realpath '$(BUILD)')"; rm -rf "$$build/trash/compiled"; \
	  QUERN_BUILD="$$build" QUERN_TEST_CACHE="$$build/trash/compiled" QUERN_TEST_TIMEOUT=3600 prove \
	  --timer -j2 --exec tests/run $(san_tests) tests/shell/fuzz.t

# Layers, sizes, head comments, format: mk/lint says what it checks. `make format` formats every source.
lint: $(BUILD)/deps
	@mk/lint
format:
	@mk/lint --files | xargs clang-format -i

# The fuzz targets with clang's libFuzzer, each for FUZZ_SECONDS on its corpus; make test runs them with the
# mutator of tests/fuzz/driver.c, which gcc alone can build.
FUZZ_SECONDS ?= 60
fuzz:
	@command -v clang >/dev/null || { echo "quern: make fuzz needs clang with libFuzzer" \
	  "(Debian: apt-get install clang libclang-rt-14-dev libomp-dev)" >&2; exit 2; }
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/libfuzzer CC=clang LIBFUZZER=1 \
	  OPT="-O1 -g $(ARCH_FLAGS)" SAN="-fsanitize=fuzzer-no-link,address,undefined" fuzz-targets
	@FUZZ_SECONDS=$(FUZZ_SECONDS) mk/fuzz $(BUILD)/libfuzzer/fuzz
.PHONY: fuzz-targets
fuzz-targets: $(FUZZERS)

# Pages that programs write of themselves: the fields of a verdict, and every setting and variable.
docs: build
	@$(BUILD)/bin/quern-eval --schema >docs/verdict.md.tmp && mv docs/verdict.md.tmp docs/verdict.md
	@{ printf '# Settings and variables\n\n'; \
	  printf '`make docs` writes this page from `quern-config --table`. '; \
	  printf 'docs/pipeline.md says what the settings do.\n\n'; \
	  $(BUILD)/bin/quern-config --table; } >docs/environment.md.tmp && \
	  mv docs/environment.md.tmp docs/environment.md

# Speeds, one after another, in one table.
bench: build
	@mk/bench $(BUILD)

# The speeds of the evaluator and of the engine on a GPU, in two tables: about ten minutes. FULL=1 runs all
# counts: about half an hour more.
bench-gpu: build
	@mk/bench-gpu '$(BUILD)' '$(GPU)' '$(FULL)'
	@mk/bench-engine '$(BUILD)' '$(GPU)'

# Fetched toolkits (build/cuda) stay: they are downloads, not results of a build.
clean:
	find $(BUILD) -mindepth 1 -maxdepth 1 ! -name cuda -exec rm -rf {} +

# ---- installing: programs, tasks, rules, man pages, completion. All is found from where `quern` is. ----
PREFIX ?= /usr/local
INSTALLED := $(DESTDIR)$(PREFIX)
PRODUCTS := $(filter-out %bench $(patsubst %.c,$(BUILD)/bin/%,$(notdir $(call main_files,lab))),$(PROGRAMS))
install: build
	@PREFIX='$(PREFIX)' mk/install '$(BUILD)' '$(INSTALLED)' $(notdir $(PRODUCTS))
uninstall:
	@mk/install --remove '$(INSTALLED)'

# ---- the run: the queue and the evaluators live as long as it does; pipeline.mk has the rules ----
# Make's command line as words of the shell: quern-config checks every name and value.
define newline


endef
on_command_line = $(filter command,$(firstword $(origin $(1))))
shell_word = '$(subst $(newline),'$$'\n'',$(subst ','\'',$(1)))'
command_line = $(foreach v,$(.VARIABLES),$(if $(call on_command_line,$(v)),$(call shell_word,$(v)=$($(v)))))
pipeline = +@exec mk/pipeline $@ '$(BUILD)' '$(firstword -$(MAKEFLAGS))' '$(MAKE)' $(command_line)
.PHONY: crl sft selfsup collect
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
.PHONY: optimize
optimize: build
	+@exec mk/optimize optimize '$(BUILD)' '$(firstword -$(MAKEFLAGS))' '$(MAKE)' $(command_line)

# Arms x seeds in one tree, and one table: lab/arms has the arms.
.PHONY: ablation
ablation: build
	+@exec lab/ablation '$(BUILD)' '$(firstword -$(MAKEFLAGS))' '$(MAKE)' $(command_line)

help:
	@sed -n 's/^## //p' mk/help.txt
