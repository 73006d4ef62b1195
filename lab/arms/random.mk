# Exemplars drawn uniformly.
LAB_RULE = random
