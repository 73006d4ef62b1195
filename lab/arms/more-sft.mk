# More of stage 1: the model learns from as many of kernels that the generator draws.
LAB_UPDATE = sft
UPDATE = learn
LAB_RULE = none
