# No exemplars: every prompt is plain.
LAB_RULE = none
