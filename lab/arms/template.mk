# Random search with the template teacher, with as many evaluations, whatever the prompts show.
LAB_UPDATE = template
UPDATE = none
RULE = none
