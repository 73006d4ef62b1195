# The small model from random weights, for tasks without a graph, such as tasks/softmax: the starter has not
# seen prompts without a formula. Eleven minutes for all of them on 2 cores:
#   make -j4 crl CONFIG=configs/scratch.mk
RUN ?= scratch
TASKS ?= all
STARTER ?= none
TEACHERS ?= generator
COLLECT ?= --trials 250 --keep 100 --mistakes 0.15
FILTER ?= --contrastive 0.6 --drills 2
SMALL_MODEL ?= --vocab 2048 --hidden 128 --ff 352 --layers 4 --heads 4 --kv-heads 2
SFT ?= --plain-epochs 4 --epochs 2 --batch 8 --lr 3e-3
SAMPLE ?= --max-new 900 --batch 64
SELFSUP_ROUNDS ?= 2
SELFSUP_PROMPTS ?= --groups 8 --plain 6 --exemplars 2 --copies 24
SELFSUP ?= --epochs 1 --batch 16 --lr 1e-3
ROUNDS ?= 6
PROMPTS ?= --groups 8 --plain 6 --exemplars 2 --copies 12
CRL ?= --epochs 1 --batch 32 --lr 1.5e-4 --reward-clip 4 --best-of 8 --success-worth 0.1
REPORT_SAMPLES ?= 48
