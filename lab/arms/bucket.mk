# Exemplars from buckets of scores: the paper's rule.
LAB_RULE = bucket
