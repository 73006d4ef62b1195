# The default run: about eleven minutes on 2 cores without a GPU. A model of 1.0 M parameters that has seen
# 574 other tasks (share/starter) learns from the generator on 18 composed tasks. Eight of other
# compositions are held out.
TASKS ?= silu_bias,sigmoid_rowmul,hswish_gate_relu,softplus_res_leaky_rowmul,rowmul_amax,res_mean_rowmul,bias_norm_rowadd,gelu_softmax,gate_logsoftmax,gate_layernorm,sigmoid_rmsnorm_clamp,tanh_center_softplus_f16,mm_tanh,mm_silu_f16,linear_sigmoid_amax,silu_cumsum,turn_hswish,gelu_avgpool,silu_bias_sigmoid,gate_relu_res_softplus,hswish_bias,gelu_rowmul_center_clamp,silu_layernorm_res,linear_silu_rowmul,linear_gelu_mean_bf16,scale_mean_rowadd
STARTER ?= share/starter
TEACHERS ?= generator
COLLECT ?= --trials 40 --keep 24 --mistakes 0.15
FILTER ?= --contrastive 0.6 --drills 1
SMALL_MODEL ?= --vocab 2048 --hidden 128 --ff 352 --layers 4 --heads 4 --kv-heads 2
SFT ?= --plain-epochs 2 --epochs 1 --batch 16 --lr 7e-4
SAMPLE ?= --max-new 1200 --batch 64
SELFSUP_ROUNDS ?= 2
SELFSUP_PROMPTS ?= --groups 1 --plain 1 --exemplars 2 --copies 12
SELFSUP ?= --epochs 1 --batch 16 --lr 2e-4
ROUNDS ?= 6
PROMPTS ?= --groups 2 --plain 1 --exemplars 2 --copies 8
CRL ?= --epochs 1 --batch 32 --lr 3e-4 --reward-clip 4 --best-of 4 --success-worth 0.5
REPORT_SAMPLES ?= 16
