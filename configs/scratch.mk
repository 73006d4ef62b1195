# The small model from random weights, for tasks without a graph, such as tasks/softmax: the starter has not
# seen prompts without a formula. Eleven minutes for all of them on 2 cores:
#   make -j4 crl CONFIG=configs/scratch.mk
RUN ?= scratch
TASKS ?= all
STARTER ?= none
TRIALS ?= 250
KEEP ?= 100
MISTAKES ?= 0.15
CONTRASTIVE ?= 0.6
DRILLS ?= 2
SMALL_MODEL ?= --vocab 2048 --hidden 128 --ff 352 --layers 4 --heads 4 --kv-heads 2
SFT ?= --plain-epochs 4 --epochs 2 --batch 8 --lr 3e-3
MAX_NEW ?= 900
BATCH ?= 64
SELFSUP_ROUNDS ?= 2
SELFSUP_GROUPS ?= 8
SELFSUP_PLAIN ?= 6
SELFSUP_COPIES ?= 24
SELFSUP ?= --epochs 1 --batch 16 --lr 1e-3
ROUNDS ?= 6
GROUPS ?= 8
PLAIN ?= 6
COPIES ?= 12
CRL ?= --epochs 1 --batch 32 --lr 1.5e-4 --reward-clip 4 --best-of 8 --success-worth 0.1
EXEMPLARS ?= --exemplars 2
REPORT_SAMPLES ?= 48
