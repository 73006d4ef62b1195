# Every stage once, small: it shows in under three minutes on 2 cores whether the whole pipeline runs here.
# The model learns too little to write many correct kernels.
TRIALS ?= 80
KEEP ?= 32
MISTAKES ?= 0.15
CONTRASTIVE ?= 0.5
DRILLS ?= 1
SMALL_MODEL ?= --vocab 1280 --hidden 128 --ff 352 --layers 2 --heads 4 --kv-heads 2
SFT ?= --plain-epochs 12 --epochs 2 --batch 8 --lr 4e-3
MAX_NEW ?= 700
BATCH ?= 64
SELFSUP_ROUNDS ?= 1
SELFSUP_GROUPS ?= 3
SELFSUP_PLAIN ?= 2
SELFSUP_COPIES ?= 8
SELFSUP ?= --epochs 1 --batch 8 --lr 4e-4
ROUNDS ?= 1
GROUPS ?= 3
PLAIN ?= 2
COPIES ?= 8
CRL ?= --epochs 1 --batch 16 --lr 2e-4
EXEMPLARS ?= --exemplars 2
REPORT_SAMPLES ?= 12
