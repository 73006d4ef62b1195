# make optimize: one task, searched by the teachers and the policy, round after round.
COLLECT ?= --trials 400 --keep 200 --mistakes 0
FILTER ?= --contrastive 0.6 --drills 2
SMALL_MODEL ?= --vocab 1280 --hidden 128 --ff 352 --layers 2 --heads 4 --kv-heads 2
SFT ?= --plain-epochs 6 --epochs 2 --batch 8 --lr 4e-3
SAMPLE ?= --max-new 1200 --batch 64
SELFSUP_ROUNDS ?= 1
SELFSUP_PROMPTS ?= --groups 8 --plain 6 --exemplars 2 --copies 16
SELFSUP ?= --epochs 1 --batch 8 --lr 4e-4
ROUNDS ?= 4
PROMPTS ?= --groups 12 --plain 6 --exemplars 2 --copies 16
CRL ?= --epochs 1 --batch 16 --lr 2e-4 --reward-clip 4 --best-of 8
REPORT_SAMPLES ?= 32
