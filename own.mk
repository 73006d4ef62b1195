ROUNDS = 5
SEED = 6
KEEP = 7
RUN ?= own
