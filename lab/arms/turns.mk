# Three answers in a row to each prompt, each after the verdict on the one before.
TURNS = 3
