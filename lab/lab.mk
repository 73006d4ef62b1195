# What the settings LAB_... of an experiment add to the rules of a run: lab/README.md says what they are.
# pipeline.mk includes this file where one is given.

lab_names := LAB_WIDE LAB_WIDE_COLLECT LAB_WIDE_COPIES LAB_SELFSUP_WIDE LAB_CRL_WIDE LAB_WITHHOLD LAB_UPDATE \
  LAB_HELDOUT_EVERY LAB_RULE
lab_unknown := $(filter-out $(lab_names),$(lab))
$(if $(lab_unknown),$(error $(lab_unknown): the lab has no such setting; it has $(lab_names)))
lab_numbers := LAB_WIDE_COPIES LAB_SELFSUP_WIDE LAB_CRL_WIDE LAB_WITHHOLD LAB_HELDOUT_EVERY
lab_wrong := $(shell for v in $(foreach n,$(lab_numbers),$(n)=$($(n))); do \
  [[ $$v =~ =[0-9]*$$ ]] || echo $$v; done)
$(if $(lab_wrong),$(error $(lab_wrong): expected a whole number))
lab_number = $(filter-out 0,$($(1)))
lab_skipped := $(filter none,$(TEACHERS))
lab_values = $(foreach n,$(1),$(if $($(n)),$(n)=$(strip $($(n)))))
lab_stamp = override stamp_$(1) := $(strip $(stamp_$(1)) $(call lab_values,$(2)))
$(eval $(call lab_stamp,collect,LAB_WIDE_COLLECT LAB_WITHHOLD))
$(eval $(call lab_stamp,selfsup,LAB_SELFSUP_WIDE LAB_WIDE_COPIES))
$(eval $(call lab_stamp,crl,LAB_CRL_WIDE LAB_WIDE_COPIES LAB_WITHHOLD LAB_UPDATE LAB_RULE))
$(eval $(call lab_stamp,report,LAB_UPDATE))
lab_rounds := $(foreach s,selfsup crl,$(addprefix $(R)/$(s)/,$(shell seq \
  $(if $(filter selfsup,$(s)),$(SELFSUP_ROUNDS),$(ROUNDS)))))

# ---- how stage 3 draws kernels for its prompts ----
ifneq ($(LAB_RULE),)
$(if $(filter bucket island random shuffled none,$(LAB_RULE)),,$(error LAB_RULE=$(LAB_RULE): expected \
  bucket, island, random, shuffled or none))
override crl_prompts := $(crl_prompts) --rule $(LAB_RULE)
endif

# ---- wide tasks: a few kernels for each are among the teachers', and each round asks some of them ----
lab_wide := $(if $(lab_skipped),,$(LAB_WIDE))
ifneq ($(lab_wide),)
$(if $(filter all,$(TASKS)),$(error LAB_WIDE=$(LAB_WIDE): expected the names of \
  TASKS beside it, found all of them))
known_tasks := --tasks $(call quoted,$(TASKS)$(comma)$(lab_wide))
own := lab/own
lab_folders := $(addprefix $(call path,$(QUERN_TASKS))/,$(subst $(comma), ,$(lab_wide)))
lab_stamps := wide
stamp_wide := LAB_WIDE=$(lab_wide) $(shell \
  for d in $(lab_folders); do cat $$d/* 2>/dev/null || true; done | sha256sum | cut -c1-64)
$(R)/collect/samples.qa: $(R)/lab/own/samples.qa $(R)/lab/wide/samples.qa
	$(run) $(B)/quern-join --output $@ $^
$(R)/collect/verdicts.qa: $(R)/lab/own/verdicts.qa $(R)/lab/wide/verdicts.qa
	$(run) $(B)/quern-join --output $@ $^
$(R)/lab/wide/samples.qa: $(R)/cfg/collect $(R)/cfg/wide | $(R)/cfg/device
	$(run) $(B)/quern-collect --output $@ --tasks $(call quoted,$(lab_wide)) --teachers generator \
	  $(if $(LAB_WIDE_COLLECT),$(LAB_WIDE_COLLECT),--trials 12 --keep 6) $(collect_flags) \
	  --device $(device) $(contents:--seed%=--eval-seed%) --seed $(SEED)
$(R)/lab/wide/verdicts.qa: $(R)/lab/wide/samples.qa $(R)/cfg/device
	$(judge)
$(R)/sft/dataset.qa $(lab_rounds:%=%/prompts.qa): $(R)/cfg/wide
lab_ask = $(call lab_number,LAB_$(if $(findstring $(R)/selfsup/,$@),SELFSUP,CRL)_WIDE)
lab_copies := $(if $(LAB_WIDE_COPIES), --wide-copies $(LAB_WIDE_COPIES))
lab_prompt = quern-wide --wide $(call quoted,$(lab_wide)) --wide-ask $(lab_ask)$(lab_copies)
prompt = $(if $(lab_ask),$(lab_prompt),quern-prompt)
endif

# ---- withheld designs: the teacher keeps its fast ones from half of the train tasks ----
# What its whole range reaches there, at as many trials, is in lab/full: quern-gap compares.
lab_withheld := $(if $(lab_skipped),,$(filter 1,$(LAB_WITHHOLD)))
ifneq ($(lab_withheld),)
lab_without := --without $(R)/lab/withheld
collect_flags := $(lab_without)
$(R)/lab/withheld: $(R)/cfg/tasks $(lab_stamps:%=$(R)/cfg/%)
	$(run) $(B)/quern-withhold $(known_tasks) --output $@
$(R)/$(own)/samples.qa $(R)/lab/wide/samples.qa: $(R)/lab/withheld
$(R)/lab/full/tasks: $(R)/cfg/tasks
	$(run) $(B)/quern-withhold $(tasks) --names --output $@
$(R)/lab/full/samples.qa: $(R)/lab/full/tasks $(R)/cfg/collect $(R)/cfg/tasks | $(R)/cfg/device
	$(run) $(B)/quern-collect --output $@ --tasks "$$(cat $<)" --teachers generator \
	  $(COLLECT) --device $(device) \
	  $(contents:--seed%=--eval-seed%) --seed $(SEED)
$(R)/lab/full/verdicts.qa: $(R)/lab/full/samples.qa $(R)/cfg/device
	$(judge)
$(R)/lab/full/pool.qa: $(R)/lab/full/samples.qa $(R)/lab/full/verdicts.qa
	$(run) $(B)/quern-pool --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ --stage full
selfsup crl: $(R)/lab/full/pool.qa
endif

# ---- controls of stage 3: the generator answers; with LAB_UPDATE=sft the model learns from it ----
ifneq ($(LAB_UPDATE),)
$(if $(filter generator-none sft-learn,$(LAB_UPDATE)-$(UPDATE)),,$(error LAB_UPDATE=$(LAB_UPDATE): expected \
  generator with UPDATE=none, or sft with UPDATE=learn))
answer = $(if $(findstring $(R)/crl/,$@),quern-search $(known_tasks) $(lab_without),quern-sample)
endif
ifeq ($(LAB_UPDATE),sft)
update = more-sft $(known_tasks) $(FILTER) --style $(STYLE) $(facts) --seed $(SEED) --
override CRL := $(SFT)
endif

# ---- the heldout tasks by the models of rounds between, report/STAGE-N; the curves have them ----
lab_every := $(if $(trained),$(call lab_number,LAB_HELDOUT_EVERY))
ifneq ($(lab_every),)
lab_up_to = $(shell seq $(lab_every) $(lab_every) $$(($(1) - 1)))
lab_heldout := $(addprefix selfsup-,$(call lab_up_to,$(SELFSUP_ROUNDS))) \
  $(if $(filter learn,$(UPDATE)),$(addprefix crl-,$(call lab_up_to,$(ROUNDS))))
$(R)/report/heldout.qa: $(R)/cfg/report $(R)/cfg/tasks $(facts_file)
	$(run) $(B)/quern-prompt --output $@ $(tasks) --stage heldout --groups 1 \
	  --heldout-only --style $(STYLE) $(facts) --seed $(SEED)
# A checkpoint's samples wait for each other.
lab_pairs := $(join $(lab_heldout),$(addprefix |,crl $(lab_heldout)))
lab_after = $(if $(endpoint),,$(if $(checkpoint),$(patsubst $(1)|%,%,$(filter $(1)|%,$(lab_pairs)))))
lab_model = $(R)/$(subst -,/,$(1))/model
lab_policy = $(if $(endpoint),$(asks) --adapter $(1),$(1) $(engine))
define lab_heldout_rule
$(R)/report/$(1)/samples.qa: $(R)/report/heldout.qa $(call lab_model,$(1))/manifest.qa \
  $(R)/cfg/report $(addprefix | $(R)/report/,$(addsuffix /samples.qa,$(call lab_after,$(1))))
	$$(run) $(B)/quern-sample --policy $$(call lab_policy,$(call lab_model,$(1))) --prompts $$< \
	  --output $$@ --stage $(1) --copies $(REPORT_SAMPLES) $(SAMPLE) \
	  --seed $(SEED)
$(R)/report/$(1)/verdicts.qa: $(R)/report/$(1)/samples.qa $(R)/cfg/device
	$$(judge)
$(R)/report/$(1)/metrics.qa: $(R)/report/$(1)/samples.qa $(R)/report/$(1)/verdicts.qa $(R)/cfg/tasks
	$$(run) $(B)/quern-figures --samples $$(word 1,$$^) --verdicts $$(word 2,$$^) --output $$@ \
	  --tasks $$(call quoted,$$(TASKS)) --round $(lastword $(subst -, ,$(1)))
endef
$(foreach n,$(lab_heldout),$(eval $(call lab_heldout_rule,$(n))))
$(R)/report.html: $(lab_heldout:%=$(R)/report/%/metrics.qa)
endif
