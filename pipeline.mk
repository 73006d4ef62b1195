# The run: what is made from what. mk/pipeline calls it inside quern-fleet, so that the queue and the
# evaluators are there. Every target is an artifact below RUNS/RUN.
#
#   collect -> filter -> sft -> selfsup (rounds) -> crl (rounds) -> best on every device class -> report
#
# SETTINGS is a file that quern-config prints: the values of all settings, checked, in upper case; what
# follows from them, in lower case; and a stamp for each stage, the text of the settings that it depends on.

.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += -rR --no-print-directory
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
# Threads that wait must not take a core from the evaluators.
export OMP_WAIT_POLICY := passive

BUILD ?= build
MK ?= mk
$(if $(SETTINGS),,$(error pipeline.mk needs SETTINGS=FILE, which quern-config prints: use make crl))
include $(SETTINGS)

comma := ,
space := $(empty) $(empty)
by_comma = $(subst $(space),$(comma),$(strip $(1)))
quoted = '$(subst ','\'',$(1))'
path = $(if $(findstring $(space),$(1)),$(call quoted,$(1)),$(1))
R := $(RUNS)/$(RUN)
B := $(call path,$(BUILD)/bin)
run = @$(call path,$(MK)/run) $(R)/log/$(subst /,-,$(patsubst $(R)/%,%,$(basename $@))).log
# The page so far, and the values of each step, after every round. A failure of it stops nothing.
live = @{ $(B)/quern-report --live --output $(R); $(B)/quern-metrics --steps $(R); } || true
tasks := $(if $(filter all,$(TASKS)),,--tasks $(call quoted,$(TASKS)))

# For mk/pipeline: what the fleet needs.
$(if $(ASK),$(info $(RUN))$(info $(R))$(info $(call by_comma,$(local_devices)))$(info $(found_gpus)))

# ---- stamps: a changed setting is seen when make reads this file, so that make -n and -q tell the truth ----
# Every setting that a recipe uses is in a stamp that its target depends on, directly or by what it is made
# from. Not so, by design: where things are, $(memory), and which class brings its own evaluator. No stage's
# own number of rounds is in its stamp: more rounds go on from those that are there. Stage 3 starts from the
# last round of stage 2, so the number of those is in its stamp.
define stamp
ifneq ($$(strip $$(file <$(R)/cfg/$(1))),$$(stamp_$(1)))
$(R)/cfg/$(1): FORCE
endif
$(R)/cfg/$(1): ; @mkdir -p $$(@D); printf '%s\n' $$(call quoted,$$(stamp_$(1))) >$$@.tmp && mv $$@.tmp $$@
endef
FORCE: ;
$(foreach s,tasks collect device sft selfsup crl report,$(eval $(call stamp,$(s))))

.PHONY: collect sft selfsup crl
crl: $(R)/report.html

# ---- verdicts: one rule for every samples artifact; a round's are below ----
# The inputs of the judgements follow from a seed that nobody knows before: the file is made with a random one
# at the first start and stays. It is in no argument list, log or prompt. A SECRET, for tests and repetitions,
# is in them.
contents := $(if $(SECRET),--seed $(SECRET),--seed-file $(R)/cfg/secret)
%/verdicts.qa: %/samples.qa $(R)/cfg/device
	$(run) $(B)/quern-evaluate $< --output $@ $(contents) --device $(device)

# ---- what prompts in English say: the limits of the device, and the time of each baseline ----
$(R)/baselines/samples.qa: $(R)/cfg/tasks
	$(run) $(B)/quern-pool --best $(if $(facts_file),$(taught_tasks),$(tasks)) --output $@
baselines := $(R)/baselines/verdicts.qa
asked := $(filter openai:% anthropic:% file:%,$(subst $(comma),$(space),$(TEACHERS)))
facts_file := $(if $(filter full,$(STYLE)),$(baselines))
facts := $(if $(facts_file),--device $(device) --baselines $(facts_file))

# ---- what endpoints may cost, and what they have cost; BUDGET's time ends every program ----
spend := --ledger $(R)/spent.tsv $(if $(BUDGET),--budget $(call quoted,$(BUDGET)))
ifneq ($(budget_seconds),)
export QUERN_DEADLINE := $(shell echo $$(($$(date +%s) + $(budget_seconds))))
endif

# ---- stage 1; with STAGE1=0 it has no samples, and its model is the checkpoint ----
skipped := $(filter 0,$(STAGE1))
withhold := $(if $(filter 1,$(WITHHOLD)),--withhold)
collect: $(R)/collect/verdicts.qa
$(R)/collect/samples.qa: $(R)/cfg/collect $(R)/cfg/tasks $(if $(asked),$(baselines)) | $(R)/cfg/device
	$(run) $(B)/quern-collect --output $@ $(tasks) --teachers $(teachers) \
	  --trials $(if $(skipped),0,$(TRIALS)) --keep $(KEEP) $(if $(asked),$(spend)) \
	  --mistakes $(MISTAKES) $(withhold) --device $(device) $(contents:--seed%=--eval-seed%) \
	  $(if $(asked),--baselines $(baselines)) --seed $(SEED)

# With WIDE: a few kernels for each of those tasks, which stage 1 learns from. With SELFSUP_WIDE_ASK or
# WIDE_ASK the rounds of stage 2 or 3 ask some of them beside TASKS, each round others, and the pools have
# their kernels. What is reported is of TASKS alone.
wide := $(if $(skipped),,$(WIDE))
taught := $(if $(wide),taught,collect)
taught_tasks := $(if $(wide),--tasks $(call quoted,$(TASKS)$(comma)$(WIDE)),$(tasks))
wide_ask := $(if $(wide),$(filter-out 0,$(SELFSUP_WIDE_ASK) $(WIDE_ASK)))
round_tasks := $(if $(wide_ask),$(taught_tasks),$(tasks))
wide_flags = --wide $(call quoted,$(WIDE)) --wide-ask $(1) --wide-copies $(WIDE_COPIES)
ask_wide = $(if $(wide),$(if $(filter-out 0,$(1)), $(wide_flags)))
$(R)/wide/samples.qa: $(R)/cfg/collect $(R)/cfg/tasks | $(R)/cfg/device
	$(run) $(B)/quern-collect --output $@ --tasks $(call quoted,$(WIDE)) --teachers template \
	  --trials $$((2 * $(WIDE_KEEP))) \
	  --keep $(WIDE_KEEP) --mistakes $(MISTAKES) $(withhold) --device $(device) \
	  $(contents:--seed%=--eval-seed%) --seed $(SEED)
$(R)/taught/samples.qa $(R)/taught/verdicts.qa: $(R)/taught/%.qa: $(R)/collect/%.qa $(R)/wide/%.qa
	$(run) $(B)/quern-join --output $@ $^

$(R)/sft/dataset.qa: $(R)/$(taught)/samples.qa $(R)/$(taught)/verdicts.qa $(R)/cfg/sft $(facts_file)
	$(run) $(B)/quern-filter --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ $(taught_tasks) \
	  --contrastive $(CONTRASTIVE) --drills $(DRILLS) --corrections $(CORRECTIONS) --style $(STYLE) \
	  $(facts) $(if $(skipped),--empty) --seed $(SEED)

sft: $(if $(trained),$(R)/sft/model/manifest.qa,$(R)/sft/dataset.qa)
$(R)/sft/model/manifest.qa: $(R)/sft/dataset.qa $(R)/cfg/sft
	$(run) $(B)/quern-sft --dataset $< --output $(@D) $(base) $(SMALL_MODEL) $(SFT) $(training) \
	  $(memory) --seed $(SEED)

$(R)/collect/pool.qa: $(R)/collect/samples.qa $(R)/collect/verdicts.qa
	$(run) $(B)/quern-pool --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ --stage collect
	$(live)
first_pool := $(R)/$(if $(wide_ask),$(taught),collect)/pool.qa
$(R)/taught/pool.qa: $(R)/taught/samples.qa $(R)/taught/verdicts.qa
	$(run) $(B)/quern-pool --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ --stage collect
	$(live)

# With WITHHOLD=1: what the whole grammar reaches at as many trials, where the teacher has kept its fast
# designs. The gap closed is between both (stages/data/gap.h).
$(R)/full/samples.qa: $(R)/cfg/collect $(R)/cfg/tasks | $(R)/cfg/device
	$(run) $(B)/quern-collect --output $@ $(tasks) --teachers template --trials $(TRIALS) --keep $(KEEP) \
	  --mistakes $(MISTAKES) \
	  --withheld --device $(device) $(contents:--seed%=--eval-seed%) --seed $(SEED)
$(R)/full/pool.qa: $(R)/full/samples.qa $(R)/full/verdicts.qa
	$(run) $(B)/quern-pool --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ --stage full
full_pool := $(if $(withhold),$(if $(skipped),,$(R)/full/pool.qa))
gap := $(if $(full_pool),--teacher $(R)/collect/pool.qa --full $(full_pool))
gap_pools := $(if $(full_pool),$(R)/collect/pool.qa $(full_pool))

# ---- rounds, and the report ----
include $(subst $(space),\ ,$(MK))/rounds.mk
include $(subst $(space),\ ,$(MK))/report.mk
