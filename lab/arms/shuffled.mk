# The placebo: true exemplars, permuted scores.
LAB_RULE = shuffled
