# The run: what is made from what. Called by the Makefile inside quern-fleet, so that the queue and the
# evaluators are there; every target is an artifact below runs/<RUN>.
#
#   collect -> filter -> sft -> selfsup (rounds) -> crl (rounds) -> best on every device class -> report

.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += -rR --no-print-directory
SHELL := /bin/bash
# threads that wait must not take a core from the evaluators
export OMP_WAIT_POLICY ?= passive
.SHELLFLAGS := -eu -o pipefail -c
empty :=
comma := ,

PROFILE ?= default
ifneq ($(CONFIG),)
$(if $(wildcard $(CONFIG)),,$(error CONFIG=$(CONFIG): there is no such file))
include $(CONFIG)
endif
$(if $(filter configs/$(PROFILE).mk,$(wildcard configs/$(PROFILE).mk)),,$(error PROFILE=$(PROFILE): expected the name of a file in configs/, such as smoke or default))
include configs/$(PROFILE).mk
RUN ?= $(PROFILE)
BUILD ?= build
TASKS ?= all
TEACHERS ?= template
POLICY ?= small
SEED ?= 1
DEVICES ?= auto
# ---- devices: what a GPU's name is as a class, with + for its blanks (words of Make have none): cuda:0 NVIDIA+H200 ----
space := $(empty) $(empty)
as_word = $(subst $(space),+,$(strip $(1)))
as_text = $(subst +, ,$(1))
wanted := $(subst $(comma), ,$(DEVICES))
# asked for only where a GPU is wanted, and there is one; FOUND=... stands for the answer in tests and below mk/pipeline
ifneq ($(filter auto cuda:%,$(wanted)),)
ifeq ($(origin FOUND),undefined)
FOUND := $(if $(wildcard /dev/nvidiactl /dev/dxg),$(shell '$(BUILD)/bin/quern-devices' --gpus | sed 's/ /=/; s/ /+/g'))
endif
endif
gpu_names := $(foreach g,$(FOUND),$(firstword $(subst =, ,$(g))))
gpu_class = $(word 2,$(subst =, ,$(firstword $(filter $(1)=%,$(FOUND)))))
LOCAL := $(foreach d,$(wanted),$(if $(filter auto,$(d)),$(or $(gpu_names),sim:h100),$(d)))
$(foreach d,$(filter cuda:%,$(LOCAL)),$(if $(filter $(d),$(gpu_names)),,$(error DEVICES=$(DEVICES): there is no $(d) here$(if $(gpu_names),$(comma) but $(gpu_names)))))
class_of = $(if $(filter cuda:%,$(1)),$(call gpu_class,$(1)),$(1))
unique = $(if $(1),$(firstword $(1)) $(call unique,$(filter-out $(firstword $(1)),$(1))))
local_classes := $(call unique,$(foreach d,$(LOCAL),$(call class_of,$(d))))
# what judges during the run is what the local evaluators serve, and the first of them where they differ
found := $(and $(filter undefined,$(origin DEVICE)),$(filter auto,$(wanted)))
DEVICE ?= $(call as_text,$(firstword $(local_classes) sim:h100))
override DEVICE := $(call as_text,$(DEVICE))
device_word := $(call as_word,$(DEVICE))
CLASSES ?= $(call unique,$(filter-out sim:%,$(device_word) $(local_classes)) sim:a100 sim:h100 sim:h200 sim:l40 sim:rtx3090 sim:h20)
override CLASSES := $(call unique,$(subst $(comma), ,$(CLASSES)))
STYLE ?= $(if $(filter small,$(POLICY)),brief,full)

R := runs/$(RUN)
B := $(BUILD)/bin
run = @mk/run $(R)/log/$(subst /,-,$(patsubst $(R)/%,%,$(basename $@))).log

task_names := $(if $(filter all,$(TASKS)),*,$(subst $(comma), ,$(TASKS)))
tasks_flag := $(if $(filter all,$(TASKS)),,--tasks $(subst $(empty) ,$(comma),$(strip $(task_names))))
TASK_FILES := $(sort $(wildcard $(task_names:%=tasks/%/*)))

# A folder of kernels by what is in it: a file more, one less or another text makes another collection.
quoted = '$(subst ','\'',$(1))'
folders := $(patsubst dir:%,%,$(filter dir:%,$(subst $(comma), ,$(TEACHERS))))
kernels := $(foreach d,$(folders),$(if $(wildcard $(d)/.),,$(error TEACHERS=$(TEACHERS): there is no folder $(d)))$(shell \
  find -L $(call quoted,$(d)) -mindepth 2 -maxdepth 2 -type f -name '?*.cu' -exec sha256sum {} + | LC_ALL=C sort | sha256sum | cut -c1-64))

# ---- a wrong setting is one sentence now, not a failed stage hours later ----
without = $(if $(1),$(call without,$(wordlist 2,99,$(1)),$(subst $(firstword $(1)),,$(2))),$(2))
digits := 0 1 2 3 4 5 6 7 8 9
# Make, the shell and the file system each have a meaning for most other characters.
named := $(digits) A B C D E F G H I J K L M N O P Q R S T U V W X Y Z a b c d e f g h i j k l m n o p q r s t u v w x y z . _ - + /
ifneq ($(call without,$(named),$(RUN))$(filter . ..,$(subst /, ,$(RUN)))$(findstring //,/$(RUN)/),)
$(error RUN=$(RUN): expected a folder's name below runs/, of letters, digits and . _ - + / alone, without a part . or ..)
endif
$(if $(strip $(task_names)),,$(error TASKS=$(TASKS) names no task; leave it out for all of them))
$(foreach t,$(if $(filter all,$(TASKS)),,$(task_names)),$(if $(filter tasks/$(t)/task.json,$(wildcard tasks/$(t)/task.json)),,$(error \
  TASKS=$(TASKS): there is no tasks/$(t)/task.json)))
teachers := $(subst $(space),$(comma),$(strip $(subst $(comma), ,$(TEACHERS))))
$(if $(teachers),,$(error TEACHERS=$(TEACHERS) names no teacher; expected template, openai:MODEL, anthropic:MODEL, dir:PATH, by comma))
$(foreach v,TRIALS KEEP MISTAKES CONTRASTIVE SMALL_MODEL SFT MAX_NEW BATCH SELFSUP_ROUNDS SELFSUP_GROUPS SELFSUP_PLAIN \
  SELFSUP_COPIES SELFSUP ROUNDS GROUPS PLAIN COPIES CRL EXEMPLARS REPORT_SAMPLES,$(if $($(v)),,$(error $(v) is not set: neither PROFILE=$(PROFILE) nor CONFIG=$(CONFIG) does)))
is_number = $(if $(filter 1,$(words $(1))),$(if $(call without,$(digits),$(1)),,yes))
$(foreach v,SEED SELFSUP_ROUNDS ROUNDS,$(if $(call is_number,$($(v))),,$(error $(v)=$($(v)): expected a whole number)))
simulated := a100 h100 h200 l40 rtx3090 h20
$(foreach c,$(filter-out $(simulated:%=sim:%),$(filter sim:%,$(device_word) $(CLASSES) $(LOCAL))),$(error $(c): expected sim:PROFILE, where PROFILE is one of $(simulated)))
$(foreach c,$(filter $(simulated),$(device_word) $(CLASSES) $(LOCAL)),$(error $(c): no evaluator has this class; the simulator's is sim:$(c)))
$(if $(CLASSES),,$(error CLASSES= names no class; leave it out for the GPUs' and every simulated one))
is_one_of = $(if $(filter 1,$(words $(1))),$(filter $(2),$(1)))
$(if $(call is_one_of,$(STYLE),brief full),,$(error STYLE=$(STYLE): expected brief or full))

# ---- what an endpoint or an open-weights model changes ----
# The weights that are trained: a small model's (from scratch), a checkpoint's, or, behind an endpoint, those of the
# checkpoint that it serves (BASE), as adapters that it is given round by round. Without BASE nothing is trained.
endpoint := $(filter openai:% anthropic:%,$(POLICY))
checkpoint := $(if $(endpoint),$(BASE),$(patsubst native:%,%,$(filter native:%,$(POLICY))))
ifeq ($(endpoint)$(filter native:%,$(POLICY))$(filter small,$(POLICY)),)
$(error POLICY=$(POLICY): expected small, native:DIR, openai:MODEL or anthropic:MODEL)
endif
ifneq ($(checkpoint),)
$(if $(wildcard $(checkpoint)/config.json),,$(error $(if $(endpoint),BASE=$(BASE),POLICY=$(POLICY)): there is no $(checkpoint)/config.json, so it is no model directory))
endif
$(if $(BASE),$(if $(filter openai:%,$(POLICY)),,$(error BASE=$(BASE) names the checkpoint that POLICY=openai:MODEL serves; POLICY is $(POLICY))))
trained := $(if $(endpoint),$(BASE),$(POLICY))
ENGINE ?= $(if $(checkpoint),auto,cpu)
$(if $(or $(call is_one_of,$(ENGINE),cpu auto),$(and $(call is_one_of,$(ENGINE),cuda:%),$(call is_number,$(ENGINE:cuda:%=%)))),,$(error \
  ENGINE=$(ENGINE): expected cpu, cuda:N or auto))
LORA ?= $(if $(endpoint),$(if $(BASE),16))
LORA_ALPHA ?= 32
$(if $(LORA),$(if $(call is_number,$(LORA)),,$(error LORA=$(LORA): expected a rank, such as 16)))
ifeq ($(checkpoint),)
$(foreach v,LORA TRAINER,$(if $($(v)),$(error $(v)=$($(v)) needs a checkpoint to start from: POLICY=native:DIR, or POLICY=openai:MODEL with BASE=DIR)))
endif
base := $(if $(checkpoint),--base $(checkpoint))
engine := $(strip $(if $(filter-out cpu,$(ENGINE)),--engine $(ENGINE)) $(if $(filter-out 1,$(GPUS)),--gpus $(GPUS)))
training := $(strip $(engine) $(if $(LORA),--lora $(LORA) --lora-alpha $(LORA_ALPHA) $(if $(RSLORA),--rslora)) $(if $(LEAN),--lean) \
  $(if $(TRAINER),--trainer $(call quoted,$(TRAINER))))
# how the same work fits the memory and the time: a change of it remakes nothing
memory := $(if $(MAX_TOKENS),--max-tokens $(MAX_TOKENS)) $(if $(RECOMPUTE),--recompute $(RECOMPUTE)) \
  $(if $(TRAINER_HOURS),--trainer-hours $(TRAINER_HOURS))

# ---- stamps: a changed setting is seen when make reads this file, so that make -n and -q tell the truth ----
# A stamp holds the values of the named settings. Every setting that a recipe uses is in a stamp that its target depends on,
# directly or by what it is made from; not so by design: where things are (RUN, BUILD), $(memory), and which class brings its
# own evaluator.
define stamp
stamped/$(1) := $$(strip $$(foreach v,$(2),$$(v)=$$($$(v))))
ifneq ($$(strip $$(file <$(R)/cfg/$(1))),$$(stamped/$(1)))
$(R)/cfg/$(1): FORCE
endif
$(R)/cfg/$(1): ; @mkdir -p $$(@D); printf '%s\n' $$(call quoted,$$(stamped/$(1))) >$$@.tmp && mv $$@.tmp $$@
endef
FORCE: ;
# A GPU that is not found any more, after a driver's update say, is no wish to have the simulator judge the whole run anew.
judged := $(call as_word,$(subst DEVICE=,,$(filter-out HARNESS=%,$(file <$(R)/cfg/device))))
$(if $(and $(found),$(judged)),$(if $(filter $(device_word),$(judged)),,$(error \
  $(R) was judged on $(call as_text,$(judged)), and what is found here is $(DEVICE): DEVICES=$(firstword $(LOCAL)) judges all of it anew, RUN=NAME is another run)))
# Scores of two harnesses are not comparable (eval/judge/verdict.h): a run that another one judged is judged anew.
HARNESS := $(patsubst VERDICT_HARNESS~"%",%,$(filter VERDICT_HARNESS~%,$(subst VERDICT_HARNESS ,VERDICT_HARNESS~,$(file <eval/judge/verdict.h))))
$(if $(HARNESS),,$(error eval/judge/verdict.h: expected VERDICT_HARNESS))
answering := POLICY BASE engine STYLE MAX_NEW BATCH
$(eval $(call stamp,tasks,TASK_FILES))
$(eval $(call stamp,collect,TEACHERS kernels TRIALS KEEP MISTAKES DEVICE SEED))
$(eval $(call stamp,device,DEVICE HARNESS))
$(eval $(call stamp,sft,base STYLE CONTRASTIVE SMALL_MODEL SFT training SEED))
$(eval $(call stamp,selfsup,$(answering) SELFSUP_GROUPS SELFSUP_PLAIN SELFSUP_COPIES EXEMPLARS SELFSUP training SEED))
# Stage 3 starts from the last selfsup round, which with fewer of them is an older one. No stage's own number of rounds is in
# its stamp: more of them go on from those that are there.
$(eval $(call stamp,crl,$(answering) SELFSUP_ROUNDS GROUPS PLAIN COPIES EXEMPLARS CRL training SEED))
$(eval $(call stamp,report,PROFILE $(answering) REPORT_SAMPLES ROUNDS SELFSUP_ROUNDS CLASSES SEED))

# What mk/pipeline has to know before it starts a fleet.
ifneq ($(ASK),)
$(info asked: $(RUN) $(subst $(space),$(comma),$(strip $(LOCAL))) $(FOUND))
endif

# What only the programs know of their flags, for mk/pipeline too: a wrong one would end the stage that has it, hours later.
# Each is given an input that cannot be there, so that it ends before it does anything, with 2 for wrong flags alone.
.PHONY: settings
absent := /dev/null/absent
settings:
ifneq ($(filter cuda:%,$(ENGINE)),)
	@$(B)/quern-devices --gpus | grep '^$(ENGINE) ' >/dev/null || { echo 'quern: ENGINE=$(ENGINE): there is no $(ENGINE) here' >&2; exit 2; }
endif
	@mk/setting CONTRASTIVE $(B)/quern-filter --samples $(absent) --verdicts $(absent) --output $(absent) --contrastive $(CONTRASTIVE) --style $(STYLE)
	@mk/setting 'EXEMPLARS or numbers of GROUPS and PLAIN' $(B)/quern-prompt --output $(absent) --pool $(absent) --groups $(SELFSUP_GROUPS) \
	  --plain $(SELFSUP_PLAIN) --groups $(GROUPS) --plain $(PLAIN) $(EXEMPLARS) --style $(STYLE) --seed $(SEED)
	@mk/setting 'COPIES, REPORT_SAMPLES, MAX_NEW, BATCH or GPUS' $(B)/quern-sample --prompts $(absent) --output $(absent) $(engine) \
	  --copies $(SELFSUP_COPIES) --copies $(COPIES) --copies $(REPORT_SAMPLES) --max-new $(MAX_NEW) --batch $(BATCH) --help
ifneq ($(trained),)
	@mk/setting 'adapters, trainer or memory' $(B)/quern-selfsup --base $(absent) --samples $(absent) --verdicts $(absent) --output $(absent) $(training) $(memory)
	@mk/setting 'SMALL_MODEL or SFT' $(B)/quern-sft --dataset $(absent) --output $(absent) $(base) $(SMALL_MODEL) $(SFT) $(training) $(memory)
	@mk/setting SELFSUP $(B)/quern-selfsup --base $(absent) --samples $(absent) --verdicts $(absent) --output $(absent) $(SELFSUP) $(training) $(memory)
	@mk/setting CRL $(B)/quern-crl --base $(absent) --samples $(absent) --verdicts $(absent) --output $(absent) --reference $(absent) $(CRL) $(training) $(memory)
endif

.PHONY: collect sft selfsup crl
crl: $(R)/report.html

# ---- verdicts: one rule for every samples artifact; a round's are below ----
%/verdicts.qa: %/samples.qa $(R)/cfg/device
	$(run) $(B)/quern-evaluate $< --output $@ --device '$(DEVICE)'

# ---- stage 1 ----
collect: $(R)/collect/verdicts.qa
$(R)/collect/samples.qa: $(R)/cfg/collect $(R)/cfg/tasks $(TASK_FILES) | $(R)/cfg/device
	$(run) $(B)/quern-collect --output $@ $(tasks_flag) --teachers $(call quoted,$(teachers)) --trials $(TRIALS) --keep $(KEEP) \
	  --mistakes $(MISTAKES) --device '$(DEVICE)' --seed $(SEED)

$(R)/sft/dataset.qa: $(R)/collect/samples.qa $(R)/collect/verdicts.qa $(R)/cfg/sft
	$(run) $(B)/quern-filter --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ $(tasks_flag) \
	  --contrastive $(CONTRASTIVE) --style $(STYLE) --seed $(SEED)

sft: $(if $(trained),$(R)/sft/model/manifest.qa,$(R)/sft/dataset.qa)
$(R)/sft/model/manifest.qa: $(R)/sft/dataset.qa $(R)/cfg/sft
	$(run) $(B)/quern-sft --dataset $< --output $(@D) $(base) $(SMALL_MODEL) $(SFT) $(training) $(memory) --seed $(SEED)

# ---- rounds: selfsup/N and crl/N; round 0 is what the stage starts from ----
NUMBERS := $(shell seq 1 $$(($(SELFSUP_ROUNDS) + $(ROUNDS))))
S_ROUNDS := $(wordlist 1,$(SELFSUP_ROUNDS),$(NUMBERS))
C_ROUNDS := $(wordlist 1,$(ROUNDS),$(NUMBERS))
prev = $(word $(1),0 $(NUMBERS))
S_LAST := $(SELFSUP_ROUNDS)

# model of a round, and the pool after it
s_model = $(if $(filter 0,$(1)),$(R)/sft/model,$(R)/selfsup/$(1)/model)
c_model = $(if $(filter 0,$(1)),$(call s_model,$(S_LAST)),$(R)/crl/$(1)/model)
s_pool = $(if $(filter 0,$(1)),$(R)/collect/pool.qa,$(R)/selfsup/$(1)/pool.qa)
c_pool = $(if $(filter 0,$(1)),$(call s_pool,$(S_LAST)),$(R)/crl/$(1)/pool.qa)
# What answers: the model itself, or the endpoint with its adapter. An endpoint alone is sampled as it is, and only prompts
# and pool change between rounds.
policy = $(if $(endpoint),$(POLICY)$(if $(trained), --adapter $(1)),$(1) $(engine))
manifest = $(if $(trained),$(1)/manifest.qa)

$(R)/collect/pool.qa: $(R)/collect/samples.qa $(R)/collect/verdicts.qa
	$(run) $(B)/quern-pool --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ --stage collect

.SECONDEXPANSION:

# the eight rounds before this one, oldest first: their kernels are stage 2's, their rewards are in stage 3's running
# statistics (each older one at half the weight, so that those before them do not matter)
before = $(wordlist $(words x $(wordlist 9,$(call prev,$(1)),$(NUMBERS))),$(call prev,$(1)),$(NUMBERS))
earlier = $(subst $(empty) ,$(comma),$(strip $(foreach k,$(call before,$(2)),$(R)/$(1)/$(k)/samples.qa:$(R)/$(1)/$(k)/verdicts.qa)))

# Stage 2
$(S_ROUNDS:%=$(R)/selfsup/%/prompts.qa): $(R)/selfsup/%/prompts.qa: $$(call s_pool,$$(call prev,$$*)) $(R)/cfg/selfsup $(TASK_FILES)
	$(run) $(B)/quern-prompt --output $@ --pool $< $(tasks_flag) --stage selfsup-$* --groups $(SELFSUP_GROUPS) \
	  --plain $(SELFSUP_PLAIN) $(EXEMPLARS) --style $(STYLE) --seed $(SEED)

$(S_ROUNDS:%=$(R)/selfsup/%/samples.qa): $(R)/selfsup/%/samples.qa: $(R)/selfsup/%/prompts.qa $$(call manifest,$$(call s_model,$$(call prev,$$*))) $(R)/cfg/selfsup
	$(run) $(B)/quern-sample --policy $(call policy,$(call s_model,$(call prev,$*))) --prompts $< --output $@ --stage selfsup-$* \
	  --copies $(SELFSUP_COPIES) --max-new $(MAX_NEW) --batch $(BATCH) --seed $(SEED)

# What is known before a round tells which of its scores are records (docs/evaluation.md).
$(S_ROUNDS:%=$(R)/selfsup/%/verdicts.qa): $(R)/selfsup/%/verdicts.qa: $(R)/selfsup/%/samples.qa $$(call s_pool,$$(call prev,$$*)) $(R)/cfg/device
	$(run) $(B)/quern-evaluate $< --output $@ --best $(word 2,$^) --device '$(DEVICE)'

$(S_ROUNDS:%=$(R)/selfsup/%/model/manifest.qa): $(R)/selfsup/%/model/manifest.qa: $(R)/selfsup/%/samples.qa $(R)/selfsup/%/verdicts.qa $$(call s_model,$$(call prev,$$*))/manifest.qa $(R)/sft/dataset.qa $(R)/cfg/selfsup
	$(run) $(B)/quern-selfsup --base $(call s_model,$(call prev,$*)) --samples $(word 1,$^) --verdicts $(word 2,$^) \
	  --history "$(call earlier,selfsup,$*)" --rehearse $(R)/sft/dataset.qa --output $(@D) $(SELFSUP) $(training) $(memory) --seed $(SEED)

$(S_ROUNDS:%=$(R)/selfsup/%/pool.qa): $(R)/selfsup/%/pool.qa: $(R)/selfsup/%/samples.qa $(R)/selfsup/%/verdicts.qa $$(call s_pool,$$(call prev,$$*))
	$(run) $(B)/quern-pool --pool $(word 3,$^) --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ --stage selfsup --round $*

selfsup: $(if $(trained),$(call s_model,$(S_LAST))/manifest.qa,$(call s_pool,$(S_LAST)))

# Stage 3
$(C_ROUNDS:%=$(R)/crl/%/prompts.qa): $(R)/crl/%/prompts.qa: $$(call c_pool,$$(call prev,$$*)) $(R)/cfg/crl $(TASK_FILES)
	$(run) $(B)/quern-prompt --output $@ --pool $< $(tasks_flag) --stage crl-$* --groups $(GROUPS) --plain $(PLAIN) \
	  $(EXEMPLARS) --style $(STYLE) --seed $(SEED)

$(C_ROUNDS:%=$(R)/crl/%/samples.qa): $(R)/crl/%/samples.qa: $(R)/crl/%/prompts.qa $$(call manifest,$$(call c_model,$$(call prev,$$*))) $(R)/cfg/crl
	$(run) $(B)/quern-sample --policy $(call policy,$(call c_model,$(call prev,$*))) --prompts $< --output $@ --stage crl-$* \
	  --copies $(COPIES) --max-new $(MAX_NEW) --batch $(BATCH) --seed $(SEED)

$(C_ROUNDS:%=$(R)/crl/%/verdicts.qa): $(R)/crl/%/verdicts.qa: $(R)/crl/%/samples.qa $$(call c_pool,$$(call prev,$$*)) $(R)/cfg/device
	$(run) $(B)/quern-evaluate $< --output $@ --best $(word 2,$^) --device '$(DEVICE)'

$(C_ROUNDS:%=$(R)/crl/%/model/manifest.qa): $(R)/crl/%/model/manifest.qa: $(R)/crl/%/samples.qa $(R)/crl/%/verdicts.qa $$(call c_model,$$(call prev,$$*))/manifest.qa $(R)/cfg/crl
	$(run) $(B)/quern-crl --base $(call c_model,$(call prev,$*)) --samples $(word 1,$^) --verdicts $(word 2,$^) \
	  --output $(@D) --history "$(call earlier,crl,$*)" --reference $(call s_model,$(S_LAST)) $(CRL) $(training) $(memory) --seed $(SEED)

$(C_ROUNDS:%=$(R)/crl/%/pool.qa): $(R)/crl/%/pool.qa: $(R)/crl/%/samples.qa $(R)/crl/%/verdicts.qa $$(call c_pool,$$(call prev,$$*))
	$(run) $(B)/quern-pool --pool $(word 3,$^) --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ --stage crl --round $*

# ---- what the report compares: the same prompts and the same number of samples for each stage's final model ----
STAGES := sft selfsup crl
final_model = $(if $(filter sft,$(1)),$(R)/sft/model,$(if $(filter selfsup,$(1)),$(call s_model,$(S_LAST)),$(call c_model,$(ROUNDS))))
$(R)/report/prompts.qa: $(R)/cfg/report $(R)/cfg/tasks $(TASK_FILES)
	$(run) $(B)/quern-prompt --output $@ $(tasks_flag) --stage report --groups 1 --heldout --style $(STYLE) --seed $(SEED)

# Whoever samples or trains a checkpoint takes the memory that is free (docs/model.md), and a second one would find too little:
# these wait for the rounds and for each other.
turn = $(if $(filter sft,$(1)),$(call c_model,$(ROUNDS))/manifest.qa,$(R)/report/$(if $(filter crl,$(1)),selfsup,sft)/samples.qa)
$(STAGES:%=$(R)/report/%/samples.qa): $(R)/report/%/samples.qa: $(R)/report/prompts.qa $$(call manifest,$$(call final_model,$$*)) $(R)/cfg/report \
  | $$(if $$(endpoint),,$$(if $$(checkpoint),$$(call turn,$$*)))
	$(run) $(B)/quern-sample --policy $(call policy,$(call final_model,$*)) --prompts $< --output $@ --stage $* \
	  --copies $(REPORT_SAMPLES) --max-new $(MAX_NEW) --batch $(BATCH) --seed $(SEED)

# The pool of the whole run, the report's samples included.
$(R)/report/sft/pool.qa: $(R)/report/sft/samples.qa $(R)/report/sft/verdicts.qa $(call c_pool,$(ROUNDS))
$(R)/report/selfsup/pool.qa: $(R)/report/selfsup/samples.qa $(R)/report/selfsup/verdicts.qa $(R)/report/sft/pool.qa
$(R)/report/crl/pool.qa: $(R)/report/crl/samples.qa $(R)/report/crl/verdicts.qa $(R)/report/selfsup/pool.qa
$(STAGES:%=$(R)/report/%/pool.qa):
	$(run) $(B)/quern-pool --pool $(word 3,$^) --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ \
	  --stage $(notdir $(@D)) --round 0

# ---- the best of the run, and every baseline, on every device class; a simulated one brings its evaluator ----
# The score that made a kernel the best of many is too high by luck where times are measured, and inputs may have been kind to
# it: what the report says of a best kernel is a judgement that did not choose it, on inputs of another seed.
again := --seed 2
$(R)/best/samples.qa: $(R)/report/crl/pool.qa $(R)/cfg/tasks $(TASK_FILES)
	$(run) $(B)/quern-pool --best --pool $< $(tasks_flag) --output $@
class_file = $(R)/best/verdicts-$(subst :,-,$(subst /,-,$(1))).qa
define class_rule
$(call class_file,$(1)): $(R)/best/samples.qa $(R)/cfg/device
	$$(run) $(if $(filter-out $(local_classes) $(device_word),$(filter sim:%,$(1))),$(B)/quern-fleet run --devices $(1) --workers 1 -- )$(B)/quern-evaluate $$< --output $$@ $(again) --device '$(call as_text,$(1))'
endef
$(foreach c,$(CLASSES),$(eval $(call class_rule,$(c))))
$(R)/best/results.qa: $(R)/best/samples.qa $(foreach c,$(CLASSES),$(call class_file,$(c))) $(R)/cfg/report
	$(run) $(B)/quern-results --samples $< $(tasks_flag) --output $@ $(foreach c,$(CLASSES),$(call class_file,$(c)))

# Where the run was judged, the best of each stage's samples as well.
stage_sets = $(subst $(space),$(comma),$(strip $(foreach s,$(STAGES),$(R)/report/$(s)/samples.qa:$(R)/report/$(s)/verdicts.qa)))
$(R)/best/again/samples.qa: $(R)/report/crl/pool.qa $(foreach s,$(STAGES),$(R)/report/$(s)/verdicts.qa) $(R)/cfg/tasks $(TASK_FILES)
	$(run) $(B)/quern-pool --best --pool $< --sets $(stage_sets) $(tasks_flag) --output $@
$(R)/best/again/verdicts.qa: $(R)/best/again/samples.qa $(R)/cfg/device
	$(run) $(B)/quern-evaluate $< --output $@ $(again) --device '$(DEVICE)'

rounds_list = $(subst $(empty) ,$(comma),$(strip $(S_ROUNDS:%=$(R)/selfsup/%/verdicts.qa) $(C_ROUNDS:%=$(R)/crl/%/verdicts.qa)))
# All else is finished here: what a kill -9 left between a commit and its clean-up goes first. A run of its own below this one
# (RUN=x/y), which has a cfg/, may be going on.
$(R)/report.html: $(R)/best/results.qa $(R)/report/crl/pool.qa $(R)/best/again/verdicts.qa $(foreach s,$(STAGES),$(R)/report/$(s)/verdicts.qa) $(call manifest,$(call c_model,$(ROUNDS)))
	@find $(R) -mindepth 1 \( -name queue -o -type d -exec test -d {}/cfg \; \) -prune -o \( -name '*.journal' -o -name '*.tmp.*' -o -name '*.checkpoint*' -o -name '*.trainer' \) -prune -exec rm -rf {} +
	$(run) $(B)/quern-report --output $(R) $(tasks_flag) --run $(RUN) --profile $(PROFILE) --device '$(DEVICE)' --results $(R)/best/results.qa --pool $(R)/report/crl/pool.qa \
	  --again-samples $(R)/best/again/samples.qa --again-verdicts $(R)/best/again/verdicts.qa \
	  --collect-samples $(R)/collect/samples.qa --collect-verdicts $(R)/collect/verdicts.qa \
	  $(foreach s,$(STAGES),--$(s)-samples $(R)/report/$(s)/samples.qa --$(s)-verdicts $(R)/report/$(s)/verdicts.qa) \
	  $(if $(rounds_list),--rounds $(rounds_list))
