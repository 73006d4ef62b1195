ROUNDS = 1
include 200 200 200
include configs/smoke.mk
