# A night on a workstation's CPU: more kernels from the teachers, a wider model, many rounds. Use it as
# make -j crl CONFIG=configs/overnight.mk. A setting that is not here has the profile's value.
RUN ?= overnight
TASKS ?= all
STARTER ?= none
TEACHERS ?= generator
COLLECT ?= --trials 600 --keep 200 --mistakes 0.15
SMALL_MODEL ?= --vocab 2048 --hidden 256 --ff 704 --layers 6 --heads 8 --kv-heads 4
SFT ?= --plain-epochs 6 --epochs 3 --batch 16 --lr 2e-3
SELFSUP_ROUNDS ?= 4
SELFSUP_PROMPTS ?= --groups 12 --plain 1 --exemplars 2 --copies 12
ROUNDS ?= 24
PROMPTS ?= --groups 12 --plain 1 --exemplars 2 --copies 8
REPORT_SAMPLES ?= 64
