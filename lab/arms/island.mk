# Exemplars from four islands.
LAB_RULE = island
