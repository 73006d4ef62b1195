# An adapter on open weights, with POLICY=openai:MODEL BASE=DIR or as here:
#   make -j crl POLICY=native:DIR CONFIG=configs/lora.mk
# The settings of the profiles are for a small model from scratch. These are the values of published
# work on kernels (rank, learning rates, group size, leave-one-out advantages); they were not tuned for Quern.
RUN ?= lora
TASKS ?= all
TEACHERS ?= generator
LORA ?= 32
TRAINING ?= --lora-alpha 64
SFT ?= --epochs 2 --batch 16 --lr 1e-4 --weight-decay 0 --context 8192
SELFSUP ?= --epochs 1 --batch 16 --lr 2e-5 --context 8192
CRL ?= --loss rloo --epochs 1 --batch 128 --lr 2e-5 --context 12288 --best-of 8 --success-worth 0.1
SAMPLE ?= --max-new 4096 --batch 128
COLLECT ?= --trials 60 --keep 24 --mistakes 0.15
SELFSUP_ROUNDS ?= 2
SELFSUP_PROMPTS ?= --groups 3 --plain 1 --exemplars 2 --copies 16
ROUNDS ?= 8
PROMPTS ?= --groups 3 --plain 1 --exemplars 2 --copies 16
REPORT_SAMPLES ?= 16
