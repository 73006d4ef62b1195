# The end of a run: the stages compared, the best kernels on every class, the report. Part of pipeline.mk.

# ---- what the report compares: each stage's final model, with the same prompts and number of samples ----
stages := sft selfsup crl
sft_final := $(R)/sft/model
selfsup_final := $(call selfsup_model,$(SELFSUP_ROUNDS))
crl_final := $(last_model)
$(R)/report/prompts.qa: $(R)/cfg/report $(R)/cfg/tasks $(facts_file)
	$(run) $(B)/quern-prompt --output $@ $(tasks) --stage report --groups 1 --heldout --style $(STYLE) \
	  $(facts) --seed $(SEED)

# A program that samples or trains a checkpoint takes the memory that is free (docs/model.md), and a second
# one would find too little. So these wait for the rounds and for each other.
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
	$(run) $(B)/quern-prompt --output $@ $(tasks) --stage heldout --groups 1 \
	  --heldout-only --style $(STYLE) $(facts) --seed $(SEED)
$(heldout:%=$(R)/report/%/samples.qa): $(R)/report/%/samples.qa: $(R)/report/heldout.qa \
  $$(call model_of,$$*)/manifest.qa \
  $(R)/cfg/report | \
  $$(if $$(endpoint),,$$(if $$(checkpoint),$(R)/report/$$(call heldout_after,$$*)/samples.qa))
	$(run) $(B)/quern-sample --policy $(call policy,$(call model_of,$*)) --prompts $< --output $@ \
	  --stage $* \
	  --copies $(REPORT_SAMPLES) --max-new $(MAX_NEW) --batch $(BATCH) --seed $(SEED)

# The pool of the whole run, with the report's samples.
$(R)/report/sft/pool.qa: $(R)/report/sft/samples.qa $(R)/report/sft/verdicts.qa $(call crl_pool,$(ROUNDS))
$(R)/report/selfsup/pool.qa: $(R)/report/selfsup/samples.qa $(R)/report/selfsup/verdicts.qa \
  $(R)/report/sft/pool.qa
$(R)/report/crl/pool.qa: $(R)/report/crl/samples.qa $(R)/report/crl/verdicts.qa $(R)/report/selfsup/pool.qa
$(stages:%=$(R)/report/%/pool.qa):
	$(run) $(B)/quern-pool --pool $(word 3,$^) --samples $(word 1,$^) --verdicts $(word 2,$^) \
	  --output $@ \
	  --prompts $(R)/report/prompts.qa --stage $(notdir $(@D)) --round 0

# ---- the best of the run, and every baseline, on every class; a simulated one brings its evaluator ----
# Where times are measured, the score that made a kernel the best of many is too high by luck, and its inputs
# may have been kind to it. So the report has a judgement that did not choose it, on other inputs.
again := --again
$(R)/best/samples.qa: $(R)/report/crl/pool.qa $(R)/cfg/tasks
	$(run) $(B)/quern-pool --best --pool $< $(tasks) --output $@

class_file = $(R)/best/verdicts-$(subst :,-,$(subst /,-,$(1))).qa
judge_word = $(subst $(space),+,$(DEVICE))
fleet_of = $(B)/quern-fleet run --devices $(1) --workers 1 -- $(empty)
own_fleet = $(if $(filter-out $(local_classes) $(judge_word),$(filter sim:%,$(1))),$(fleet_of))
define class_rule
$(call class_file,$(1)): $(R)/best/samples.qa $(R)/cfg/device
	$$(run) $(call own_fleet,$(1))$(B)/quern-evaluate $$< --output $$@ $(contents) $(again) \
	  --device $(call path,$(subst +,$(space),$(1)))
endef
$(foreach c,$(CLASSES),$(eval $(call class_rule,$(c))))
class_files := $(foreach c,$(CLASSES),$(call class_file,$(c)))
$(R)/best/results.qa: $(R)/best/samples.qa $(class_files) $(R)/cfg/report
	$(run) $(B)/quern-results --samples $< $(tasks) --output $@ $(class_files)

# The best of each stage's samples are judged again too, where the run was judged.
$(R)/best/again/samples.qa: $(R)/report/crl/pool.qa $(stages:%=$(R)/report/%/verdicts.qa) $(R)/cfg/tasks
	$(run) $(B)/quern-pool --best --pool $< --sets $(call pairs,$(stages:%=$(R)/report/%)) $(tasks) \
	  --output $@
$(R)/best/again/verdicts.qa: $(R)/best/again/samples.qa $(R)/cfg/device
	$(run) $(B)/quern-evaluate $< --output $@ $(contents) $(again) --device $(device)

# ---- the report ----
# All else is finished by now: what a kill -9 left between a commit and its clean-up is removed first. The run
# of a folder below this one (RUN=x/y), which has a cfg/, may be going on.
figures := $(selfsup_rounds:%=$(R)/selfsup/%/metrics.qa) $(crl_rounds:%=$(R)/crl/%/metrics.qa) \
  $(stages:%=$(R)/report/%/metrics.qa) $(heldout:%=$(R)/report/%/metrics.qa)
$(stages:%=$(R)/report/%/metrics.qa): $(R)/report/%/metrics.qa: $(R)/report/%/samples.qa \
  $(R)/report/%/verdicts.qa $(gap_pools) $(R)/cfg/tasks
	$(run) $(B)/quern-figures --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ $(gap) \
	  --tasks $(call quoted,$(TASKS))
$(heldout:%=$(R)/report/%/metrics.qa): $(R)/report/%/metrics.qa: $(R)/report/%/samples.qa \
  $(R)/report/%/verdicts.qa $(R)/cfg/tasks
	$(run) $(B)/quern-figures --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ \
	  --tasks $(call quoted,$(TASKS)) \
	  --round $(lastword $(subst -, ,$*))
all_rounds := $(selfsup_rounds:%=selfsup/%) $(crl_rounds:%=crl/%)
rounds := $(call by_comma,$(all_rounds:%=$(R)/%/verdicts.qa))
set = --$(1)-samples $(2)/samples.qa --$(1)-verdicts $(2)/verdicts.qa
$(R)/report.html: $(R)/best/results.qa $(R)/report/crl/pool.qa $(R)/best/again/verdicts.qa \
  $(stages:%=$(R)/report/%/verdicts.qa) $(call manifest,$(last_model)) $(figures) $(call crl_hacks,$(ROUNDS))
	@find $(R) -mindepth 1 \( -name queue -o -type d -exec test -d {}/cfg \; \) -prune -o \
	  \( -name '*.journal' -o -name '*.tmp.*' -o -name '*.checkpoint*' -o -name '*.trainer' \) -prune \
	  -exec rm -rf {} +
	$(run) $(B)/quern-report --output $(R) $(tasks) --run $(RUN) --profile $(PROFILE) --device $(device) \
	  --results $(R)/best/results.qa --pool $(R)/report/crl/pool.qa $(call set,again,$(R)/best/again) \
	  $(call set,collect,$(R)/collect) $(foreach s,$(stages),$(call set,$(s),$(R)/report/$(s))) \
	  $(if $(rounds),--rounds $(rounds)) --ledger $(R)/spent.tsv
