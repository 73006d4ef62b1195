# Every stage once, small: does the whole pipeline run here? Under three minutes on 2 cores; the model
# learns too little to write many kernels.
TRIALS ?= 40
KEEP ?= 16
MISTAKES ?= 0.15
CONTRASTIVE ?= 1
SMALL_MODEL ?= --vocab 1024 --hidden 128 --ff 352 --layers 3 --heads 4 --kv-heads 2 --context 2048
SFT ?= --epochs 4 --batch 16 --lr 3e-3
MAX_NEW ?= 700
BATCH ?= 64
SELFSUP_ROUNDS ?= 1
SELFSUP_GROUPS ?= 2
SELFSUP_PLAIN ?= 1
SELFSUP_COPIES ?= 4
SELFSUP ?= --epochs 1 --batch 8 --lr 4e-4
ROUNDS ?= 1
GROUPS ?= 2
PLAIN ?= 1
COPIES ?= 4
CRL ?= --epochs 1 --batch 8 --lr 2e-4
EXEMPLARS ?= --exemplars 2 --rule bucket
REPORT_SAMPLES ?= 8
