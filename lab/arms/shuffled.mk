# The placebo: true exemplars, permuted scores.
RULE = shuffled
