# The group's mean in place of the expected best of 8.
CRL = --epochs 1 --batch 32 --lr 1.5e-4 --reward-clip 4 --best-of 1 --success-worth 0.1
