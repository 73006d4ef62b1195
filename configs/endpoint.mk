# A model behind an endpoint, as it is:
#   make -j crl POLICY=openai:MODEL CONFIG=configs/endpoint.mk BUDGET='$$20'
# The model already writes CUDA, so stage 1 is skipped; nothing is trained, so there is no stage 2 and stage 3
# evolves prompts and pool. Answers may be long, for models that reason: the reasoning is kept apart from the
# answer.
RUN ?= endpoint
TASKS ?= all
TEACHERS ?= none
COLLECT ?= --trials 20 --keep 2 --mistakes 0.15
UPDATE ?= none
SAMPLE ?= --max-new 32768 --batch 64
SELFSUP_ROUNDS ?= 0
ROUNDS ?= 5
PROMPTS ?= --groups 2 --plain 0 --exemplars 2 --copies 4
TURNS ?= 3
REPORT_SAMPLES ?= 8
