# The learning question: each stage's own worth, with intervals over seeds, on composed tasks. It wants a GPU
# for the model and many cores for the simulators. A wide set of other compositions, which stage 1 learns from
# and of which each later round asks some, is made first:
#   quern generate --train 2000 --composition 0 --family 0 --seed 7 --beside tasks/composed -o tasks/wide
#   make -j4 ablation CONFIG=lab/configs/learning.mk RUN=learning ENGINE=cuda:0 SEEDS=1,2,3,4,5 \
#     ARMS=bucket,shuffled,none,random,island,evolve,more-sft,generator
TASKS ?= composed/*
LAB_WIDE ?= wide/*
LAB_WIDE_COLLECT ?= --trials 8 --keep 4 --mistakes 0.1
LAB_SELFSUP_WIDE ?= 150
LAB_CRL_WIDE ?= 60
STARTER ?= none
TEACHERS ?= generator
COLLECT ?= --trials 50 --keep 30 --mistakes 0.1
LAB_WITHHOLD ?= 1
FILTER ?= --contrastive 1 --drills 1
SMALL_MODEL ?= --vocab 2048 --hidden 384 --ff 1024 --layers 8 --heads 6 --kv-heads 6 --context 3000
SFT ?= --validation 0.04 --plain-epochs 10 --epochs 4 --batch 32 --lr 2e-3
SAMPLE ?= --max-new 2000 --batch 256
SELFSUP_ROUNDS ?= 2
SELFSUP_PROMPTS ?= --groups 1 --plain 1 --exemplars 2 --tau 4 --copies 16
SELFSUP ?= --epochs 1 --batch 32 --lr 2e-4 --rehearse-share 0.2
ROUNDS ?= 4
LAB_HELDOUT_EVERY ?= 1
PROMPTS ?= --groups 2 --plain 1 --exemplars 2 --tau 4 --copies 8
CRL ?= --epochs 1 --batch 64 --lr 2e-4 --reward-clip 4 --best-of 4 --success-worth 0.5
REPORT_SAMPLES ?= 8
CLASSES ?= sim:h100
