# Random search with the generator, with as many evaluations, whatever the prompts show.
LAB_UPDATE = generator
UPDATE = none
LAB_RULE = none
