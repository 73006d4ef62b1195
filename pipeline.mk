# The run: what is made from what. mk/pipeline calls it inside quern-fleet, so that the queue and the
# evaluators are there. Every target is an artifact below RUNS/RUN.
#
#   collect -> filter -> sft -> selfsup (rounds) -> crl (rounds) -> best on every device class -> report
#
# SETTINGS is a file that quern-config prints: the values of all settings, checked, in upper case; what
# follows from them, in lower case; a stamp for each stage, the text of the settings that it depends on; and
# the rules of the rounds and of what the report compares, one a step (stages/settings/rules_*.c). A step is
# called as its log is: crl-3-samples makes crl/3/samples.qa.

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
.PHONY: collect sft selfsup crl FORCE
crl:
include $(SETTINGS)

comma := ,
space := $(empty) $(empty)
by_comma = $(subst $(space),$(comma),$(strip $(1)))
quoted = '$(subst ','\'',$(1))'
# What a shell does not take as it is. A single $ comes from SETTINGS and from mk/pipeline as $$.
marks := ( ) ' " ; & $$ \ ` * ? [ ] < > | ! { } ~ \#
marked = $(findstring $(space),$(1))$(strip $(foreach m,$(marks),$(findstring $(m),$(1))))
path = $(if $(marked),$(call quoted,$(1)),$(1))
R := $(RUNS)/$(RUN)
B := $(call path,$(BUILD)/bin)
run = @$(call path,$(MK)/run) $(R)/log/$(subst /,-,$(patsubst $(R)/%,%,$(basename $@))).log
# The page so far, and the values of each step, after every round. A failure of it stops nothing.
live = @{ $(B)/quern-report --live --output $(R); $(B)/quern-metrics --steps $(R); } || true
tasks := $(if $(filter all,$(TASKS)),,--tasks $(call quoted,$(TASKS)))

# What an experiment may replace: where the samples of TEACHERS go, the flags of their collection, the tasks
# that samples may be of, and the programs that write prompts, answer and update in the rounds.
own := collect
collect_flags :=
known_tasks := $(tasks)
prompt := quern-prompt
answer := quern-sample
update := quern-crl
ifneq ($(lab),)
include $(subst $(space),\ ,$(MK))/../lab/lab.mk
endif

# For mk/pipeline: what the fleet needs.
$(if $(ASK),$(info $(RUN))$(info $(R))$(info $(call by_comma,$(local_devices)))$(info $(found_gpus)))

# What is up to date is decided by content: mk/run notes what a target was made from, mk/settle sets the times
# that Make compares.
export made_of = $@: $^
$(if $(wildcard $(R)/cfg/from/*),$(shell $(call path,$(MK)/settle) $(R) $(B)))

# ---- stamps: a changed setting is seen when make reads this file, so that make -n and -q tell the truth ----
# Every setting that a recipe uses is in a stamp that its target depends on, directly or by what it is made
# from. Not so, by design: where things are, $(memory), and which class brings its own evaluator. No stage's
# own number of rounds is in its stamp: more rounds go on from those that are there. Stage 3 starts from the
# last round of stage 2, so the number of those is in its stamp.
stamps := tasks collect device sft selfsup crl report $(lab_stamps)
same = $(and $(findstring x$(1)x,x$(2)x),$(findstring x$(2)x,x$(1)x))
changed := $(foreach s,$(stamps),$(if $(call same,$(strip $(file <$(R)/cfg/$(s))),$(stamp_$(s))),,$(s)))
$(changed:%=$(R)/cfg/%): FORCE
$(stamps:%=$(R)/cfg/%):
	@mkdir -p $(@D); printf '%s\n' $(call quoted,$(stamp_$(@F))) >$@.tmp && mv $@.tmp $@

# ---- verdicts ----
# The inputs of the judgements follow from a seed that nobody knows before: the file is made with a random one
# at the first start and stays. It is in no argument list, log or prompt. A SECRET, for tests and repetitions,
# is in them.
contents := $(if $(SECRET),--seed $(SECRET),--seed-file $(R)/cfg/secret)
judge = $(run) $(B)/quern-evaluate $< --output $@ $(contents) --device $(device)
$(R)/baselines/verdicts.qa: $(R)/baselines/samples.qa $(R)/cfg/device
	$(judge)
$(R)/$(own)/verdicts.qa: $(R)/$(own)/samples.qa $(R)/cfg/device
	$(judge)

# ---- what prompts in English say: the limits of the device, and the time of each baseline ----
$(R)/baselines/samples.qa: $(R)/cfg/tasks
	$(run) $(B)/quern-pool --best $(if $(facts_file),$(known_tasks),$(tasks)) --output $@
baselines := $(R)/baselines/verdicts.qa
asked := $(filter openai:% anthropic:% file:%,$(subst $(comma),$(space),$(TEACHERS)))
facts := $(if $(facts_file),--device $(device) --baselines $(facts_file))

# ---- what endpoints may cost, and what they have cost; BUDGET's time ends every program ----
spend := --ledger $(R)/spent.tsv $(if $(BUDGET),--budget $(call quoted,$(BUDGET)))
asks := $(endpoint) $(spend)
ifneq ($(budget_seconds),)
export QUERN_DEADLINE := $(shell echo $$(($$(date +%s) + $(budget_seconds))))
endif

# ---- stage 1; with TEACHERS=none it has no samples, and its model is the checkpoint ----
skipped := $(filter none,$(TEACHERS))
collect: $(R)/collect/verdicts.qa
$(R)/$(own)/samples.qa: $(R)/cfg/collect $(R)/cfg/tasks $(if $(asked),$(baselines)) | $(R)/cfg/device
	$(run) $(B)/quern-collect --output $@ $(tasks) \
	  $(if $(skipped),--trials 0,--teachers $(teachers) $(COLLECT) $(collect_flags)) \
	  $(if $(asked),$(spend)) --device $(device) $(contents:--seed%=--eval-seed%) \
	  $(if $(asked),--baselines $(baselines)) --seed $(SEED)

$(R)/sft/dataset.qa: $(R)/collect/samples.qa $(R)/collect/verdicts.qa $(R)/cfg/sft $(facts_file)
	$(run) $(B)/quern-filter --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ $(known_tasks) \
	  $(FILTER) --style $(STYLE) $(facts) $(if $(skipped),--empty) --seed $(SEED)

sft: $(if $(trained),$(R)/sft/model/manifest.qa,$(R)/sft/dataset.qa)
$(R)/sft/model/manifest.qa: $(R)/sft/dataset.qa $(R)/cfg/sft
	$(run) $(B)/quern-sft --dataset $< --output $(@D) $(base) $(SMALL_MODEL) $(SFT) $(training) \
	  $(memory) --seed $(SEED)

$(R)/collect/pool.qa: $(R)/collect/samples.qa $(R)/collect/verdicts.qa
	$(run) $(B)/quern-pool --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ --stage collect
	$(live)
$(R)/collect/hacks.qa: $(R)/collect/samples.qa $(R)/collect/verdicts.qa
	$(run) $(B)/quern-hacks --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@

# ---- stages 2 and 3: SETTINGS has the rules of the rounds ----
selfsup: $(selfsup_end)

# ---- what the report compares: each stage's final model, with the same prompts and number of samples ----
$(R)/report/prompts.qa: $(R)/cfg/report $(R)/cfg/tasks $(facts_file)
	$(run) $(B)/quern-prompt --output $@ $(tasks) --stage report --groups 1 --heldout --style $(STYLE) \
	  $(facts) --seed $(SEED)

# ---- the best of the run, and every baseline, on every class; a simulated one brings its evaluator ----
# Where times are measured, the score that made a kernel the best of many is too high by luck, and its inputs
# may have been kind to it. So the report has a judgement that did not choose it, on other inputs.
again := --again
$(R)/best/samples.qa: $(R)/report/crl/pool.qa $(R)/cfg/tasks
	$(run) $(B)/quern-pool --best --pool $< $(tasks) --output $@
$(R)/best/results.qa: $(R)/best/samples.qa $(class_files) $(R)/cfg/report
	$(run) $(B)/quern-results --samples $< $(tasks) --output $@ $(class_files)

# The best of each stage's samples are judged again too, where the run was judged.
compared := $(R)/report/sft $(R)/report/selfsup $(R)/report/crl
pair = $(1)/samples.qa:$(1)/verdicts.qa
$(R)/best/again/samples.qa: $(R)/report/crl/pool.qa $(compared:%=%/verdicts.qa) $(R)/cfg/tasks
	$(run) $(B)/quern-pool --best --pool $< \
	  --sets $(call by_comma,$(foreach d,$(compared),$(call pair,$(d)))) $(tasks) --output $@
$(R)/best/again/verdicts.qa: $(R)/best/again/samples.qa $(R)/cfg/device
	$(run) $(B)/quern-evaluate $< --output $@ $(contents) $(again) --device $(device)

# ---- the report ----
# All else is finished by now: what a kill -9 left between a commit and its clean-up is removed first. The run
# of a folder below this one (RUN=x/y), which has a cfg/, may be going on.
crl: $(R)/report.html
$(R)/report.html: $(R)/best/results.qa $(R)/report/crl/pool.qa $(R)/best/again/verdicts.qa \
  $(compared:%=%/verdicts.qa) $(crl_manifest) $(figures) $(hacks)
	@find $(R) -mindepth 1 \( -name queue -o -type d -exec test -d {}/cfg \; \) -prune -o \
	  \( -name '*.journal' -o -name '*.tmp.*' -o -name '*.checkpoint*' -o -name '*.trainer' \) -prune \
	  -exec rm -rf {} +
	$(run) $(B)/quern-report --output $(R)
