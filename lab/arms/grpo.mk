# GRPO: ratio clipped on both sides alike, every answer weighs the same.
CRL = --loss grpo --epochs 1 --batch 32 --lr 1.5e-4 --reward-clip 4 --best-of 8 --success-worth 0.1
