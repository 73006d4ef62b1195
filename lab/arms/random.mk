# Exemplars drawn uniformly.
RULE = random
