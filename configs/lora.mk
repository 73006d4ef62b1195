# An adapter on open weights, with POLICY=openai:MODEL BASE=DIR or as here:
#   make -j crl POLICY=native:DIR CONFIG=configs/lora.mk
# The settings of the profiles are for a small model from scratch. These are the values of published
# work on kernels (rank, learning rates, group size, leave-one-out advantages); they were not tuned for Quern.
RUN ?= lora
TASKS ?= all
LORA ?= 32
LORA_ALPHA ?= 64
SFT ?= --epochs 2 --batch 16 --lr 1e-4 --weight-decay 0 --context 8192
SELFSUP ?= --epochs 1 --batch 16 --lr 2e-5 --context 8192
CRL ?= --loss rloo --epochs 1 --batch 128 --lr 2e-5 --context 12288 --best-of 8 --success-worth 0.1
MAX_NEW ?= 4096
BATCH ?= 128
TRIALS ?= 60
KEEP ?= 24
SELFSUP_ROUNDS ?= 2
SELFSUP_GROUPS ?= 3
SELFSUP_PLAIN ?= 1
SELFSUP_COPIES ?= 16
ROUNDS ?= 8
GROUPS ?= 3
PLAIN ?= 1
COPIES ?= 16
REPORT_SAMPLES ?= 16
