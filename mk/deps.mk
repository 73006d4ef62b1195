# Packages, NVRTC and CUTLASS's headers: looked at once; `make deps` looks again. Objects wait for it, a built
# tree does not ask.
$(BUILD)/deps: mk/deps.sh
	@mkdir -p $(BUILD)
	@mk/deps.sh $(BUILD)
	@touch $@

.PHONY: deps
deps:
	@rm -f $(BUILD)/deps; $(MAKE) --no-print-directory $(BUILD)/deps && \
	  echo "quern: everything that is needed is here"
