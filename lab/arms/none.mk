# No exemplars: every prompt is plain.
RULE = none
