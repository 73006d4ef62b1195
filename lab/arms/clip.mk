# The smoothed reward clipped at 1.5 deviations, the paper's value.
CRL = --epochs 1 --batch 32 --lr 1.5e-4 --reward-clip 1.5 --best-of 8 --success-worth 0.1
