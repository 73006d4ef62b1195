# A night on a workstation's CPU: more kernels from the teachers, a wider model, many rounds. Use it as
# make -j crl CONFIG=configs/overnight.mk. A setting that is not here has the profile's value.
RUN ?= overnight
TASKS ?= all
STARTER ?= none
KEEP ?= 200
TRIALS ?= 600
SMALL_MODEL ?= --vocab 2048 --hidden 256 --ff 704 --layers 6 --heads 8 --kv-heads 4
SFT ?= --plain-epochs 6 --epochs 3 --batch 16 --lr 2e-3
SELFSUP_ROUNDS ?= 4
SELFSUP_GROUPS ?= 12
ROUNDS ?= 24
GROUPS ?= 12
REPORT_SAMPLES ?= 64
