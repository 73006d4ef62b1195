# a comment that goes on \
ROUNDS = 1
 CRL = --epochs 1 \
	--lr 1e-4 # and a comment
TRAINER = sh -c 'echo $$HOME "a  b" \# 1) \\'
TASKS ::= relu, gelu,
CLASSES := sim:l40,,sim:h100 sim:l40
COLLECT ?= --keep 8
SEED=4
BUDGET = 30m, 200 requests, $$5
POLICY = openai:M
