# Packages, NVRTC and CUTLASS's headers: looked at once; `make deps` looks again. Objects wait for it, a built
# tree does not ask.
$(BUILD)/deps: mk/deps.sh
	@mkdir -p $(BUILD)
	@rm -f $@
	@mk/deps.sh $(BUILD)
	@touch $@

ifneq ($(filter deps,$(MAKECMDGOALS)),)
.PHONY: $(BUILD)/deps
endif

.PHONY: deps
deps: $(BUILD)/deps
	@echo "quern: everything that is needed is here"
