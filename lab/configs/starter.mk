# The model that the default run starts from: stage 1 alone, on generated tasks (share/starter/README.md).
TASKS ?= wide/*
STARTER ?= none
TEACHERS ?= generator
LAB_WITHHOLD ?= 1
COLLECT ?= --trials 8 --keep 4 --mistakes 0.1
FILTER ?= --contrastive 0.6 --drills 2
SMALL_MODEL ?= --vocab 2048 --hidden 128 --ff 352 --layers 4 --heads 4 --kv-heads 2 --context 2048
SFT ?= --validation 0.04 --plain-epochs 10 --epochs 4 --batch 32 --lr 4e-3
