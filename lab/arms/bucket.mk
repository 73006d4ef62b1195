# Exemplars from buckets of scores: the paper's rule.
RULE = bucket
