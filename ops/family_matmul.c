/* Matrix products: each operator says which letters its tensors' dimensions have (ops/op_product.h).
 * Operands have one floating-point type. Rows, columns and terms that do not fit are refused as in
 * ATen: only batch dimensions broadcast. */
#include <stdio.h>
#include <string.h>

#include "ops/op_element.h"
#include "ops/op_product.h"

/* What an operator says of its call: the sides a, b, d and the letters of c in side[PRODUCT_C]. */
typedef int Describe(const OpCall *c, Product *p, Error *err);

/* Two texts, of at most a letter a dimension. Every execution of a product describes it. */
static void letters_of(char out[OP_MAX_RANK + 1], const char *batch, const char *own)
{
    int n = 0;
    while (*batch && n < OP_MAX_RANK) out[n++] = *batch++;
    while (*own && n < OP_MAX_RANK) out[n++] = *own++;
    out[n] = 0;
}

/* The name of a tensor in kernels: "x12". */
static void name_tensor(ProductSide *s, int64_t index)
{
    char *to = s->name;
    *to++ = 'x';
    if (index >= 10) *to++ = (char)('0' + index / 10 % 10);
    *to++ = (char)('0' + index % 10);
    *to = 0;
}
_Static_assert(OP_MAX_TENSORS <= 100, "two digits");

static void side(const OpCall *c, Product *p, ProductOperand x, int arg, const char *letters)
{
    ProductSide *s = &p->side[x];
    s->tensor = op_tensor(c, arg);
    letters_of(s->letters, letters, "");
    if (s->tensor) name_tensor(s, c->arg[arg].integer[0]);
}

static int rank_is(const OpCall *c, int arg, int rank, const char *name, Error *err)
{
    const OpTensor *t = op_tensor(c, arg);
    if (t->rank == rank) return 0;
    return error_set(err, ERROR_INVALID, "%s: expected %d dimensions, found %d", name, rank,
                     t->rank);
}

static int describe_mm(const OpCall *c, Product *p, Error *err)
{
    side(c, p, PRODUCT_A, 0, "mk");
    side(c, p, PRODUCT_B, 1, "kn");
    strcpy(p->side[PRODUCT_C].letters, "mn");
    return rank_is(c, 0, 2, "self", err) || rank_is(c, 1, 2, "mat2", err) ? -1 : 0;
}

static int describe_mv(const OpCall *c, Product *p, Error *err)
{
    side(c, p, PRODUCT_A, 0, "mk");
    side(c, p, PRODUCT_B, 1, "k");
    strcpy(p->side[PRODUCT_C].letters, "m");
    return rank_is(c, 0, 2, "self", err) || rank_is(c, 1, 1, "vec", err) ? -1 : 0;
}

static int describe_dot(const OpCall *c, Product *p, Error *err)
{
    side(c, p, PRODUCT_A, 0, "k");
    side(c, p, PRODUCT_B, 1, "k");
    return rank_is(c, 0, 1, "self", err) || rank_is(c, 1, 1, "tensor", err) ? -1 : 0;
}

static int describe_bmm(const OpCall *c, Product *p, Error *err)
{
    side(c, p, PRODUCT_A, 0, "bmk");
    side(c, p, PRODUCT_B, 1, "bkn");
    strcpy(p->side[PRODUCT_C].letters, "bmn");
    return rank_is(c, 0, 3, "self", err) || rank_is(c, 1, 3, "mat2", err) ? -1 : 0;
}

/* self is the addend, broadcast to the result. */
static int addend(const OpCall *c, Product *p, Error *err)
{
    const char *letters = p->side[PRODUCT_C].letters;
    int rank = op_tensor(c, 0)->rank, limit = (int)strlen(letters);
    if (rank > limit)
        return error_set(err, ERROR_INVALID, "self: expected at most %d dimensions, found %d",
                         limit, rank);
    side(c, p, PRODUCT_D, 0, letters + limit - rank);
    p->beta = c->arg[3].number;
    p->alpha = c->arg[4].number;
    return 0;
}

static int describe_addmm(const OpCall *c, Product *p, Error *err)
{
    side(c, p, PRODUCT_A, 1, "mk");
    side(c, p, PRODUCT_B, 2, "kn");
    strcpy(p->side[PRODUCT_C].letters, "mn");
    if (rank_is(c, 1, 2, "mat1", err) || rank_is(c, 2, 2, "mat2", err)) return -1;
    return addend(c, p, err);
}

static int describe_baddbmm(const OpCall *c, Product *p, Error *err)
{
    side(c, p, PRODUCT_A, 1, "bmk");
    side(c, p, PRODUCT_B, 2, "bkn");
    strcpy(p->side[PRODUCT_C].letters, "bmn");
    if (rank_is(c, 1, 3, "batch1", err) || rank_is(c, 2, 3, "batch2", err)) return -1;
    return addend(c, p, err);
}

/* The letters of `n` batch dimensions, aligned at the last one: "...EFGH". */
static const char *batch_letters(int n)
{
    static const char all[] = "ABCDEFGH";
    return all + OP_MAX_RANK - n;
}

static int describe_matmul(const OpCall *c, Product *p, Error *err)
{
    int ra = op_tensor(c, 0)->rank, rb = op_tensor(c, 1)->rank;
    char a[16], b[16];
    if (!ra || !rb)
        return error_set(err, ERROR_INVALID, "both arguments need a dimension, found %d and %d", ra,
                         rb);
    int ba = ra > 2 ? ra - 2 : 0, bb = rb > 2 ? rb - 2 : 0;
    letters_of(a, batch_letters(ba), ra == 1 ? "k" : "mk");
    letters_of(b, batch_letters(bb), rb == 1 ? "k" : "kn");
    side(c, p, PRODUCT_A, 0, a);
    side(c, p, PRODUCT_B, 1, b);
    snprintf(p->side[PRODUCT_C].letters, sizeof p->side[PRODUCT_C].letters, "%s%s%s",
             batch_letters(ba > bb ? ba : bb), ra == 1 ? "" : "m", rb == 1 ? "" : "n");
    return 0;
}

static int describe_linear(const OpCall *c, Product *p, Error *err)
{
    const OpTensor *x = op_tensor(c, 0), *bias = op_tensor(c, 2);
    char a[16];
    if (rank_is(c, 1, 2, "weight", err)) return -1;
    if (!x->rank) return error_set(err, ERROR_INVALID, "input: expected a dimension, found none");
    if (bias && (bias->rank != 1 || bias->size[0] != op_tensor(c, 1)->size[0]))
        return error_set(err, ERROR_INVALID, "bias: expected %lld elements in one dimension",
                         (long long)op_tensor(c, 1)->size[0]);
    letters_of(a, batch_letters(x->rank - 1), "k");
    side(c, p, PRODUCT_A, 0, a);
    side(c, p, PRODUCT_B, 1, "nk");
    side(c, p, PRODUCT_D, 2, "n");
    p->beta = bias != NULL;
    letters_of(p->side[PRODUCT_C].letters, batch_letters(x->rank - 1), "n");
    return 0;
}

/* ---- einsum ---- */

/* An equation's ellipsis stands for the dimensions that no letter names, here for digits: the last one
 * is '9' in each operand. rank: of the operand; below 0 of the result, with -rank - 1 digits. */
typedef struct {
    const char *begin, *end; /* of the equation from the operand on */
    int rank;
} Term;

static int ellipsis(const Term *t, const char *at, char *out, Error *err)
{
    int digits = t->rank < 0 ? -t->rank - 1 : t->rank;
    size_t n = strlen(out);
    if (t->end - at < 3 || strncmp(at, "...", 3) || strpbrk(out, "0123456789"))
        return error_set(err, ERROR_INVALID, "equation: a dot that is no ellipsis");
    for (const char *p = t->begin; t->rank >= 0 && p < t->end && *p != ','; p++)
        digits -= *p != ' ' && *p != '.';
    if (digits < 0 || digits + (int)n > OP_MAX_RANK)
        return error_set(err, ERROR_INVALID, "equation: the ellipsis has no dimension");
    for (int d = 0; d < digits; d++) out[n++] = (char)('9' - digits + 1 + d);
    out[n] = 0;
    return 0;
}

/* The letters of one operand or of the result. Spaces do not count. */
static int term(const char **at, const char *end, int rank, char *out, Error *err)
{
    const Term t = {*at, end, rank};
    *out = 0;
    for (; *at < end && **at != ','; (*at)++) {
        char l = **at;
        if (l == ' ') continue;
        if (l == '.') {
            if (ellipsis(&t, *at, out, err)) return -1;
            *at += 2;
            continue;
        }
        if (!((l >= 'a' && l <= 'z') || (l >= 'A' && l <= 'Z')))
            return error_set(err, ERROR_INVALID, "equation: expected a letter, found '%c'", l);
        size_t n = strlen(out);
        if (n == OP_MAX_RANK)
            return error_set(err, ERROR_LIMIT, "equation: more than %d letters in an operand",
                             OP_MAX_RANK);
        out[n] = l;
        out[n + 1] = 0;
    }
    return 0;
}

static int digits_of(const char *letters)
{
    int n = 0;
    for (; *letters; letters++) n += *letters >= '0' && *letters <= '9';
    return n;
}

static int result_letters(const char *equation, Product *p, Error *err)
{
    char *c = p->side[PRODUCT_C].letters;
    const char *a = p->side[PRODUCT_A].letters, *b = p->side[PRODUCT_B].letters,
               *arrow = strstr(equation, "->");
    if (arrow) {
        const char *at = arrow + 2, *end = at + strlen(at);
        int of_a = digits_of(a), of_b = digits_of(b);
        if (term(&at, end, -1 - (of_a > of_b ? of_a : of_b), c, err)) return -1;
        if (at < end) return error_set(err, ERROR_INVALID, "equation: a comma in the result");
        for (const char *s = c; *s; s++)
            if ((!strchr(a, *s) && !strchr(b, *s)) || strchr(s + 1, *s))
                return error_set(err, ERROR_INVALID,
                                 "equation: '%c' of the result is in no operand, or is there twice",
                                 *s);
        return 0;
    }
    int n = 0; /* the ellipsis, and the letters that occur once, in the order of the alphabet */
    for (int l = '0'; l <= 'z'; l++) {
        int times = 0;
        for (const char *s = a; *s; s++) times += *s == l;
        for (const char *s = b; *s; s++) times += *s == l;
        if (times && l <= '9') times = 1;
        if (times == 1 && n == OP_MAX_RANK)
            return error_set(err, ERROR_LIMIT, "the result has more than %d dimensions",
                             OP_MAX_RANK);
        if (times == 1) c[n++] = (char)l;
    }
    c[n] = 0;
    return 0;
}

static int describe_einsum(const OpCall *c, Product *p, Error *err)
{
    const char *equation = c->arg[0].text, *at = equation, *arrow = strstr(equation, "->"),
               *end = arrow ? arrow : equation + strlen(equation);
    const OpValue *list = &c->arg[1];
    if (list->n != 2)
        return error_set(err, ERROR_UNSUPPORTED, "expected two operands, found %d", list->n);
    for (int x = PRODUCT_A; x <= PRODUCT_B; x++) {
        ProductSide *s = &p->side[x];
        s->tensor = &c->tensor[list->integer[x]];
        name_tensor(s, list->integer[x]);
        if (term(&at, end, s->tensor->rank, s->letters, err)) return -1;
        if ((int)strlen(s->letters) != s->tensor->rank)
            return error_set(err, ERROR_INVALID,
                             "equation: operand %d has %d dimensions and %zu letters", x + 1,
                             s->tensor->rank, strlen(s->letters));
        if ((at < end) != (x == PRODUCT_A))
            return error_set(err, ERROR_INVALID, "equation: expected two operands in \"%s\"",
                             equation);
        at++;
    }
    return result_letters(equation, p, err);
}

/* ---- all ---- */

/* The sizes of c from those of a and b. Capital letters broadcast, and in an einsum all do. */
static int sizes(const OpCall *c, const Product *p, int64_t *size, Error *err)
{
    int einsum = c->arg[0].kind == OP_STRING;
    double terms = 1;
    for (int x = PRODUCT_A; x <= PRODUCT_B; x++)
        for (int d = 0; p->side[x].letters[d]; d++) {
            char l = p->side[x].letters[d];
            int64_t have = p->side[x].tensor->size[d], all = have;
            for (int y = PRODUCT_A; y <= PRODUCT_B; y++)
                for (int e = 0; p->side[y].letters[e]; e++) {
                    int64_t other = p->side[y].tensor->size[e];
                    if (p->side[y].letters[e] != l || other == have) continue;
                    int broadcasts = y != x && (einsum || (l >= 'A' && l <= 'Z'));
                    if (!broadcasts || (have != 1 && other != 1))
                        return error_set(err, ERROR_INVALID,
                                         "sizes %lld and %lld do not fit (dimensions %d and %d)",
                                         (long long)(x < y ? have : other),
                                         (long long)(x < y ? other : have), x < y ? d : e,
                                         x < y ? e : d);
                    all = have == 1 ? other : have;
                }
            const char *at = strchr(p->side[PRODUCT_C].letters, l);
            if (at) size[at - p->side[PRODUCT_C].letters] = all;
            if (!at && (x == PRODUCT_A || !strchr(p->side[PRODUCT_A].letters, l)))
                terms *= (double)all;
        }
    if (terms >= 0x1p31) return error_set(err, ERROR_LIMIT, "an element is a sum of 2^31 terms");
    return 0;
}

static int infer(OpCall *c, Error *err)
{
    Product p = {.alpha = 1};
    int64_t size[OP_MAX_RANK];
    Describe *const *describe = c->op->detail;
    if ((*describe)(c, &p, err) || sizes(c, &p, size, err)) return -1;
    Dtype d = p.side[PRODUCT_A].tensor->dtype;
    for (int i = 0; i < c->n_tensors; i++) {
        if (!dtype_is_float(c->tensor[i].dtype))
            return error_set(err, ERROR_UNSUPPORTED, "expected a floating-point type, found %s",
                             dtype_name(c->tensor[i].dtype));
        if (c->tensor[i].dtype != d)
            return error_set(err, ERROR_INVALID, "expected operands of one type, found %s and %s",
                             dtype_name(d), dtype_name(c->tensor[i].dtype));
    }
    if (op_result(c, d, (int)strlen(p.side[PRODUCT_C].letters), size, err)) return -1;
    const ProductSide *add = &p.side[PRODUCT_D];
    const OpTensor *y = &c->result[0];
    for (int i = 0; add->tensor && i < add->tensor->rank; i++) {
        int64_t have = add->tensor->size[i], need = y->size[y->rank - add->tensor->rank + i];
        if (have != need && have != 1)
            return error_set(err, ERROR_INVALID,
                             "self: size %lld does not broadcast to %lld at dimension %d",
                             (long long)have, (long long)need, i);
    }
    return 0;
}

static void product_of(const OpCall *c, Product *p, int logical)
{
    Describe *const *describe = c->op->detail;
    memset(p, 0, sizeof *p);
    p->alpha = 1;
    (*describe)(c, p, NULL);
    p->side[PRODUCT_C].tensor = &c->result[0];
    strcpy(p->side[PRODUCT_C].name, "y0");
    if (logical >= 0) product_groups(p, logical);
}

int product_of_call(const OpCall *c, Product *out)
{
    if (c->op->infer != infer) return 0;
    product_of(c, out, 0);
    return 1;
}

static void product_on(const OpCall *c, const double *const *in, Product *p)
{
    product_of(c, p, 1);
    for (int x = 0; x < PRODUCT_OPERANDS; x++)
        if (x != PRODUCT_C && p->side[x].tensor)
            p->side[x].data = in[p->side[x].tensor - c->tensor];
}

static int reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    Product p;
    (void)err;
    product_on(c, in, &p);
    product_reference(&p, out[0]);
    return 0;
}

/* Elements side by side share the row of a factor. */
static void element_needs(const OpCall *c, const OpSome *s, const OpNeeds *out)
{
    const int g = PRODUCT_DEPTH;
    int64_t before[PRODUCT_OPERANDS] = {-1, -1, -1, -1};
    Product p;
    product_of(c, &p, 1);
    int last = p.rank[g] - 1;
    int64_t run = last < 0 ? 1 : p.size[g][last];
    for (int64_t k = 0; k < s->n; k++)
        for (int x = 0; x < PRODUCT_OPERANDS; x++) {
            int64_t at = product_place(&p, x, s->at[k]), terms = x == PRODUCT_D ? 1 : p.count[g];
            int used = x == PRODUCT_D ? p.beta != 0 : x != PRODUCT_C;
            if (!used || at == before[x]) continue;
            before[x] = at;
            for (int64_t j = 0; j < terms; j += run)
                out->add(out->of, (int)(p.side[x].tensor - c->tensor), at + product_depth(&p, x, j),
                         last < 0 ? 1 : p.step[x][g][last], x == PRODUCT_D ? 1 : run);
        }
}

static void element_compute(const OpCall *c, const double *const *in, const OpSome *s, double *y)
{
    Product p;
    product_on(c, in, &p);
    product_elements(&p, s->at, s->n, y);
}

static void element_compute_mixed(const OpCall *c, const OpNumbers *in, const OpSome *s, double *y)
{
    Product p;
    product_of(c, &p, 1);
    for (int x = 0; x < PRODUCT_OPERANDS; x++) {
        if (x == PRODUCT_C || !p.side[x].tensor) continue;
        p.side[x].data = in[p.side[x].tensor - c->tensor].wide;
        p.side[x].narrow = in[p.side[x].tensor - c->tensor].narrow;
    }
    product_elements(&p, s->at, s->n, y);
}

static const OpElements elements = {element_needs, element_compute, NULL, element_compute_mixed};

static int plain(const OpCall *c, OpPlain *out, Error *err)
{
    Product p;
    product_of(c, &p, 0);
    return product_plain(&p, out, err);
}

static int route(const OpCall *c, OpRoute *out, Error *err)
{
    Product p;
    product_of(c, &p, 0);
    /* Of an einsum that sums nothing eager PyTorch calls no library. */
    return c->arg[0].kind == OP_STRING && product_is_each(&p) ? 0 : product_route(&p, c, out, err);
}

static void cost(const OpCall *c, OpCost *out)
{
    Product p;
    product_of(c, &p, 1);
    out->flops = product_flops(&p);
    if (p.beta != 0) out->flops += (double)op_elements(&c->result[0]);
}

#define ROW(aten, text, describe)                                                             \
    {                                                                                         \
        .name = "aten." aten, .schema = text, .infer = infer, .reference = reference,         \
        .plain = plain, .cost = cost, .route = route, .detail = &(Describe *const){describe}, \
        .elements = &elements, .flags = OP_CUBLAS,                                            \
    }

static const Op table[] = {
    ROW("mm.default", "Tensor self, Tensor mat2", describe_mm),
    ROW("mv.default", "Tensor self, Tensor vec", describe_mv),
    ROW("dot.default", "Tensor self, Tensor tensor", describe_dot),
    ROW("bmm.default", "Tensor self, Tensor mat2", describe_bmm),
    ROW("addmm.default", "Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1",
        describe_addmm),
    ROW("baddbmm.default",
        "Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1",
        describe_baddbmm),
    ROW("matmul.default", "Tensor self, Tensor other", describe_matmul),
    ROW("linear.default", "Tensor input, Tensor weight, Tensor? bias=None", describe_linear),
    ROW("einsum.default", "str equation, Tensor[] tensors, *, int[]? path=None", describe_einsum),
};

const OpFamily matmul_family = {"matmul", table, sizeof table / sizeof *table};
