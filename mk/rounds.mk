# Stages 2 and 3, in rounds: selfsup/N and crl/N. Round 0 is what the stage starts from. Part of pipeline.mk.

prev = $(word $(1),0 $(numbers))
# The model of round N of a stage, and the pool after that round.
selfsup_model = $(if $(filter 0,$(1)),$(R)/sft/model,$(R)/selfsup/$(1)/model)
# UPDATE=none and UPDATE=template leave the model of stage 3 as it is.
updates := $(filter learn sft,$(UPDATE))
before_crl = $(call selfsup_model,$(SELFSUP_ROUNDS))
crl_model = $(if $(and $(updates),$(filter-out 0,$(1))),$(R)/crl/$(1)/model,$(before_crl))
selfsup_pool = $(if $(filter 0,$(1)),$(first_pool),$(R)/selfsup/$(1)/pool.qa)
crl_pool = $(if $(filter 0,$(1)),$(call selfsup_pool,$(SELFSUP_ROUNDS)),$(R)/crl/$(1)/pool.qa)
last_model := $(call crl_model,$(ROUNDS))
# What answers: the model itself, or the endpoint with the model as its adapter. An endpoint alone is sampled
# as it is, and only prompts and pool change between rounds.
asks = $(endpoint) $(spend)$(if $(PRICE), --price $(PRICE))
policy = $(if $(endpoint),$(asks)$(if $(trained), --adapter $(1)),$(1) $(engine))
manifest = $(if $(trained),$(1)/manifest.qa)
# The eight rounds before round $(1), oldest first. Stage 2 learns from their kernels; stage 3 has their
# rewards in its statistics, each at half the weight of the next, so that older ones do not matter.
before = $(wordlist $(words x $(wordlist 9,$(call prev,$(1)),$(numbers))),$(call prev,$(1)),$(numbers))
pairs = $(call by_comma,$(foreach d,$(1),$(d)/samples.qa:$(d)/verdicts.qa))
history = $(call pairs,$(addprefix $(R)/$(1)/,$(call before,$(2))))

.SECONDEXPANSION:

# What answers a round's prompts: the model of the round before. With UPDATE=template or sft it is the
# template teacher, whatever the prompts show.
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

# What a round of stage $(1) has; $(2) is the prefix of its settings. The update of the model is each stage's
# own.
define round_rules
$($(1)_rounds:%=$(R)/$(1)/%/prompts.qa): $(R)/$(1)/%/prompts.qa: $$$$(call $(1)_pool,$$$$(call prev,$$$$*)) \
  $(R)/cfg/$(1) $(R)/cfg/tasks $(facts_file)
	$$(run) $(B)/quern-prompt --output $$@ --pool $$< $$(tasks) --stage $(1)-$$* --groups $$($(2)GROUPS) \
	  --plain $$($(2)PLAIN) $$(EXEMPLARS) $$($(1)_rule)$$(call ask_wide,$$($(2)WIDE_ASK)) \
	  --style $$(STYLE) $$(facts) --seed $$(SEED)

$($(1)_rounds:%=$(R)/$(1)/%/$($(1)_first)samples.qa): $(R)/$(1)/%/$($(1)_first)samples.qa: \
  $(R)/$(1)/%/prompts.qa \
  $$$$(call manifest,$$$$(call $(1)_model,$$$$(call prev,$$$$*))) $(R)/cfg/$(1)
	$$(run) $$($(1)_ask) --prompts $$< --output $$@ --stage $(1)-$$* --copies $$($(2)COPIES) \
	  $$($(1)_length) --seed $$(SEED)

# The pool before a round tells which of its scores are records (docs/gpu-verdict.md).
$($(1)_rounds:%=$(R)/$(1)/%/$($(1)_first)verdicts.qa): $(R)/$(1)/%/$($(1)_first)verdicts.qa: \
  $(R)/$(1)/%/$($(1)_first)samples.qa \
  $$$$(call $(1)_pool,$$$$(call prev,$$$$*)) $(R)/cfg/device
	$$(run) $(B)/quern-evaluate $$< --output $$@ $$(contents) --best $$(word 2,$$^) --device $$(device)

$($(1)_rounds:%=$(R)/$(1)/%/pool.qa): $(R)/$(1)/%/pool.qa: $(R)/$(1)/%/samples.qa $(R)/$(1)/%/verdicts.qa \
  $$$$(call $(1)_pool,$$$$(call prev,$$$$*)) $(R)/$(1)/%/prompts.qa $($(1)_reviews)
	$$(run) $(B)/quern-pool --pool $$(word 3,$$^) --samples $$(word 1,$$^) --verdicts $$(word 2,$$^) \
	  --output $$@ \
	  --stage $(1) --round $$* $(if $($(1)_searched),,--prompts $$(word 4,$$^)) \
	  $(if $($(1)_reviews),--reviews $$(word 5,$$^))
	$$(live)

# Success, scores, and how often the model's comparisons are right.
$($(1)_rounds:%=$(R)/$(1)/%/metrics.qa): $(R)/$(1)/%/metrics.qa: $(R)/$(1)/%/samples.qa \
  $(R)/$(1)/%/verdicts.qa $$(gap_pools) $(if $(wide_ask),$(R)/cfg/tasks)
	$$(run) $(B)/quern-figures --samples $$(word 1,$$^) --verdicts $$(word 2,$$^) --output $$@ $$(gap) \
	  $$(counted) --round $$*
endef
$(eval $(call round_rules,selfsup,SELFSUP_))
$(eval $(call round_rules,crl,))

# The memory of hacks after each round, and the reviews of a round's records, which may withhold their
# rewards.
crl_hacks = $(if $(filter 0,$(1)),$(R)/collect/hacks.qa,$(R)/crl/$(1)/hacks.qa)
$(R)/collect/hacks.qa: $(R)/collect/samples.qa $(R)/collect/verdicts.qa
	$(run) $(B)/quern-hacks --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@
$(crl_rounds:%=$(R)/crl/%/hacks.qa): $(R)/crl/%/hacks.qa: $(R)/crl/%/samples.qa $(R)/crl/%/verdicts.qa \
  $$(call crl_hacks,$$(call prev,$$*))
	$(run) $(B)/quern-hacks --samples $(word 1,$^) --verdicts $(word 2,$^) --hacks $(word 3,$^) \
	  --output $@
$(crl_rounds:%=$(R)/crl/%/reviews.qa): $(R)/crl/%/reviews.qa: $(R)/crl/%/samples.qa $(R)/crl/%/verdicts.qa \
  $$(call crl_pool,$$(call prev,$$*)) $$(call crl_hacks,$$(call prev,$$*)) $(R)/cfg/crl
	$(run) $(B)/quern-review --samples $(word 1,$^) --verdicts $(word 2,$^) --pool $(word 3,$^) \
	  --hacks $(word 4,$^) \
	  --output $@ $(round_tasks) --judge $(JUDGE) $(if $(filter-out none,$(JUDGE)),$(spend)) \
	  --device $(device) \
	  $(contents:--seed%=--eval-seed%)

# Turn $(1) of stage 3's rounds, after turn $(2): the verdicts go back, and each is answered once.
define turn_rules
$(crl_rounds:%=$(R)/crl/%/turn-$(1)/prompts.qa): $(R)/crl/%/turn-$(1)/prompts.qa: \
  $(R)/crl/%/turn-$(2)/samples.qa \
  $(R)/crl/%/turn-$(2)/verdicts.qa $(R)/cfg/crl $(R)/cfg/tasks $(facts_file)
	$$(run) $(B)/quern-refine --samples $$(word 1,$$^) --verdicts $$(word 2,$$^) --output $$@ \
	  --turn $(1) $$(round_tasks) \
	  --style $$(STYLE) $$(facts)

$(crl_rounds:%=$(R)/crl/%/turn-$(1)/samples.qa): $(R)/crl/%/turn-$(1)/samples.qa: \
  $(R)/crl/%/turn-$(1)/prompts.qa \
  $$$$(call manifest,$$$$(call crl_model,$$$$(call prev,$$$$*))) $(R)/cfg/crl
	$$(run) $$(crl_ask) --prompts $$< --output $$@ --stage crl-$$* --copies 1 $$(crl_length) \
	  --seed $$(SEED)

$(crl_rounds:%=$(R)/crl/%/turn-$(1)/verdicts.qa): $(R)/crl/%/turn-$(1)/verdicts.qa: \
  $(R)/crl/%/turn-$(1)/samples.qa \
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
selfsup: $(if $(trained),$(before_crl)/manifest.qa,$(call selfsup_pool,$(SELFSUP_ROUNDS))) $(full_pool)
$(selfsup_rounds:%=$(R)/selfsup/%/model/manifest.qa): $(R)/selfsup/%/model/manifest.qa: \
  $(R)/selfsup/%/samples.qa \
  $(R)/selfsup/%/verdicts.qa $$(call selfsup_model,$$(call prev,$$*))/manifest.qa $(R)/sft/dataset.qa \
  $(R)/cfg/selfsup
	$(run) $(B)/quern-selfsup --base $(call selfsup_model,$(call prev,$*)) --samples $(word 1,$^) \
	  --verdicts $(word 2,$^) \
	  --history "$(call history,selfsup,$*)" --rehearse $(R)/sft/dataset.qa --output $(@D) $(SELFSUP) \
	  $(training) \
	  $(memory) --seed $(SEED)

# Stage 3
ifeq ($(UPDATE),sft)
# More of stage 1: the template teacher's kernels of the round, as examples.
$(crl_rounds:%=$(R)/crl/%/dataset.qa): $(R)/crl/%/dataset.qa: $(R)/crl/%/samples.qa $(R)/crl/%/verdicts.qa \
  $(facts_file)
	$(run) $(B)/quern-filter --samples $(word 1,$^) --verdicts $(word 2,$^) --output $@ $(round_tasks) \
	  --contrastive $(CONTRASTIVE) --drills $(DRILLS) --corrections $(CORRECTIONS) --style $(STYLE) \
	  $(facts) --seed $(SEED)
$(crl_rounds:%=$(R)/crl/%/model/manifest.qa): $(R)/crl/%/model/manifest.qa: $(R)/crl/%/dataset.qa \
  $$(call crl_model,$$(call prev,$$*))/manifest.qa $(R)/cfg/crl
	$(run) $(B)/quern-sft --dataset $< --base $(call crl_model,$(call prev,$*)) --output $(@D) $(SFT) \
	  $(training) \
	  $(memory) --seed $(SEED)
else
$(crl_rounds:%=$(R)/crl/%/model/manifest.qa): $(R)/crl/%/model/manifest.qa: $(R)/crl/%/samples.qa \
  $(R)/crl/%/verdicts.qa $$(call crl_model,$$(call prev,$$*))/manifest.qa $(crl_reviews) $(R)/cfg/crl
	$(run) $(B)/quern-crl --base $(call crl_model,$(call prev,$*)) --samples $(word 1,$^) \
	  --verdicts $(word 2,$^) \
	  --output $(@D) --reviews $(word 4,$^) --history "$(call history,crl,$*)" \
	  --reference $(call selfsup_model,$(SELFSUP_ROUNDS)) $(CRL) \
	  $(training) $(memory) --seed $(SEED)
endif

