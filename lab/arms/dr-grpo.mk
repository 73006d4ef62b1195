# Dr.GRPO: centred rewards, a constant normaliser.
CRL = --loss dr-grpo --epochs 1 --batch 32 --lr 1.5e-4 --reward-clip 4 --best-of 8 --success-worth 0.1
