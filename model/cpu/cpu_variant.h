/* The names of the two variants of the CPU's files. attention_cpu.c, decode_cpu.c, decoder_cpu.c,
 * draw_cpu.c and ops_cpu.c are compiled twice, for the build's processor and for one with AVX-512.
 * The compiler is told to include this header first, with CPU_VARIANT set to narrow or wide, so
 * that every external name of these files ends with it. cpu_choice.c has the names without it. */
#ifndef MODEL_CPU_CPU_VARIANT_H
#define MODEL_CPU_CPU_VARIANT_H

#ifdef CPU_VARIANT
#define CPU_JOIN(name, variant) name##_##variant
#define CPU_EXPAND(name, variant) CPU_JOIN(name, variant)
#define CPU_NAME(name) CPU_EXPAND(name, CPU_VARIANT)
#define ops_cpu CPU_NAME(ops_cpu)
#define cpu_threads CPU_NAME(cpu_threads)
#define decoder_create_cpu CPU_NAME(decoder_create_cpu)
#define decoder_memory_cpu CPU_NAME(decoder_memory_cpu)
#define draw_sorts CPU_NAME(draw_sorts)
#define draw_token CPU_NAME(draw_token)
#define cpu_attention CPU_NAME(cpu_attention)
#define cpu_attention_grad CPU_NAME(cpu_attention_grad)
#define cpu_attention_cached CPU_NAME(cpu_attention_cached)
#define cpu_pack CPU_NAME(cpu_pack)
#define cpu_matmul_packed CPU_NAME(cpu_matmul_packed)
#define cpu_add_bias CPU_NAME(cpu_add_bias)
#define cpu_kv_put CPU_NAME(cpu_kv_put)
#endif

#endif
