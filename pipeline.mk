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
export OMP_WAIT_POLICY ?= passive

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
# Every setting that a recipe uses is in a stamp that its target depends on, directly or by what it is made from.
# Not so, by design: where things are, $(memory), and which class brings its own evaluator. No stage's own number of
# rounds is in its stamp: more rounds go on from those that are there. Stage 3 starts from the last round of stage 2,
# so the number of those is in its stamp.
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
# The inputs of the judgements follow from a seed that nobody knows before: the file is made with a random one at the
# first start and stays. It is in no argument list, log or prompt. A SECRET, for tests and repetitions, is in them.
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
	$(run) $(B)/quern-collect --output $@ $(tasks) --teachers $(teachers) --trials $(if $(skipped),0,$(TRIALS)) --keep $(KEEP) $(if $(asked),$(spend)) \
	  --mistakes $(MISTAKES) $(withhold) --device $(device) $(contents:--seed%=--eval-seed%) $(if $(asked),--baselines $(baselines)) --seed $(SEED)

# With WIDE: a few kernels for each of those tasks, which stage 1 learns from. With SELFSUP_WIDE_ASK or WIDE_ASK the
# rounds of stage 2 or 3 ask some of them beside TASKS, each round others, and the pools have their kernels. What is
# reported is of TASKS alone.
wide := $(if $(skipped),,$(WIDE))
taught := $(if $(wide),taught,collect)
taught_tasks := $(if $(wide),--tasks $(call quoted,$(TASKS)$(comma)$(WIDE)),$(tasks))
wide_ask := $(if $(wide),$(filter-out 0,$(SELFSUP_WIDE_ASK) $(WIDE_ASK)))
round_tasks := $(if $(wide_ask),$(taught_tasks),$(tasks))
ask_wide = $(if $(wide),$(if $(filter-out 0,$(1)), --wide $(call quoted,$(WIDE)) --wide-ask $(1) --wide-copies $(WIDE_COPIES)))
$(R)/wide/samples.qa: $(R)/cfg/collect $(R)/cfg/tasks | $(R)/cfg/device
	$(run) $(B)/quern-collect --output $@ --tasks $(call quoted,$(WIDE)) --teachers template --trials $$((2 * $(WIDE_KEEP))) \
	  --keep $(WIDE_KEEP) --mistakes $(MISTAKES) $(withhold) --device $(device) $(contents:--seed%=--eval-seed%) --seed $(SEED)
$(R)/taught/samples.qa $(R)/taught/verdicts.qa: $(R)/taught/%.qa: $(R)/collect/%.qa $(R)/wide/%.qa
	$(run) $(B)/quern-join --output $@ $^

$(R)/sft/dataset.qa: $(R)/$(taught)/samples.qa $(R)/$(taught)/verdicts.qa $(R)/cfg/sft $(facts_file)
	$(run) $(B)/quern-filter --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ $(taught_tasks) \
	  --contrastive $(CONTRASTIVE) --drills $(DRILLS) --corrections $(CORRECTIONS) --style $(STYLE) $(facts) $(if $(skipped),--empty) --seed $(SEED)

sft: $(if $(trained),$(R)/sft/model/manifest.qa,$(R)/sft/dataset.qa)
$(R)/sft/model/manifest.qa: $(R)/sft/dataset.qa $(R)/cfg/sft
	$(run) $(B)/quern-sft --dataset $< --output $(@D) $(base) $(SMALL_MODEL) $(SFT) $(training) $(memory) --seed $(SEED)

$(R)/collect/pool.qa: $(R)/collect/samples.qa $(R)/collect/verdicts.qa
	$(run) $(B)/quern-pool --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ --stage collect
	$(live)
first_pool := $(R)/$(if $(wide_ask),$(taught),collect)/pool.qa
$(R)/taught/pool.qa: $(R)/taught/samples.qa $(R)/taught/verdicts.qa
	$(run) $(B)/quern-pool --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ --stage collect
	$(live)

# With WITHHOLD=1: what the whole grammar reaches at as many trials, where the teacher has kept its fast designs. The
# gap closed is between both (stages/data/gap.h).
$(R)/full/samples.qa: $(R)/cfg/collect $(R)/cfg/tasks | $(R)/cfg/device
	$(run) $(B)/quern-collect --output $@ $(tasks) --teachers template --trials $(TRIALS) --keep $(KEEP) --mistakes $(MISTAKES) \
	  --withheld --device $(device) $(contents:--seed%=--eval-seed%) --seed $(SEED)
$(R)/full/pool.qa: $(R)/full/samples.qa $(R)/full/verdicts.qa
	$(run) $(B)/quern-pool --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ --stage full
full_pool := $(if $(withhold),$(if $(skipped),,$(R)/full/pool.qa))
gap := $(if $(full_pool),--teacher $(R)/collect/pool.qa --full $(full_pool))
gap_pools := $(if $(full_pool),$(R)/collect/pool.qa $(full_pool))

# ---- rounds: selfsup/N and crl/N; round 0 is what the stage starts from ----
prev = $(word $(1),0 $(numbers))
# The model of round N of a stage, and the pool after that round.
selfsup_model = $(if $(filter 0,$(1)),$(R)/sft/model,$(R)/selfsup/$(1)/model)
# UPDATE=none and UPDATE=template leave the model of stage 3 as it is.
updates := $(filter learn sft,$(UPDATE))
crl_model = $(if $(and $(updates),$(filter-out 0,$(1))),$(R)/crl/$(1)/model,$(call selfsup_model,$(SELFSUP_ROUNDS)))
selfsup_pool = $(if $(filter 0,$(1)),$(first_pool),$(R)/selfsup/$(1)/pool.qa)
crl_pool = $(if $(filter 0,$(1)),$(call selfsup_pool,$(SELFSUP_ROUNDS)),$(R)/crl/$(1)/pool.qa)
last_model := $(call crl_model,$(ROUNDS))
# What answers: the model itself, or the endpoint with the model as its adapter. An endpoint alone is sampled as it
# is, and only prompts and pool change between rounds.
policy = $(if $(endpoint),$(endpoint) $(spend)$(if $(PRICE), --price $(PRICE))$(if $(trained), --adapter $(1)),$(1) $(engine))
manifest = $(if $(trained),$(1)/manifest.qa)
# The eight rounds before round $(1), oldest first. Stage 2 learns from their kernels; stage 3 has their rewards in
# its statistics, each at half the weight of the next, so that older ones do not matter.
before = $(wordlist $(words x $(wordlist 9,$(call prev,$(1)),$(numbers))),$(call prev,$(1)),$(numbers))
pairs = $(call by_comma,$(foreach d,$(1),$(d)/samples.qa:$(d)/verdicts.qa))
history = $(call pairs,$(addprefix $(R)/$(1)/,$(call before,$(2))))

.SECONDEXPANSION:

# What answers a round's prompts: the model of the round before. With UPDATE=template or sft it is the template teacher,
# whatever the prompts show.
sampled = $(B)/quern-sample --policy $(call policy,$(call $(1)_model,$(call prev,$*)))
length := --max-new $(MAX_NEW) --batch $(BATCH)
searched := $(filter template sft,$(UPDATE))
selfsup_ask = $(call sampled,selfsup)
selfsup_length := $(length)
crl_ask = $(if $(searched),$(B)/quern-search $(round_tasks) $(withhold),$(call sampled,crl))
crl_length := $(if $(searched),,$(length))
crl_searched := $(searched)
crl_rule := $(if $(RULE),--rule $(RULE))
# The figures of a round count the wide tasks by themselves.
counted := $(if $(wide_ask),--tasks $(call quoted,$(TASKS)))
# With TURNS above 1 the answers to a round's prompts are in crl/N/turn-1/, and crl/N/ has those of all turns.
later_turns := $(wordlist 2,$(TURNS),$(turns))
crl_first := $(if $(later_turns),turn-1/)
crl_reviews := $(R)/crl/%/reviews.qa

# What a round of stage $(1) has; $(2) is the prefix of its settings. The update of the model is each stage's own.
define round_rules
$($(1)_rounds:%=$(R)/$(1)/%/prompts.qa): $(R)/$(1)/%/prompts.qa: $$$$(call $(1)_pool,$$$$(call prev,$$$$*)) $(R)/cfg/$(1) $(R)/cfg/tasks $(facts_file)
	$$(run) $(B)/quern-prompt --output $$@ --pool $$< $$(tasks) --stage $(1)-$$* --groups $$($(2)GROUPS) \
	  --plain $$($(2)PLAIN) $$(EXEMPLARS) $$($(1)_rule)$$(call ask_wide,$$($(2)WIDE_ASK)) --style $$(STYLE) $$(facts) --seed $$(SEED)

$($(1)_rounds:%=$(R)/$(1)/%/$($(1)_first)samples.qa): $(R)/$(1)/%/$($(1)_first)samples.qa: $(R)/$(1)/%/prompts.qa \
  $$$$(call manifest,$$$$(call $(1)_model,$$$$(call prev,$$$$*))) $(R)/cfg/$(1)
	$$(run) $$($(1)_ask) --prompts $$< --output $$@ --stage $(1)-$$* --copies $$($(2)COPIES) $$($(1)_length) --seed $$(SEED)

# The pool before a round tells which of its scores are records (docs/gpu-verdict.md).
$($(1)_rounds:%=$(R)/$(1)/%/$($(1)_first)verdicts.qa): $(R)/$(1)/%/$($(1)_first)verdicts.qa: $(R)/$(1)/%/$($(1)_first)samples.qa \
  $$$$(call $(1)_pool,$$$$(call prev,$$$$*)) $(R)/cfg/device
	$$(run) $(B)/quern-evaluate $$< --output $$@ $$(contents) --best $$(word 2,$$^) --device $$(device)

$($(1)_rounds:%=$(R)/$(1)/%/pool.qa): $(R)/$(1)/%/pool.qa: $(R)/$(1)/%/samples.qa $(R)/$(1)/%/verdicts.qa \
  $$$$(call $(1)_pool,$$$$(call prev,$$$$*)) $(R)/$(1)/%/prompts.qa $($(1)_reviews)
	$$(run) $(B)/quern-pool --pool $$(word 3,$$^) --samples $$(word 1,$$^) --verdicts $$(word 2,$$^) --output $$@ \
	  --stage $(1) --round $$* $(if $($(1)_searched),,--prompts $$(word 4,$$^)) $(if $($(1)_reviews),--reviews $$(word 5,$$^))
	$$(live)

# Success, scores, and how often the model's comparisons are right.
$($(1)_rounds:%=$(R)/$(1)/%/metrics.qa): $(R)/$(1)/%/metrics.qa: $(R)/$(1)/%/samples.qa $(R)/$(1)/%/verdicts.qa $$(gap_pools) $(if $(wide_ask),$(R)/cfg/tasks)
	$$(run) $(B)/quern-figures --samples $$(word 1,$$^) --verdicts $$(word 2,$$^) --output $$@ $$(gap) $$(counted) --round $$*
endef
$(eval $(call round_rules,selfsup,SELFSUP_))
$(eval $(call round_rules,crl,))

# The memory of hacks after each round, and the reviews of a round's records, which may withhold their rewards.
crl_hacks = $(if $(filter 0,$(1)),$(R)/collect/hacks.qa,$(R)/crl/$(1)/hacks.qa)
$(R)/collect/hacks.qa: $(R)/collect/samples.qa $(R)/collect/verdicts.qa
	$(run) $(B)/quern-hacks --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@
$(crl_rounds:%=$(R)/crl/%/hacks.qa): $(R)/crl/%/hacks.qa: $(R)/crl/%/samples.qa $(R)/crl/%/verdicts.qa \
  $$(call crl_hacks,$$(call prev,$$*))
	$(run) $(B)/quern-hacks --samples $(word 1,$^) --verdicts $(word 2,$^) --hacks $(word 3,$^) --output $@
$(crl_rounds:%=$(R)/crl/%/reviews.qa): $(R)/crl/%/reviews.qa: $(R)/crl/%/samples.qa $(R)/crl/%/verdicts.qa \
  $$(call crl_pool,$$(call prev,$$*)) $$(call crl_hacks,$$(call prev,$$*)) $(R)/cfg/crl
	$(run) $(B)/quern-review --samples $(word 1,$^) --verdicts $(word 2,$^) --pool $(word 3,$^) --hacks $(word 4,$^) \
	  --output $@ $(round_tasks) --judge $(JUDGE) $(if $(filter-out none,$(JUDGE)),$(spend)) --device $(device) \
	  $(contents:--seed%=--eval-seed%)

# Turn $(1) of stage 3's rounds, after turn $(2): the verdicts go back, and each is answered once.
define turn_rules
$(crl_rounds:%=$(R)/crl/%/turn-$(1)/prompts.qa): $(R)/crl/%/turn-$(1)/prompts.qa: $(R)/crl/%/turn-$(2)/samples.qa \
  $(R)/crl/%/turn-$(2)/verdicts.qa $(R)/cfg/crl $(R)/cfg/tasks $(facts_file)
	$$(run) $(B)/quern-refine --samples $$(word 1,$$^) --verdicts $$(word 2,$$^) --output $$@ --turn $(1) $$(round_tasks) \
	  --style $$(STYLE) $$(facts)

$(crl_rounds:%=$(R)/crl/%/turn-$(1)/samples.qa): $(R)/crl/%/turn-$(1)/samples.qa: $(R)/crl/%/turn-$(1)/prompts.qa \
  $$$$(call manifest,$$$$(call crl_model,$$$$(call prev,$$$$*))) $(R)/cfg/crl
	$$(run) $$(crl_ask) --prompts $$< --output $$@ --stage crl-$$* --copies 1 $$(crl_length) --seed $$(SEED)

$(crl_rounds:%=$(R)/crl/%/turn-$(1)/verdicts.qa): $(R)/crl/%/turn-$(1)/verdicts.qa: $(R)/crl/%/turn-$(1)/samples.qa \
  $$$$(call crl_pool,$$$$(call prev,$$$$*)) $(R)/cfg/device
	$$(run) $(B)/quern-evaluate $$< --output $$@ $$(contents) --best $$(word 2,$$^) --device $$(device)
endef
# All turns of a round, the first one first: $(1) is samples or verdicts.
define join_rule
$(crl_rounds:%=$(R)/crl/%/$(1).qa): $(R)/crl/%/$(1).qa: $(foreach t,$(turns),$(R)/crl/%/turn-$(t)/$(1).qa)
	$$(run) $(B)/quern-join --output $$@ $$^
endef
$(foreach t,$(later_turns),$(eval $(call turn_rules,$(t),$(word $(t),0 $(turns)))))
$(if $(later_turns),$(foreach a,samples verdicts,$(eval $(call join_rule,$(a)))))

# Stage 2
selfsup: $(if $(trained),$(call selfsup_model,$(SELFSUP_ROUNDS))/manifest.qa,$(call selfsup_pool,$(SELFSUP_ROUNDS))) $(full_pool)
$(selfsup_rounds:%=$(R)/selfsup/%/model/manifest.qa): $(R)/selfsup/%/model/manifest.qa: $(R)/selfsup/%/samples.qa \
  $(R)/selfsup/%/verdicts.qa $$(call selfsup_model,$$(call prev,$$*))/manifest.qa $(R)/sft/dataset.qa $(R)/cfg/selfsup
	$(run) $(B)/quern-selfsup --base $(call selfsup_model,$(call prev,$*)) --samples $(word 1,$^) --verdicts $(word 2,$^) \
	  --history "$(call history,selfsup,$*)" --rehearse $(R)/sft/dataset.qa --output $(@D) $(SELFSUP) $(training) \
	  $(memory) --seed $(SEED)

# Stage 3
ifeq ($(UPDATE),sft)
# More of stage 1: the template teacher's kernels of the round, as examples.
$(crl_rounds:%=$(R)/crl/%/dataset.qa): $(R)/crl/%/dataset.qa: $(R)/crl/%/samples.qa $(R)/crl/%/verdicts.qa $(facts_file)
	$(run) $(B)/quern-filter --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ $(round_tasks) \
	  --contrastive $(CONTRASTIVE) --drills $(DRILLS) --corrections $(CORRECTIONS) --style $(STYLE) $(facts) --seed $(SEED)
$(crl_rounds:%=$(R)/crl/%/model/manifest.qa): $(R)/crl/%/model/manifest.qa: $(R)/crl/%/dataset.qa \
  $$(call crl_model,$$(call prev,$$*))/manifest.qa $(R)/cfg/crl
	$(run) $(B)/quern-sft --dataset $< --base $(call crl_model,$(call prev,$*)) --output $(@D) $(SFT) $(training) \
	  $(memory) --seed $(SEED)
else
$(crl_rounds:%=$(R)/crl/%/model/manifest.qa): $(R)/crl/%/model/manifest.qa: $(R)/crl/%/samples.qa \
  $(R)/crl/%/verdicts.qa $$(call crl_model,$$(call prev,$$*))/manifest.qa $(crl_reviews) $(R)/cfg/crl
	$(run) $(B)/quern-crl --base $(call crl_model,$(call prev,$*)) --samples $(word 1,$^) --verdicts $(word 2,$^) \
	  --output $(@D) --reviews $(word 4,$^) --history "$(call history,crl,$*)" --reference $(call selfsup_model,$(SELFSUP_ROUNDS)) $(CRL) \
	  $(training) $(memory) --seed $(SEED)
endif

# ---- what the report compares: the same prompts and the same number of samples for each stage's final model ----
stages := sft selfsup crl
sft_final := $(R)/sft/model
selfsup_final := $(call selfsup_model,$(SELFSUP_ROUNDS))
crl_final := $(last_model)
$(R)/report/prompts.qa: $(R)/cfg/report $(R)/cfg/tasks $(facts_file)
	$(run) $(B)/quern-prompt --output $@ $(tasks) --stage report --groups 1 --heldout --style $(STYLE) $(facts) --seed $(SEED)

# A program that samples or trains a checkpoint takes the memory that is free (docs/model.md), and a second one would
# find too little. So these wait for the rounds and for each other.
wait_sft := $(if $(updates),$(last_model)/manifest.qa,$(call crl_pool,$(ROUNDS)))
wait_selfsup := $(R)/report/sft/samples.qa
wait_crl := $(R)/report/selfsup/samples.qa
$(stages:%=$(R)/report/%/samples.qa): $(R)/report/%/samples.qa: $(R)/report/prompts.qa \
  $$(call manifest,$$($$*_final)) $(R)/cfg/report | $$(if $$(endpoint),,$$(if $$(checkpoint),$$(wait_$$*)))
	$(run) $(B)/quern-sample --policy $(call policy,$($*_final)) --prompts $< --output $@ --stage $* \
	  --copies $(REPORT_SAMPLES) --max-new $(MAX_NEW) --batch $(BATCH) --seed $(SEED)

# With HELDOUT_EVERY: the heldout tasks by the model of a round between, report/STAGE-N; for the curves alone.
heldout := $(if $(trained),$(selfsup_heldout:%=selfsup-%) $(if $(updates),$(crl_heldout:%=crl-%)))
model_of = $(call $(firstword $(subst -, ,$(1)))_model,$(lastword $(subst -, ,$(1))))
# The one before, or the last of the stages: a checkpoint's samples wait for each other.
heldout_pairs := $(join $(heldout),$(addprefix |,crl $(heldout)))
heldout_after = $(patsubst $(1)|%,%,$(filter $(1)|%,$(heldout_pairs)))
$(R)/report/heldout.qa: $(R)/cfg/report $(R)/cfg/tasks $(facts_file)
	$(run) $(B)/quern-prompt --output $@ $(tasks) --stage heldout --groups 1 --heldout-only --style $(STYLE) $(facts) --seed $(SEED)
$(heldout:%=$(R)/report/%/samples.qa): $(R)/report/%/samples.qa: $(R)/report/heldout.qa $$(call model_of,$$*)/manifest.qa \
  $(R)/cfg/report | $$(if $$(endpoint),,$$(if $$(checkpoint),$(R)/report/$$(call heldout_after,$$*)/samples.qa))
	$(run) $(B)/quern-sample --policy $(call policy,$(call model_of,$*)) --prompts $< --output $@ --stage $* \
	  --copies $(REPORT_SAMPLES) --max-new $(MAX_NEW) --batch $(BATCH) --seed $(SEED)

# The pool of the whole run, with the report's samples.
$(R)/report/sft/pool.qa: $(R)/report/sft/samples.qa $(R)/report/sft/verdicts.qa $(call crl_pool,$(ROUNDS))
$(R)/report/selfsup/pool.qa: $(R)/report/selfsup/samples.qa $(R)/report/selfsup/verdicts.qa $(R)/report/sft/pool.qa
$(R)/report/crl/pool.qa: $(R)/report/crl/samples.qa $(R)/report/crl/verdicts.qa $(R)/report/selfsup/pool.qa
$(stages:%=$(R)/report/%/pool.qa):
	$(run) $(B)/quern-pool --pool $(word 3,$^) --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ \
	  --prompts $(R)/report/prompts.qa --stage $(notdir $(@D)) --round 0

# ---- the best of the run, and every baseline, on every device class; a simulated one brings its evaluator ----
# Where times are measured, the score that made a kernel the best of many is too high by luck, and its inputs may have
# been kind to it. So the report has a judgement that did not choose it, on other inputs.
again := --again
$(R)/best/samples.qa: $(R)/report/crl/pool.qa $(R)/cfg/tasks
	$(run) $(B)/quern-pool --best --pool $< $(tasks) --output $@

class_file = $(R)/best/verdicts-$(subst :,-,$(subst /,-,$(1))).qa
judge_word = $(subst $(space),+,$(DEVICE))
own_fleet = $(if $(filter-out $(local_classes) $(judge_word),$(filter sim:%,$(1))),$(B)/quern-fleet run --devices $(1) --workers 1 -- )
define class_rule
$(call class_file,$(1)): $(R)/best/samples.qa $(R)/cfg/device
	$$(run) $(call own_fleet,$(1))$(B)/quern-evaluate $$< --output $$@ $(contents) $(again) --device $(call path,$(subst +,$(space),$(1)))
endef
$(foreach c,$(CLASSES),$(eval $(call class_rule,$(c))))
class_files := $(foreach c,$(CLASSES),$(call class_file,$(c)))
$(R)/best/results.qa: $(R)/best/samples.qa $(class_files) $(R)/cfg/report
	$(run) $(B)/quern-results --samples $< $(tasks) --output $@ $(class_files)

# The best of each stage's samples are judged again too, where the run was judged.
$(R)/best/again/samples.qa: $(R)/report/crl/pool.qa $(stages:%=$(R)/report/%/verdicts.qa) $(R)/cfg/tasks
	$(run) $(B)/quern-pool --best --pool $< --sets $(call pairs,$(stages:%=$(R)/report/%)) $(tasks) --output $@
$(R)/best/again/verdicts.qa: $(R)/best/again/samples.qa $(R)/cfg/device
	$(run) $(B)/quern-evaluate $< --output $@ $(contents) $(again) --device $(device)

# ---- the report ----
# All else is finished by now: what a kill -9 left between a commit and its clean-up is removed first. The run of a
# folder below this one (RUN=x/y), which has a cfg/, may be going on.
figures := $(selfsup_rounds:%=$(R)/selfsup/%/metrics.qa) $(crl_rounds:%=$(R)/crl/%/metrics.qa) \
  $(stages:%=$(R)/report/%/metrics.qa) $(heldout:%=$(R)/report/%/metrics.qa)
$(stages:%=$(R)/report/%/metrics.qa): $(R)/report/%/metrics.qa: $(R)/report/%/samples.qa $(R)/report/%/verdicts.qa $(gap_pools) $(R)/cfg/tasks
	$(run) $(B)/quern-figures --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ $(gap) --tasks $(call quoted,$(TASKS))
$(heldout:%=$(R)/report/%/metrics.qa): $(R)/report/%/metrics.qa: $(R)/report/%/samples.qa $(R)/report/%/verdicts.qa $(R)/cfg/tasks
	$(run) $(B)/quern-figures --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ --tasks $(call quoted,$(TASKS)) \
	  --round $(lastword $(subst -, ,$*))
rounds := $(call by_comma,$(selfsup_rounds:%=$(R)/selfsup/%/verdicts.qa) $(crl_rounds:%=$(R)/crl/%/verdicts.qa))
set = --$(1)-samples $(2)/samples.qa --$(1)-verdicts $(2)/verdicts.qa
$(R)/report.html: $(R)/best/results.qa $(R)/report/crl/pool.qa $(R)/best/again/verdicts.qa \
  $(stages:%=$(R)/report/%/verdicts.qa) $(call manifest,$(last_model)) $(figures) $(call crl_hacks,$(ROUNDS))
	@find $(R) -mindepth 1 \( -name queue -o -type d -exec test -d {}/cfg \; \) -prune -o \
	  \( -name '*.journal' -o -name '*.tmp.*' -o -name '*.checkpoint*' -o -name '*.trainer' \) -prune -exec rm -rf {} +
	$(run) $(B)/quern-report --output $(R) $(tasks) --run $(RUN) --profile $(PROFILE) --device $(device) \
	  --results $(R)/best/results.qa --pool $(R)/report/crl/pool.qa $(call set,again,$(R)/best/again) \
	  $(call set,collect,$(R)/collect) $(foreach s,$(stages),$(call set,$(s),$(R)/report/$(s))) \
	  $(if $(rounds),--rounds $(rounds)) --ledger $(R)/spent.tsv
