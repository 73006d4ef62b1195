B = 1
include c.mk
