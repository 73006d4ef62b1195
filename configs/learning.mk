# The learning question: each stage's own worth, with intervals over seeds. On an idle machine:
#   make -j4 ablation CONFIG=configs/learning.mk RUN=learning SEEDS=1,2,3,4,5 \
#     ARMS=bucket,shuffled,none,random,island,evolve,more-sft,template
# The default run with fewer samples a round, since a table has arms times seeds of it.
KEEP ?= 120
TRIALS ?= 300
SELFSUP_ROUNDS ?= 1
SELFSUP_COPIES ?= 24
ROUNDS ?= 4
GROUPS ?= 6
PLAIN ?= 2
COPIES ?= 16
REPORT_SAMPLES ?= 32
CLASSES ?= sim:h100
