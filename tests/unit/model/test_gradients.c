/* The forward and backward passes of the engine against a plain transformer in double precision,
 * which shares only the names of the tensors: log-probabilities directly, and every gradient by
 * central differences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "model/cpu/ops_cpu.h"
#include "model/trainer_state.h"
#include "tests/unit/model/model_support.h"

enum { LEN = 11 };

static const double *view(const Model *m, const double *p, const char *name)
{
    for (int i = 0; i < m->base.n; i++)
        if (!strcmp(m->base.tensor[i].name, name)) return p + m->base.tensor[i].at;
    return NULL;
}

static const double *layer_view(const Model *m, const double *p, int layer, const char *suffix)
{
    char name[96];
    snprintf(name, sizeof name, "model.layers.%d.%s", layer, suffix);
    return view(m, p, name);
}

static void ref_norm(double *y, const double *x, const double *w, int n, double eps)
{
    double ms = 0;
    for (int i = 0; i < n; i++) ms += x[i] * x[i];
    double inv = 1 / sqrt(ms / n + eps);
    for (int i = 0; i < n; i++) y[i] = x[i] * inv * w[i];
}

/* y[out] = W x + b */
static void ref_linear(double *y, const double *w, const double *b, const double *x, int out,
                       int in)
{
    for (int o = 0; o < out; o++) {
        y[o] = b ? b[o] : 0;
        for (int i = 0; i < in; i++) y[o] += w[(size_t)o * (size_t)in + (size_t)i] * x[i];
    }
}

static void ref_rope(double *x, int pos, int dim, double theta)
{
    for (int i = 0; i < dim / 2; i++) {
        double angle = pos * pow(theta, -2.0 * i / dim), a = x[i], b = x[i + dim / 2];
        x[i] = a * cos(angle) - b * sin(angle);
        x[i + dim / 2] = b * cos(angle) + a * sin(angle);
    }
}

static void ref_heads(const Model *m, const double *p, int layer, const char *which,
                      const double *x, double *out, int pos)
{
    const ModelConfig *c = &m->c;
    const int heads = which[0] == 'q' ? c->heads : c->kv_heads;
    char weight[64], bias[64], norm[64];
    snprintf(weight, sizeof weight, "self_attn.%s_proj.weight", which);
    snprintf(bias, sizeof bias, "self_attn.%s_proj.bias", which);
    snprintf(norm, sizeof norm, "self_attn.%s_norm.weight", which);
    ref_linear(out, layer_view(m, p, layer, weight), layer_view(m, p, layer, bias), x,
               heads * c->head_dim, c->hidden);
    for (int h = 0; h < heads && which[0] != 'v'; h++) {
        double *one = out + h * c->head_dim;
        if (c->qk_norm)
            ref_norm(one, one, layer_view(m, p, layer, norm), c->head_dim, (double)c->norm_eps);
        ref_rope(one, pos, c->head_dim, (double)c->rope_theta);
    }
}

/* One query position. k and v have 64 doubles per position. */
static void ref_attend(const ModelConfig *c, const double *q, double (*k)[64], double (*v)[64],
                       int t, double *out)
{
    int d = c->head_dim;
    for (int h = 0; h < c->heads; h++) {
        int kv = h / (c->heads / c->kv_heads);
        double s[LEN], top = -1e300, sum = 0;
        for (int j = 0; j <= t; j++) {
            s[j] = 0;
            for (int i = 0; i < d; i++) s[j] += q[h * d + i] * k[j][kv * d + i];
            s[j] /= sqrt(d);
            if (s[j] > top) top = s[j];
        }
        for (int j = 0; j <= t; j++) sum += s[j] = exp(s[j] - top);
        for (int i = 0; i < d; i++) {
            out[h * d + i] = 0;
            for (int j = 0; j <= t; j++) out[h * d + i] += s[j] / sum * v[j][kv * d + i];
        }
    }
}

static void ref_layer(const Model *m, const double *p, int layer, double (*x)[64], int len)
{
    const ModelConfig *c = &m->c;
    double n[64], q[64], k[LEN][64], v[LEN][64], att[64], out[64], gate[64], up[64];
    for (int t = 0; t < len; t++) {
        ref_norm(n, x[t], layer_view(m, p, layer, "input_layernorm.weight"), c->hidden,
                 (double)c->norm_eps);
        ref_heads(m, p, layer, "q", n, q, t);
        ref_heads(m, p, layer, "k", n, k[t], t);
        ref_heads(m, p, layer, "v", n, v[t], t);
        ref_attend(c, q, k, v, t, att);
        ref_linear(out, layer_view(m, p, layer, "self_attn.o_proj.weight"), NULL, att, c->hidden,
                   c->heads * c->head_dim);
        for (int i = 0; i < c->hidden; i++) x[t][i] += out[i];
        ref_norm(n, x[t], layer_view(m, p, layer, "post_attention_layernorm.weight"), c->hidden,
                 (double)c->norm_eps);
        ref_linear(gate, layer_view(m, p, layer, "mlp.gate_proj.weight"), NULL, n, c->ff,
                   c->hidden);
        ref_linear(up, layer_view(m, p, layer, "mlp.up_proj.weight"), NULL, n, c->ff, c->hidden);
        for (int i = 0; i < c->ff; i++) gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
        ref_linear(out, layer_view(m, p, layer, "mlp.down_proj.weight"), NULL, gate, c->hidden,
                   c->ff);
        for (int i = 0; i < c->hidden; i++) x[t][i] += out[i];
    }
}

/* sum over t >= 1 of weight[t] log p(ids[t] | ids[<t]) */
static double reference_loss(const Model *m, const double *p, const int32_t *ids, int len,
                             const float *weight, double *logp)
{
    const ModelConfig *c = &m->c;
    double x[LEN][64], n[64], z[64], loss = 0;
    const double *embed = view(m, p, "model.embed_tokens.weight"),
                 *head = c->tied ? embed : view(m, p, "lm_head.weight");
    for (int t = 0; t < len; t++)
        for (int i = 0; i < c->hidden; i++) x[t][i] = embed[ids[t] * c->hidden + i];
    for (int l = 0; l < c->layers; l++) ref_layer(m, p, l, x, len);
    for (int t = 0; t + 1 < len; t++) {
        ref_norm(n, x[t], view(m, p, "model.norm.weight"), c->hidden, (double)c->norm_eps);
        ref_linear(z, head, NULL, n, c->vocab, c->hidden);
        double sum = 0;
        for (int i = 0; i < c->vocab; i++) sum += exp(z[i]);
        double lp = z[ids[t + 1]] - log(sum);
        if (logp) logp[t + 1] = lp;
        loss += (double)weight[t + 1] * lp;
    }
    return loss;
}

typedef struct {
    const float *weight;
    int len;
} Given;

static void give(void *ctx, int sequence, const float *logp, float *weight)
{
    const Given *g = ctx;
    (void)logp;
    memcpy(weight, g[sequence].weight, (size_t)g[sequence].len * sizeof *weight);
}

static void draw_ids(Random *r, int32_t *ids, float *weight, int len, int vocab)
{
    for (int t = 0; t < len; t++) {
        ids[t] = (int32_t)random_below(r, (uint64_t)vocab);
        weight[t] = t > 3 ? (float)random_normal(r) : 0; /* a prompt without weights */
    }
}

static void compare_tensor(const Tensor *t, const float *got, const double *want)
{
    double dot = 0, a = 0, b = 0;
    for (size_t i = 0; i < t->count; i++) {
        dot += (double)got[i] * want[i];
        a += (double)got[i] * (double)got[i];
        b += want[i] * want[i];
    }
    assert_true(b > 0);
    double cosine = dot / sqrt(a * b), norm = sqrt(a / b);
    if (!(cosine > 0.9999) || !(fabs(norm - 1) < 1e-3))
        fail_msg("%s: cosine %.7f, norm ratio %.6f (expected over 0.9999 and 1 within 0.001)",
                 t->name, cosine, norm);
}

static void check_family(const char *type)
{
    Model *m = tiny_of(type, ops_cpu(), 5, 2);
    Trainer *tr;
    Error err;
    assert_int_equal(trainer_create(m, &(TrainerOptions){.max_tokens = 64}, &tr, &err), 0);
    Random r;
    random_init(&r, 3, 0);
    int32_t ids[LEN];
    float weight[LEN], engine[LEN], *rows[1] = {engine};
    draw_ids(&r, ids, weight, LEN, m->c.vocab);
    double *p = memory_array(m->base.size, sizeof *p),
           *want = memory_array(m->base.size, sizeof *want), logp[LEN] = {0};
    for (size_t i = 0; i < m->base.size; i++) p[i] = (double)((float *)m->base.data)[i];

    Sequence seq = {ids, LEN};
    double loss, expected = reference_loss(m, p, ids, LEN, weight, logp);
    assert_int_equal(model_logprobs(m, &seq, 1, rows, &err), 0);
    for (int t = 1; t < LEN; t++) assert_true(fabs((double)engine[t] - logp[t]) < 2e-5);
    Given given[1] = {{weight, LEN}};
    assert_int_equal(trainer_accumulate(tr, &seq, 1, give, given, &loss, &err), 0);
    assert_true(fabs(loss - expected) < 1e-4);

    const double h = 1e-5;
    for (int i = 0; i < m->base.n; i++) {
        const Tensor *t = &m->base.tensor[i];
        for (size_t j = t->at; j < t->at + t->count; j++) {
            double keep = p[j];
            p[j] = keep + h;
            want[j] = reference_loss(m, p, ids, LEN, weight, NULL);
            p[j] = keep - h;
            want[j] = (want[j] - reference_loss(m, p, ids, LEN, weight, NULL)) / (2 * h);
            p[j] = keep;
        }
        compare_tensor(t, tr->grad + t->at, want + t->at);
    }
    free(p);
    free(want);
    trainer_free(tr);
    model_free(m);
}

static void qwen2(void **s)
{
    (void)s;
    check_family("qwen2");
}
static void qwen3(void **s)
{
    (void)s;
    check_family("qwen3");
}
static void llama(void **s)
{
    (void)s;
    check_family("llama");
}

/* The gradient of packed sequences is the sum of the single ones, for any micro-batches. */
static void packing(void **state)
{
    (void)state;
    enum { N = 5 };
    Model *m = tiny_of("qwen2", ops_cpu(), 8, 2);
    Error err;
    Random r;
    random_init(&r, 4, 0);
    int32_t ids[N][LEN];
    float weight[N][LEN], alone[N][LEN], packed[N][LEN], *rows[N];
    Sequence seqs[N];
    Given given[N];
    for (int i = 0; i < N; i++) {
        int len = 4 + i;
        draw_ids(&r, ids[i], weight[i], len, m->c.vocab);
        seqs[i] = (Sequence){ids[i], len};
        given[i] = (Given){weight[i], len};
        rows[i] = alone[i];
        assert_int_equal(model_logprobs(m, &seqs[i], 1, &rows[i], &err), 0);
    }
    for (int i = 0; i < N; i++) rows[i] = packed[i];
    assert_int_equal(model_logprobs(m, seqs, N, rows, &err), 0);
    for (int i = 0; i < N; i++)
        for (int t = 1; t < seqs[i].len; t++)
            assert_true(fabsf(alone[i][t] - packed[i][t]) < 1e-5f);

    float *one = NULL;
    double first = 0;
    for (int max = 1; max <= 64; max = max == 1    ? 13
                                       : max == 13 ? 64
                                                   : 65) { /* alone; two at a time; all */
        Trainer *t;
        double loss;
        assert_int_equal(trainer_create(m, &(TrainerOptions){.max_tokens = max}, &t, &err), 0);
        assert_int_equal(trainer_accumulate(t, seqs, N, give, given, &loss, &err), 0);
        if (!one) {
            one = memory_array(m->base.size, sizeof *one);
            memcpy(one, t->grad, m->base.size * sizeof *one);
            first = loss;
        }
        double far = 0, size = 0;
        for (size_t i = 0; i < m->base.size; i++) {
            far += pow((double)t->grad[i] - (double)one[i], 2);
            size += pow((double)one[i], 2);
        }
        assert_true(sqrt(far / size) < 1e-5);
        assert_true(fabs(loss - first) < 1e-4);
        trainer_free(t);
    }
    free(one);
    model_free(m);
}

static void every_third(void *ctx, int sequence, const float *logp, float *weight)
{
    const Sequence *seqs = ctx;
    (void)logp;
    for (int t = 1; t < seqs[sequence].len; t++) /* with a long gap in the middle */
        weight[t] = t % 3 || (t > 60 && t < 120) ? 0 : 0.01f * (float)(t - 80);
}

/* The logits of two sequences are not all held at a time. The gradient from pieces equals the
 * gradient of one sequence after another. */
static void in_pieces(int fixed_weights)
{
    enum { LONG = 200, SEQS = 2, MANY = 60000 };
    ModelConfig c = {.model_type = "qwen2",
                     .vocab = MANY,
                     .hidden = 8,
                     .ff = 8,
                     .layers = 1,
                     .heads = 2,
                     .kv_heads = 1,
                     .head_dim = 4,
                     .max_position = LONG,
                     .rope_theta = 1000,
                     .norm_eps = 1e-6f,
                     .qkv_bias = 1,
                     .pad = -1};
    Error err;
    Model *m;
    Trainer *t[2];
    double loss[2], far = 0, size = 0;
    assert_int_equal(model_create(&c, ops_cpu(), 1, &m, &err), 0);
    int32_t ids[SEQS][LONG];
    Sequence seqs[SEQS];
    Random r;
    random_init(&r, 6, 0);
    for (int i = 0; i < SEQS; i++) {
        seqs[i] = (Sequence){ids[i], LONG};
        for (int k = 0; k < LONG; k++) ids[i][k] = (int32_t)random_below(&r, MANY);
    }
    for (int k = 0; k < 2; k++) {
        t[k] = trainer_of(m, (TrainerOptions){.max_tokens = k ? SEQS * LONG : LONG,
                                              .fixed_weights = k && fixed_weights});
        assert_int_equal(trainer_accumulate(t[k], seqs, SEQS, every_third, seqs, &loss[k], &err),
                         0);
    }
    assert_int_equal(t[0]->acts.logit_rows, LONG);
    assert_true(t[1]->acts.logit_rows < SEQS * LONG);
    for (size_t i = 0; i < m->base.size; i++) {
        far += pow((double)t[0]->grad[i] - (double)t[1]->grad[i], 2);
        size += pow((double)t[0]->grad[i], 2);
    }
    assert_true(size > 0 && sqrt(far / size) < 1e-5);
    assert_true(loss[0] != 0 && fabs(loss[0] - loss[1]) < 1e-3);
    trainer_free(t[0]);
    trainer_free(t[1]);
    model_free(m);
}

/* Logits that are not kept are recomputed. */
static void large_vocabulary(void **state)
{
    (void)state;
    in_pieces(0);
}

/* With fixed weights the logits are computed once. */
static void one_pass(void **state)
{
    (void)state;
    in_pieces(1);
}

static void every_one(void *ctx, int sequence, const float *logp, float *weight)
{
    const Sequence *seqs = ctx;
    (void)logp;
    for (int t = 1; t < seqs[sequence].len; t++) weight[t] = 0.01f * (float)(t - 80);
}

/* The pieces of logits depend on the batch, not on earlier batches, which a resumed run has not
 * seen. */
static void whatever_came_before(void **state)
{
    (void)state;
    enum { KEPT = 270, LONG = 290, MANY = 60000 };
    ModelConfig c = {.model_type = "qwen2",
                     .vocab = MANY,
                     .hidden = 8,
                     .ff = 8,
                     .layers = 1,
                     .heads = 2,
                     .kv_heads = 1,
                     .head_dim = 4,
                     .max_position = LONG,
                     .rope_theta = 1000,
                     .norm_eps = 1e-6f,
                     .qkv_bias = 1,
                     .pad = -1};
    Error err;
    Model *m;
    double loss;
    assert_int_equal(model_create(&c, ops_cpu(), 1, &m, &err), 0);
    int32_t ids[LONG];
    Random r;
    random_init(&r, 6, 0);
    for (int k = 0; k < LONG; k++) ids[k] = (int32_t)random_below(&r, MANY);
    Sequence seqs[3] = {
        {ids, LONG},
        {ids, KEPT},
        {ids, LONG}}; /* max_tokens is the second's: the logits of the others are in pieces */
    for (int fixed = 0; fixed < 2; fixed++) {
        float *grad[2];
        for (int k = 0; k < 2; k++) {
            Trainer *t =
                trainer_of(m, (TrainerOptions){.max_tokens = KEPT, .fixed_weights = fixed});
            for (int i = k ? 0 : 2; i < 3; i++) {
                m->ops->zero(t->grad, m->base.size * sizeof(float));
                assert_int_equal(
                    trainer_accumulate(t, &seqs[i], 1, every_one, &seqs[i], &loss, &err), 0);
            }
            grad[k] = memory_array(m->base.size, sizeof(float));
            memcpy(grad[k], t->grad, m->base.size * sizeof(float));
            trainer_free(t);
        }
        assert_int_equal(memcmp(grad[0], grad[1], m->base.size * sizeof(float)), 0);
        free(grad[0]);
        free(grad[1]);
    }
    model_free(m);
}

static void bad_input(void **state)
{
    (void)state;
    Model *m = tiny_of("qwen2", ops_cpu(), 1, 2);
    Error err;
    int32_t ids[3] = {1, 19, 2};
    float out[3], *rows[1] = {out};
    Sequence s = {ids, 3};
    assert_int_equal(model_logprobs(m, &s, 1, rows, &err), -1);
    assert_non_null(strstr(err.text, "19"));
    s.len = 0;
    assert_int_equal(model_logprobs(m, &s, 1, rows, &err), -1);
    ModelConfig c = m->c;
    c.kv_heads = 3;
    Model *other;
    assert_int_equal(model_create(&c, ops_cpu(), 1, &other, &err), -1);
    assert_non_null(strstr(err.text, "num_key_value_heads"));
    model_free(m);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {cmocka_unit_test(qwen2),
                                       cmocka_unit_test(qwen3),
                                       cmocka_unit_test(llama),
                                       cmocka_unit_test(packing),
                                       cmocka_unit_test(large_vocabulary),
                                       cmocka_unit_test(one_pass),
                                       cmocka_unit_test(whatever_came_before),
                                       cmocka_unit_test(bad_input)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
