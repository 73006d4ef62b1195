# Evolution without learning: prompts and pool change, the model does not.
UPDATE = none
