# More of stage 1: the model learns from as many of the template teacher's kernels.
LAB_UPDATE = sft
UPDATE = learn
RULE = none
