# The learning question: each stage's own worth, with intervals over seeds, on composed tasks. It wants a GPU
# for the model and many cores for the simulators. A wide set of other compositions, which stage 1 learns from
# and of which each later round asks some, is made first:
#   quern generate --train 2000 --composition 0 --family 0 --seed 7 --beside tasks/composed -o tasks/wide
#   make -j4 ablation CONFIG=configs/learning.mk RUN=learning ENGINE=cuda:0 SEEDS=1,2,3,4,5 \
#     ARMS=bucket,shuffled,none,random,island,evolve,more-sft,template
TASKS ?= composed/*
WIDE ?= wide/*
WIDE_KEEP ?= 4
SELFSUP_WIDE_ASK ?= 150
WIDE_ASK ?= 60
WIDE_COPIES ?= 5
STARTER ?= none
MISTAKES ?= 0.1
WITHHOLD ?= 1
TRIALS ?= 50
KEEP ?= 30
CONTRASTIVE ?= 1
DRILLS ?= 1
SMALL_MODEL ?= --vocab 2048 --hidden 384 --ff 1024 --layers 8 --heads 6 --kv-heads 6 --context 3000
SFT ?= --validation 0.04 --plain-epochs 10 --epochs 4 --batch 32 --lr 2e-3
MAX_NEW ?= 2000
BATCH ?= 256
SELFSUP_ROUNDS ?= 2
SELFSUP_GROUPS ?= 1
SELFSUP_PLAIN ?= 1
SELFSUP_COPIES ?= 16
SELFSUP ?= --epochs 1 --batch 32 --lr 2e-4 --rehearse-share 0.2
ROUNDS ?= 4
HELDOUT_EVERY ?= 1
GROUPS ?= 2
PLAIN ?= 1
COPIES ?= 8
CRL ?= --epochs 1 --batch 64 --lr 2e-4 --reward-clip 4 --best-of 4 --success-worth 0.5
EXEMPLARS ?= --exemplars 2 --tau 4
REPORT_SAMPLES ?= 8
CLASSES ?= sim:h100
