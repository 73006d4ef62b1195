# Every stage once, small: it shows in under three minutes on 2 cores whether the whole pipeline runs here.
# The model learns too little to write many correct kernels.
COLLECT ?= --trials 80 --keep 32 --mistakes 0.15
FILTER ?= --contrastive 0.5 --drills 1
SMALL_MODEL ?= --vocab 1280 --hidden 128 --ff 352 --layers 2 --heads 4 --kv-heads 2
SFT ?= --plain-epochs 12 --epochs 2 --batch 8 --lr 4e-3
SAMPLE ?= --max-new 700 --batch 64
SELFSUP_ROUNDS ?= 1
SELFSUP_PROMPTS ?= --groups 3 --plain 2 --exemplars 2 --copies 8
SELFSUP ?= --epochs 1 --batch 8 --lr 4e-4
ROUNDS ?= 1
PROMPTS ?= --groups 3 --plain 2 --exemplars 2 --copies 8
CRL ?= --epochs 1 --batch 16 --lr 2e-4
REPORT_SAMPLES ?= 12
