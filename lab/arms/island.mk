# Exemplars from four islands.
RULE = island
