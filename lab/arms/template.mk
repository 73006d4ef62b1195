# Random search with the template teacher, with as many evaluations.
UPDATE = template
