# Tests: make check (quick), make test (all), make test-san, test-gpu, test-report; lint, format and fuzzing.

# ---- programs of tests ----
# tests/unit mirrors the product's folders, and build/test/MODULE has the tests of a module, so that they find
# programs and references as every program does. A file that is not test_NAME.c is driven by a shell test.
TEST_SOURCES := $(sort $(shell find tests/unit tests/fuzz -name '*.c'))
unit_of = $(filter tests/unit/$(1)/%,$(TEST_SOURCES))
fuzz_of = $(filter tests/fuzz/$(1)/%,$(TEST_SOURCES))
unit_program = $(BUILD)/test/$(word 3,$(subst /, ,$(1)))/$(notdir $(1:.c=))
fuzz_program = $(BUILD)/fuzz/$(notdir $(1:.c=))
UNIT_PROGRAMS := $(foreach m,$(MODULES),$(foreach f,$(call unit_of,$(m)),$(call unit_program,$(f))))
UNIT_TESTS := $(foreach p,$(UNIT_PROGRAMS),$(if $(filter test_%,$(notdir $(p))),$(p)))
FUZZERS := $(foreach m,$(MODULES),$(foreach f,$(call fuzz_of,$(m)),$(call fuzz_program,$(f))))
SHELL_TESTS := $(sort $(wildcard tests/shell/*.t))

# Tests check and compute little themselves: they are compiled for a short build, and linked by gold, in half
# the time, where it is. What they call is the product's code as it is. clang does not know that fail_msg ends
# a test.
$(BUILD)/obj/tests/unit/%.o: CFLAGS += -Og -g1 $(if $(CLANG),-Wno-sometimes-uninitialized)
$(UNIT_PROGRAMS): LIBS += -lcmocka
$(UNIT_PROGRAMS): LINK += $(GOLD)
LIBFUZZER := $(findstring fuzzer,$(SAN))
$(FUZZERS): LINK += $(if $(LIBFUZZER),-fsanitize=fuzzer,$(GOLD))
GOLD = $(if $(LIBFUZZER),,$(if $(wildcard /usr/bin/ld.gold),-fuse-ld=gold))
FUZZ_DRIVER = $(if $(LIBFUZZER),,$(BUILD)/obj/tests/fuzz/driver.o)
$(foreach m,$(MODULES),$(foreach f,$(call unit_of,$(m)), \
  $(eval $(call link_rule,$(call unit_program,$(f)),$(f),$(m)))))
$(foreach m,$(MODULES),$(foreach f,$(call fuzz_of,$(m)), \
  $(eval $(call link_rule,$(call fuzz_program,$(f)),$(f),$(m),$(FUZZ_DRIVER)))))
.PHONY: test-programs
test-programs: $(UNIT_PROGRAMS) $(FUZZERS) ; @:

# ---- running: prove runs each test in a process and a folder of its own, under its own time limit ----
# tests/order puts the longest first. Five at a time keep two cores busy, since some tests mostly wait. What
# one test has compiled is there for the others, and for the next `make test` (tests/compiled).
TEST_SETTINGS = build="$$(realpath '$(BUILD)')"; export QUERN_BUILD="$$build" QUERN_CC='$(CC)' \
  QUERN_TEST_CACHE="$$(tests/compiled "$$build")"
.PHONY: test check test-times
test:
	+@$(MAKE) --no-print-directory $(ALL_CORES) build test-programs
	@$(TEST_SETTINGS); rm -f "$$build"/trash/*/tap; \
	  prove --timer -j5 --exec tests/run $$(tests/order $(SHELL_TESTS) $(UNIT_TESTS)) || \
	  { tests/failed >&2; rm -rf "$$QUERN_TEST_CACHE"; exit 1; }

# The times of the last runs become those that a fresh clone begins with.
test-times:
	@QUERN_BUILD='$(BUILD)' tests/order --keep $(SHELL_TESTS) $(UNIT_TESTS)

# T names tests: plan, eval/plan (where two modules have a test of one name), cli (tests/shell/cli.t).
T =
named_test = $(or $(strip $(filter %/$(patsubst ./%,%,$(dir $(1)))test_$(notdir $(1)) %/$(1).t, \
  $(UNIT_TESTS) $(SHELL_TESTS))),$(error there is no test $(1): T=plan, T=eval/plan, T=cli))
named_tests = $(foreach t,$(T),$(call named_test,$(t)))

# What a test needs besides itself. A shell test needs all programs, and so does a unit test that starts the
# compiler or a device's process: what they include or call tells them.
tests_with = $(foreach f,$(shell grep -rlE '$(1)' tests/unit --include='test_*.c'),$(call unit_program,$(f)))
with_programs = $(call \
  tests_with,compiler_open|evaluator_open|process_find_program|(compile|cuda)_support\.h|op_device\.h)
with_nvrtc = $(call tests_with,nvrtc_open|engine_support\.h)
needed = $(REFERENCES) $(BUILD)/root $(filter $(BUILD)/%,$(1)) \
  $(if $(filter tests/shell/% $(with_programs),$(1)),build) \
  $(if $(filter tests/shell/%,$(1)),$(filter-out $(UNIT_TESTS),$(UNIT_PROGRAMS))) \
  $(if $(filter %/fuzz.t,$(1)),$(FUZZERS))

# Without T: the unit tests that compile no kernel, start no program and take less than two seconds by
# tests/times. With T: these tests, one after another, with all that they write on the terminal.
quick_tests = $(shell tests/order --under 2 $(filter-out $(with_programs) $(with_nvrtc),$(UNIT_TESTS)))
checked = $(or $(named_tests),$(quick_tests))
check:
	+@$(MAKE) --no-print-directory $(ALL_CORES) $(call needed,$(checked))
	@$(TEST_SETTINGS); rm -f "$$build"/trash/*/tap; \
	  $(if $(T),for t in $(checked); do tests/run -v "$$t"; done, \
	  prove -j3 --exec tests/run $$(tests/order $(checked)) || { tests/failed >&2; exit 1; })

# The unit tests, or those that T names, and short fuzzing under AddressSanitizer and
# UndefinedBehaviorSanitizer.
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined
.PHONY: test-san san-run
test-san:
	@mkdir -p $(BUILD)/san # the wheels once
	@for d in cuda cutlass; do [ ! -d $(BUILD)/$$d ] || ln -sfn ../$$d $(BUILD)/san/$$d; done
	+@$(MAKE) --no-print-directory BUILD=$(BUILD)/san SAN="$(SANITIZE)" OPT="-O1 -g $(ARCH_FLAGS)" san-run
san_tests = $(or $(named_tests),$(UNIT_TESTS) tests/shell/fuzz.t)
san-run:
	+@$(MAKE) --no-print-directory $(ALL_CORES) $(call needed,$(san_tests))
	@$(TEST_SETTINGS); rm -rf "$$QUERN_TEST_CACHE"; QUERN_TEST_TIMEOUT=3600 prove --timer -j2 \
	  --exec tests/run $$(tests/order $(san_tests))

# Gates every task of every set; make test gates a sample.
.PHONY: test-tasks
test-tasks: build
	@$(BUILD)/bin/quern-task gate '*'

# Every source of tests/cutlass; make test takes three of them.
.PHONY: test-cutlass
test-cutlass: build
	@QUERN_BUILD='$(BUILD)' CUTLASS=all tests/shell/cutlass.t

# A measure of the judge: of 200 mutants of right kernels, or as many as 20 minutes allow, it takes none
# that is not listed.
.PHONY: test-mutants
test-mutants: build
	@$(BUILD)/bin/quern-mutate --count 200 --seconds 1200

# On a real GPU: its device, every kernel of tests/cheats, and the engine. Skipped, with a word, where there
# is none.
.PHONY: test-gpu
test-gpu: build $(filter $(BUILD)/test/model/%_cuda,$(UNIT_TESTS)) \
  $(patsubst %,$(BUILD)/test/eval/test_%,op_routes op_kernels library)
	@$(TEST_SETTINGS); QUERN_TEST_DEVICE=cuda:0 prove --timer --exec tests/run \
	  $(sort $(wildcard tests/gpu/*.t))

# A run's page in a headless browser, with screenshots in build/report/. RUN names the run; else a small one
# is made. `make picture` renews docs/report.png.
REPORTED = $(or $(RUN),test-report)
PAGE = runs/$(REPORTED)/report.html
.PHONY: test-report picture
test-report picture: build
	@[ -e '$(PAGE)' ] || $(MAKE) --no-print-directory crl PROFILE=smoke RUN=$(REPORTED)
	@tests/report '$(PAGE)' '$(BUILD)/report' $(if $(filter picture,$@),docs/report.png)

# ---- sources ----
# Layers, sizes, head comments, format: mk/lint says what it checks. `make format` formats every source.
.PHONY: lint format
lint: $(BUILD)/deps
	@mk/lint
format:
	@mk/lint --files | xargs clang-format -i

# ---- fuzzing with clang's libFuzzer, each target for a minute on its corpus ----
# make test runs the targets with the mutator of tests/fuzz/driver.c, which gcc alone can build.
.PHONY: fuzz fuzz-targets
fuzz:
	@command -v clang >/dev/null || { echo "quern: make fuzz needs clang with libFuzzer" \
	  "(Debian: apt-get install clang libclang-rt-14-dev libomp-dev)" >&2; exit 2; }
	+@$(MAKE) --no-print-directory BUILD=$(BUILD)/libfuzzer CC=clang \
	  OPT="-O1 -g $(ARCH_FLAGS)" SAN="-fsanitize=fuzzer-no-link,address,undefined" fuzz-targets
	@tests/fuzz/run $(BUILD)/libfuzzer/fuzz
fuzz-targets: $(FUZZERS)
