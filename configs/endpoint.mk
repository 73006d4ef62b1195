# A model behind an endpoint, as it is:
#   make -j crl POLICY=openai:MODEL CONFIG=configs/endpoint.mk BUDGET='$$20'
# The model already writes CUDA, so stage 1 is skipped; nothing is trained, so there is no stage 2 and stage 3
# evolves prompts and pool. Answers may be long, for models that reason: the reasoning is kept apart from the
# answer.
RUN ?= endpoint
TASKS ?= all
STAGE1 ?= 0
TRIALS ?= 20
KEEP ?= 2
UPDATE ?= none
MAX_NEW ?= 32768
BATCH ?= 64
SELFSUP_ROUNDS ?= 0
ROUNDS ?= 5
GROUPS ?= 2
PLAIN ?= 0
COPIES ?= 4
TURNS ?= 3
REPORT_SAMPLES ?= 8
