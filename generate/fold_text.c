/* Folds and scans as text. A sum is a number of each thread. A spread and an exponential sum are structs, in
 * which their pair, the mean or the largest element, is known too. */
#include "generate/fold_text.h"
#include "generate/branch_text.h"

#include <stdio.h>
#include <string.h>

static const char *const combine[] = {"a + b", "larger(a, b)", "smaller(a, b)", "a * b"};
static const char *const start[] = {"0", "-INFINITY", "INFINITY", "1"};

const char *fold_expression(Fold f)
{
    return combine[f];
}

const char *fold_start(Fold f)
{
    return start[f];
}

static Fold fold_of(const Writer *w, int step)
{
    return node_of(w, step)->fold;
}

static int is_struct(Fold f)
{
    return f == FOLD_MEAN || f == FOLD_SPREAD || f == FOLD_EXPSUM;
}

int fold_state(const Writer *w, int step)
{
    const Step *s = &w->k->step[step];
    Fold f = fold_of(w, step), by = f == FOLD_MEAN ? FOLD_SPREAD : FOLD_EXPSUM;
    for (int i = 0; i < w->k->n && (f == FOLD_MEAN || f == FOLD_MAX); i++) {
        const Step *o = &w->k->step[i];
        if (is_fold(w, i) && fold_of(w, i) == by && o->arg[0] == s->arg[0] && o->over == s->over)
            return i;
    }
    return step;
}

int fold_words(const Writer *w)
{
    for (int i = 0; i < w->k->n; i++)
        if (is_fold(w, i) && is_struct(fold_of(w, i))) return 3;
    return 1;
}

static const char *struct_type(const Writer *w, int step)
{
    int wide = !strcmp(writer_type(w, step), "double");
    if (fold_of(w, step) == FOLD_EXPSUM) return wide ? "Peak<double>" : "Peak<float>";
    return wide ? "Moments<double>" : "Moments<float>";
}

/* Adds the fold's element to `sum`. */
static void put_combined(Writer *w, int step, const char *sum, const char *indent)
{
    buffer_printf(&w->body, "%s%s = ", indent, sum);
    for (const char *text = combine[fold_of(w, step)]; *text; text++)
        if (!strncmp(text, "a ", 2) || !strncmp(text, "a,", 2))
            buffer_puts(&w->body, sum);
        else if (!strcmp(text, "b") || !strcmp(text, "b)"))
            writer_value(w, w->k->step[step].arg[0], writer_type(w, step));
        else
            buffer_append(&w->body, text, 1);
    buffer_puts(&w->body, ";\n");
}

void fold_put_element(Writer *w, int step, int batch, const char *indent)
{
    if (fold_state(w, step) != step) return;
    if (is_struct(fold_of(w, step))) {
        buffer_printf(&w->body, "%sz%d[%sv] = ", indent, step, batch ? "u * V + " : "");
        writer_value(w, w->k->step[step].arg[0], writer_type(w, step));
        buffer_puts(&w->body, ";\n");
        return;
    }
    char sum[16];
    snprintf(sum, sizeof sum, "s%d", step);
    put_combined(w, step, sum, indent);
}

/* 1: the fold takes several elements of the pass at once. */
static int takes_many(const Writer *w, const Pass *p, int step)
{
    return p->level && writer_takes_part(w, p, step) && is_struct(fold_of(w, step)) &&
           fold_state(w, step) == step;
}

void fold_put_values(Writer *w, const Pass *p, int n, const char *indent)
{
    for (int i = 0; i < w->k->n; i++)
        if (takes_many(w, p, i))
            buffer_printf(&w->body, "%s%s z%d[%d * V];\n", indent, writer_type(w, i), i, n);
}

void fold_put_taken(Writer *w, const Pass *p, int n, const char *indent)
{
    for (int i = 0; i < w->k->n; i++)
        if (takes_many(w, p, i))
            buffer_printf(&w->body, "%ss%d = take<%d * V>(s%d, z%d);\n", indent, i, n, i, i);
}

static const char *start_text(const Writer *w, int step)
{
    const Fold f = fold_of(w, step);
    const int whole = !strcmp(writer_type(w, step), "long long");
    if (whole && f == FOLD_MAX) return "-9223372036854775807LL - 1";
    return whole && f == FOLD_MIN ? "9223372036854775807LL" : start[f];
}

static void put_start(Writer *w, int step)
{
    if (fold_state(w, step) != step) return;
    if (fold_of(w, step) != FOLD_SUM && fold_of(w, step) != FOLD_PROD) writer_help(w, HELP_ORDER);
    if (is_struct(fold_of(w, step))) {
        writer_help(w, fold_of(w, step) == FOLD_EXPSUM ? HELP_PEAK : HELP_MOMENTS);
        buffer_printf(&w->body, "    %s s%d;\n", struct_type(w, step), step);
        return;
    }
    buffer_printf(&w->body, "    %s s%d = %s;\n", writer_type(w, step), step, start_text(w, step));
}

/* The fold over the threads' states, or its member of another fold's. */
static void put_result(Writer *w, int step)
{
    static const char *const member[] = {
        [FOLD_MAX] = "most", [FOLD_MEAN] = "mean", [FOLD_SPREAD] = "spread", [FOLD_EXPSUM] = "sum"};
    int of = fold_state(w, step), many = is_struct(fold_of(w, of));
    const char *type = many ? struct_type(w, of) : writer_type(w, step);
    writer_help(w, HELP_EXCHANGE);
    writer_help(w, w->strip >= 0 ? HELP_FOLD_COLUMNS : HELP_FOLD);
    if (of == step)
        buffer_printf(
            &w->body,
            "    const %s %c%d = %s<%d>(s%d, [](%s a, %s b) { return %s; }, (%s *)shared);\n", type,
            many ? 'm' : 't', step, w->strip >= 0 ? "fold_columns" : "fold", w->lanes, step, type,
            type, many ? "join(a, b)" : combine[fold_of(w, step)], type);
    if (many)
        buffer_printf(&w->body, "    const %s t%d = m%d.%s;\n", writer_type(w, step), step, of,
                      member[fold_of(w, step)]);
}

void fold_put_level(Writer *w, int level)
{
    for (int i = 0; i < w->k->n; i++) {
        Pass p = {level, w->k->step[i].over};
        if (!is_fold(w, i) || w->k->step[i].level != level || w->defined[i]) continue;
        for (int j = i; j < w->k->n; j++)
            if (writer_takes_part(w, &p, j)) put_start(w, j);
        writer_loop(w, &p);
        for (int own = 1; own >= 0; own--)
            for (int j = i; j < w->k->n; j++) {
                if (!writer_takes_part(w, &p, j) || (fold_state(w, j) == j) != own) continue;
                put_result(w, j);
                w->defined[j] = 1;
            }
    }
}

/* ---- looped folds ---- */

/* Opens the loops over a fold's terms: at the timed sizes the body is written out once for each. */
static void put_terms_head(Writer *w, unsigned over, const char *indent)
{
    const char *type = w->wide ? "long long" : "int";
    for (int a = 0; a < w->k->axes.n; a++) {
        if (!(over >> a & 1) || size_is(w->k->axes.size[a], 1)) continue;
        const char *n = writer_size(w, w->k->axes.size[a]), *name = w->k->axes.name[a];
        const int64_t timed = w->k->axes.size[a].at[0];
        buffer_printf(&w->body,
                      "%sfor (%s of_%s = 0; of_%s < %s; of_%s += %lld)\n#pragma unroll\n"
                      "%sfor (%s %s = of_%s; %s < of_%s + %lld; %s++) if (%s < %s) {\n",
                      indent, type, name, name, n, name, (long long)timed, indent, type, name, name,
                      name, name, (long long)timed, name, name, n);
    }
}

static void put_terms_end(Writer *w, unsigned over, const char *indent)
{
    for (int a = 0; a < w->k->axes.n; a++)
        if (over >> a & 1 && !size_is(w->k->axes.size[a], 1))
            buffer_printf(&w->body, "%s}\n", indent);
}

/* The terms of V elements: loads come first, then each element's term. */
static void put_vector_terms(Writer *w, int step, const char *to, const char *indent)
{
    unsigned char set[KERNEL_STEPS] = {0};
    char deeper[64], name[16], sum[48];
    writer_close(w, w->k->step[step].arg[0], set);
    for (int i = 0; i < w->k->n; i++)
        if (set[i] && !in_columns(w, i) && w->k->step[i].axes & w->k->looped)
            writer_step(w, i, indent);
    for (int i = 0; i < w->k->n; i++) {
        if (!set[i] || !writer_is_packed(w, i)) continue;
        if (writer_is_value(w, i)) { /* it is kept */
            buffer_printf(&w->body, "%sconst Pack<%s, V> p%d = keep%d[k];\n", indent,
                          writer_type(w, i), i, i);
            continue;
        }
        snprintf(name, sizeof name, "p%d", i);
        buffer_printf(&w->body, "%sPack<%s, V> p%d;\n", indent, writer_ctype(w, i), i);
        writer_fetch(w, i, name, indent);
    }
    snprintf(deeper, sizeof deeper, "%s    ", indent);
    snprintf(sum, sizeof sum, "%s.v[v]", to);
    if (w->vec > 1)
        branch_put_elements_head(w, indent);
    else
        buffer_printf(&w->body, "%s{\n%sconst int v = 0;\n", indent, deeper);
    for (int i = 0; i < w->k->n; i++)
        if (set[i] && in_columns(w, i) && !is_fold(w, i)) writer_step(w, i, deeper);
    put_combined(w, step, sum, deeper);
    buffer_printf(&w->body, "%s}\n", indent);
}

void fold_put_loop(Writer *w, int step, const char *to, const char *indent)
{
    const Step *s = &w->k->step[step];
    const unsigned outer = w->open;
    unsigned char set[KERNEL_STEPS] = {0};
    char deeper[64], name[WRITER_NAME];
    if (fold_of(w, step) == FOLD_MAX || fold_of(w, step) == FOLD_MIN) writer_help(w, HELP_ORDER);
    writer_help(w, HELP_PACK);
    if (to)
        buffer_printf(&w->body, "#pragma unroll\n%sfor (int v = 0; v < V; v++) %s.v[v] = %s;\n",
                      indent, to, start_text(w, step));
    else
        buffer_printf(&w->body, "%s%s %s = %s;\n", indent, writer_type(w, step),
                      writer_name(w, step, name), start_text(w, step));
    buffer_printf(&w->body, "%s{\n", indent); /* also where all its axes have one element */
    put_terms_head(w, s->over, indent);
    w->open |= s->over;
    snprintf(deeper, sizeof deeper, "%s    ", indent);
    writer_close(w, s->arg[0], set);
    for (int i = 0; i < w->k->n && !to; i++)
        if (set[i] && w->k->step[i].axes & s->over) writer_step(w, i, deeper);
    if (to)
        put_vector_terms(w, step, to, deeper);
    else
        put_combined(w, step, writer_name(w, step, name), deeper);
    w->open = outer;
    put_terms_end(w, s->over, indent);
    buffer_printf(&w->body, "%s}\n", indent);
}

/* ---- scans ---- */

/* The threads of a row take neighbouring vectors of a tile; each scans its own, then threads pass sums on,
 * and the whole tile's sum is carried to the next one. A scan of what another scan gives follows it within
 * the same tile. */

static const char *join_of(const Writer *w, int step)
{
    return node_of(w, step)->fold == FOLD_PROD ? "a * b" : "a + b";
}

static const char *start_of(const Writer *w, int step)
{
    return node_of(w, step)->fold == FOLD_PROD ? "1" : "0";
}

/* Are this step's results those of the scan that comes as number `turn` in its chain? */
static int is_turn(const Writer *w, int step, int turn)
{
    return writer_is_scan(w, step) && w->k->step[step].scanned == turn;
}

static int last_turn(const Writer *w)
{
    int turn = 0;
    for (int i = 0; i < w->k->n; i++)
        if (writer_is_scan(w, i) && w->k->step[i].scanned > turn) turn = w->k->step[i].scanned;
    return turn;
}

/* Sets set[i] for each step that the scans of a turn need, or for turn 0 the results behind all scans. */
static void find_steps(const Writer *w, int turn, unsigned char *set)
{
    memset(set, 0, KERNEL_STEPS);
    for (int i = 0; i < w->k->n && turn; i++)
        if (is_turn(w, i, turn)) writer_close(w, w->k->step[i].arg[0], set);
    for (int r = 0; r < w->k->n_roots && !turn; r++) writer_close(w, w->k->root[r].step, set);
}

/* 1: the scans or the results behind them read a step in vectors. */
static int is_read(const Writer *w, int step)
{
    unsigned char set[KERNEL_STEPS];
    int read = 0;
    for (int turn = last_turn(w); turn >= 0 && !read && writer_is_packed(w, step); turn--) {
        find_steps(w, turn, set);
        read = set[step];
    }
    return read;
}

/* Begins a loop over a vector's elements in the order of the scan. v: their order in memory. */
static void put_vector_head(Writer *w, const char *indent)
{
    const char *name = w->k->axes.name[w->k->scan], *type = w->wide ? "long long" : "int";
    buffer_printf(
        &w->body,
        "#pragma unroll\n%sfor (int o = 0; o < V; o++) {\n%s    const int v = %s;\n%s    const "
        "%s %s = from_%s + v;\n%s    (void)%s;\n",
        indent, indent, w->k->backward ? "V - 1 - o" : "o", indent, type, name, name, indent, name);
}

/* Where a thread's vector begins in memory. */
static void put_begin(Writer *w, const char *cols, const char *indent)
{
    const char *name = w->k->axes.name[w->k->scan], *type = w->wide ? "long long" : "int";
    buffer_printf(&w->body, "%sconst %s from_%s = ", indent, type, name);
    if (w->k->backward)
        buffer_printf(&w->body, "%s - V - c;\n", cols);
    else
        buffer_puts(&w->body, "c;\n");
}

/* Each element that the steps need; packs hold elements in the order of memory. */
static void put_steps(Writer *w, const unsigned char *set, const char *indent)
{
    for (int i = 0; i < w->k->n; i++)
        if (set[i] && in_columns(w, i) && !writer_is_scan(w, i)) {
            writer_step(w, i, indent);
        } else if (set[i] && writer_is_scan(w, i)) {
            const char *join = join_of(w, i);
            buffer_printf(&w->body, "%sconst %s t%d = from%d %c z%d[o];\n", indent,
                          writer_type(w, i), i, i, join[2], i);
        }
}

static void put_packs(Writer *w, const unsigned char *set, const char *indent)
{
    for (int i = 0; i < w->k->n; i++)
        if (set[i] && writer_is_packed(w, i))
            buffer_printf(&w->body, "%sconst Pack<%s, V> p%d = q%d[u];\n", indent,
                          writer_ctype(w, i), i, i);
}

/* The loads of a thread's vectors, or of the elements of those that do not lie in one piece. */
static void put_fetches(Writer *w, int apart)
{
    const char *name = w->k->axes.name[w->k->scan], *type = w->wide ? "long long" : "int";
    const char *indent = apart ? "                    " : "                ";
    char to[24];
    if (apart)
        buffer_printf(&w->body,
                      "#pragma unroll\n                for (int v = 0; v < V; v++) {\n"
                      "%sconst %s %s = from_%s + v;\n",
                      indent, type, name, name);
    else
        buffer_printf(&w->body, "%sconst %s %s = from_%s;\n%s(void)%s;\n", indent, type, name, name,
                      indent, name);
    for (int i = 0; i < w->k->n; i++) {
        if (!is_read(w, i)) continue;
        if (w->strip >= 0 && w->vec > 1 && writer_is_vector(w, i) == apart) continue;
        snprintf(to, sizeof to, "q%d[u]", i);
        if (apart) {
            buffer_printf(&w->body, "%s%s.v[v] = %s[", indent, to,
                          kernel_tensor(w->k, w->k->step[i].node, 0));
            writer_index(w, &w->k->step[i].at);
            buffer_puts(&w->body, "];\n");
        } else {
            writer_fetch(w, i, to, indent);
        }
    }
    if (apart) buffer_puts(&w->body, "                }\n");
}

/* Loads of the tiles of a round. `at` is where a thread's vector begins in memory. */
static void put_loads(Writer *w, const char *cols)
{
    const char *type = w->wide ? "long long" : "int";
    for (int i = 0; i < w->k->n; i++)
        if (is_read(w, i)) {
            writer_help(w, HELP_PACK);
            buffer_printf(&w->body, "        Pack<%s, V> q%d[%d];\n", writer_ctype(w, i), i,
                          w->items);
        }
    buffer_printf(
        &w->body,
        "#pragma unroll\n        for (int u = 0; u < %d; u++) {\n"
        "            const %s c = first + (u * %d + lane) * V;\n            if (c < %s) {\n",
        w->items, type, w->lanes, cols);
    put_begin(w, cols, "                ");
    put_fetches(w, 0);
    if (w->strip >= 0 && w->vec > 1) put_fetches(w, 1);
    buffer_puts(&w->body, "            }\n        }\n");
}

/* Of the scans of a turn: each thread's own elements, and then the sums of the threads before it. */
static void put_turn(Writer *w, int turn, const char *cols)
{
    unsigned char set[KERNEL_STEPS];
    find_steps(w, turn, set);
    for (int i = 0; i < w->k->n; i++)
        if (is_turn(w, i, turn))
            buffer_printf(
                &w->body,
                "            %s z%d[V];\n#pragma unroll\n            for (int v = 0; v < V; v++) "
                "z%d[v] = %s;\n",
                writer_type(w, i), i, i, start_of(w, i));
    buffer_printf(&w->body, "            if (c < %s) {\n", cols);
    put_begin(w, cols, "                ");
    put_packs(w, set, "                ");
    put_vector_head(w, "                ");
    put_steps(w, set, "                    ");
    for (int i = 0; i < w->k->n; i++) {
        if (!is_turn(w, i, turn)) continue;
        buffer_printf(&w->body, "                    z%d[o] = ", i);
        writer_value(w, w->k->step[i].arg[0], writer_type(w, i));
        buffer_printf(&w->body, ";\n                    if (o) z%d[o] = z%d[o - 1] %c z%d[o];\n", i,
                      i, join_of(w, i)[2], i);
    }
    buffer_puts(&w->body, "                }\n            }\n");
    for (int i = 0; i < w->k->n; i++) {
        if (!is_turn(w, i, turn)) continue;
        const char *type = writer_type(w, i);
        buffer_printf(
            &w->body,
            "            %s all%d;\n            const %s from%d = carry%d %c %s<%d>(z%d[V - 1], "
            "(%s)%s, [](%s a, %s b) { return %s; }, (%s *)shared, all%d);\n"
            "            carry%d = carry%d %c all%d;\n",
            type, i, type, i, i, join_of(w, i)[2], w->strip >= 0 ? "scan_columns" : "scan",
            w->lanes, i, type, start_of(w, i), type, type, join_of(w, i), type, i, i, i,
            join_of(w, i)[2], i);
    }
}

static void put_stores(Writer *w, const char *cols)
{
    unsigned char set[KERNEL_STEPS];
    find_steps(w, 0, set);
    const char *name = w->k->axes.name[w->k->scan];
    buffer_printf(&w->body, "            if (c < %s && inside) {\n", cols);
    put_begin(w, cols, "                ");
    buffer_printf(&w->body, "                const %s %s = from_%s;\n                (void)%s;\n",
                  w->wide ? "long long" : "int", name, name, name);
    put_packs(w, set, "                ");
    for (int r = 0; r < w->k->n_roots; r++)
        if (writer_root_is_vector(w, r))
            buffer_printf(&w->body, "                Pack<%s, V> y%d;\n",
                          dtype_ctype(w->k->nodes->node[w->k->root[r].node].dtype), r);
    put_vector_head(w, "                ");
    put_steps(w, set, "                    ");
    writer_stores(w, "                    ");
    buffer_puts(&w->body, "                }\n");
    writer_vector_stores(w, "                ");
    buffer_puts(&w->body, "            }\n");
}

void scan_put(Writer *w)
{
    writer_help(w, HELP_PACK);
    const char *type = w->wide ? "long long" : "int";
    char cols[64];
    snprintf(cols, sizeof cols, "%s", writer_size(w, w->k->axes.size[w->k->scan]));
    for (int i = 0; i < w->k->n; i++)
        if (writer_is_scan(w, i))
            buffer_printf(&w->body, "    %s carry%d = %s;\n", writer_type(w, i), i, start_of(w, i));
    buffer_printf(&w->body, "    for (%s first = 0; first < %s; first += %d * V) {\n", type, cols,
                  w->lanes * w->items);
    put_loads(w, cols);
    buffer_printf(&w->body,
                  "#pragma unroll\n        for (int u = 0; u < %d; u++) {\n"
                  "            const %s c = first + (u * %d + lane) * V;\n",
                  w->items, type, w->lanes);
    writer_help(w, w->strip >= 0 ? HELP_SCAN_COLUMNS : HELP_SCAN);
    for (int turn = 1; turn <= last_turn(w); turn++) put_turn(w, turn, cols);
    put_stores(w, cols);
    buffer_puts(&w->body, "        }\n    }\n");
}

/* ---- rows that a thread has alone ---- */

const char *fold_end(Writer *w, unsigned columns, char number[64])
{
    const Size n = writer_product(w, columns);
    if (!size_constant(n) || !(w->alone || w->turned)) return writer_size(w, n);
    snprintf(number, 64, "%lld", (long long)n.at[0]);
    return number;
}

/* The rows that a thread takes lie along the strip axis. */
static const char *axis_name(const Writer *w)
{
    return w->k->axes.name[w->along];
}

/* 1: a thread's rows lie apart, since neighbours among them read few elements that are the same, as where
 * windows are dilated: then neighbouring threads read and store neighbours (2026-11-30, sim:h200: windows of
 * eight elements, three apart, 767 us for 1,017; but of four that are neighbours 1,415 for 936). */
static int are_apart(const Writer *w)
{
    for (int i = 0; i < w->k->n; i++)
        for (int a = 0; a < w->k->axes.n; a++)
            if (w->columns >> a & 1 && size_is(w->k->step[i].at.by[a], 1) &&
                size_is(w->k->step[i].at.by[w->along], 1))
                return 0;
    return w->each > 1;
}

static void put_alone_head(Writer *w)
{
    const char *type = w->wide ? "long long" : "int", *name = axis_name(w);
    char n[32];
    snprintf(n, sizeof n, "%s", writer_size(w, w->k->axes.size[w->along]));
    const unsigned others = w->k->rows & ~(1u << w->along);
    char rows[32];
    snprintf(rows, sizeof rows, "%s", writer_size(w, writer_product(w, others)));
    buffer_printf(
        &w->body,
        "    double *shared = nullptr;\n    const int lane = 0;\n    (void)shared;\n"
        "    const long long groups = (%s + %d) / %d, own = blockIdx.x * %dLL + threadIdx.x;\n"
        "    if (own >= groups * %s) return;\n"
        "    const unsigned above = own < 0xffffffffLL ? (unsigned)own / (unsigned)groups : own / "
        "groups;\n"
        "    const %s first_%s = (%s)(own - above * groups) * %d, next = %s;\n",
        n, w->each - 1, w->each, w->block, rows, type, name, type, are_apart(w) ? 1 : w->each,
        are_apart(w) ? "groups" : "1");
    writer_axes(w, others, "above", "long long", "    ");
}

static void put_alone_result(Writer *w, int r, int whole)
{
    const Node *x = &w->k->nodes->node[w->k->root[r].node];
    if (whole) {
        buffer_printf(&w->body, "    y%d.v[r] = ", r);
    } else {
        buffer_printf(&w->body, "    %s[", kernel_tensor(w->k, w->k->root[r].node, 1));
        writer_index(w, &w->k->root[r].at);
        buffer_puts(&w->body, "] = ");
    }
    buffer_printf(&w->body, "(%s)t%d;\n", dtype_ctype(x->dtype), w->k->root[r].step);
}

/* The rows one by one: of a whole group, whose results become a vector, or of those before the end. */
static void put_alone_body(Writer *w, int whole)
{
    const char *type = w->wide ? "long long" : "int", *name = axis_name(w);
    const char *n = writer_size(w, w->k->axes.size[w->along]);
    unsigned char defined[KERNEL_STEPS], kept[KERNEL_STEPS];
    memcpy(defined, w->defined, sizeof defined);
    memcpy(kept, w->kept, sizeof kept);
    buffer_printf(&w->body,
                  "#pragma unroll\n    for (int r = 0; r < %d; r++) {\n    const %s %s = first_%s "
                  "+ r * next;\n",
                  w->each, type, name, name);
    if (!whole) buffer_printf(&w->body, "    if (%s >= %s) break;\n", name, n);
    writer_kept(w);
    writer_row_steps(w, 0);
    for (int level = 1; level <= writer_passes(w); level++) {
        fold_put_level(w, level);
        writer_row_steps(w, level);
    }
    for (int r = 0; r < w->k->n_roots; r++) put_alone_result(w, r, whole);
    buffer_puts(&w->body, "    }\n");
    memcpy(w->defined, defined, sizeof defined);
    memcpy(w->kept, kept, sizeof kept);
}

/* A group's results: a vector where rows are whole numbers of groups. */
static void put_alone_vectors(Writer *w)
{
    char n[32];
    snprintf(n, sizeof n, "%s", writer_size(w, w->k->axes.size[w->along]));
    for (int r = 0; r < w->k->n_roots; r++) {
        const Node *x = &w->k->nodes->node[w->k->root[r].node];
        const char *type = dtype_ctype(x->dtype);
        Index at = w->k->root[r].at;
        at.by[w->along] = size_number(0);
        buffer_printf(&w->body, "    %s *to%d = %s + ", type, r,
                      kernel_tensor(w->k, w->k->root[r].node, 1));
        writer_index(w, &at);
        buffer_printf(&w->body, " + first_%s;\n", axis_name(w));
        if (!are_apart(w))
            buffer_printf(
                &w->body,
                "    if (%s %% %d == 0)\n        *(Pack<%s, %d> *)to%d = y%d;\n    else\n    ", n,
                w->each, type, w->each, r, r);
        buffer_printf(&w->body, "    for (int r = 0; r < %d; r++) to%d[r * next] = y%d.v[r];\n",
                      w->each, r, r);
    }
}

/* 1: the coordinate grows along the columns and along a thread's rows, and has a text of loops alone. A warp
 * that has an end of a row does the work of both: of few terms in short rows too many do (2026-12-01,
 * sim:h200: windows of 3 x 3 in rows of 512 take 699 us for 630, of 4 x 4 795 for 903). */
static int has_ends(const Writer *w, const Step *s)
{
    enum { MANY = 16, SHORT = 256, LONG = 4096 };
    const unsigned axes = index_axes(&s->at);
    const int64_t least = writer_product(w, w->columns).at[0] < MANY ? LONG : SHORT;
    if (!s->place || *s->at.text ||
        (axes >> w->along & 1 && w->k->axes.size[w->along].at[0] < least))
        return 0;
    for (int i = 0; i < w->k->axes.n; i++)
        if (axes >> i & 1 &&
            (w->k->bound[i] >= 0 || w->k->looped >> i & 1 ||
             ((w->columns >> i & 1 || i == w->along) && size_less(s->at.by[i], size_number(0)))))
            return 0;
    return 1;
}

/* The least (0), or the largest (1), number that a coordinate has for all columns of a thread's rows. */
static void put_end(Writer *w, const Step *s, int largest)
{
    Index at = s->at;
    for (int i = 0; i < w->k->axes.n; i++) {
        const Size span = size_times(at.by[i], size_plus(w->k->axes.size[i], size_number(-1)));
        if (!(w->columns >> i & 1)) continue;
        if (largest) at.plus = size_plus(at.plus, span);
        at.by[i] = size_number(0);
    }
    buffer_printf(&w->body, "    { const %s %s = first_%s + %d * next; interior &= ",
                  w->wide ? "long long" : "int", axis_name(w), axis_name(w),
                  largest ? w->each - 1 : 0);
    writer_index(w, &at);
}

/* Windows that lie within a padded tensor as a whole need no comparison of each element (2026-12-01). Returns
 * whether `interior` says that those of a thread's rows do. */
static int put_interior(Writer *w)
{
    const Kernel *k = w->k;
    int any = 0;
    for (int c = 1; c < k->n_conditions; c++)
        for (int t = 0; t < k->condition[c].n; t++, any++)
            if (!has_ends(w, &k->step[k->condition[c].term[t].step])) return 0;
    if (!any || k->nodes->plain || w->each < 2) return 0;
    buffer_puts(&w->body, "    bool interior = true;\n");
    for (int c = 1; c < k->n_conditions; c++)
        for (int t = 0; t < k->condition[c].n; t++) {
            const Step *s = &k->step[k->condition[c].term[t].step];
            put_end(w, s, 0);
            buffer_puts(&w->body, " >= 0; }\n");
            put_end(w, s, 1);
            buffer_printf(&w->body, " < %s; }\n", writer_size(w, k->condition[c].term[t].below));
        }
    return 1;
}

void alone_put(Writer *w)
{
    char n[32];
    put_alone_head(w);
    snprintf(n, sizeof n, "%s", writer_size(w, w->k->axes.size[w->along]));
    writer_help(w, HELP_PACK);
    buffer_printf(&w->body, "    if (first_%s + %d * next < %s) {\n", axis_name(w), w->each - 1, n);
    for (int r = 0; r < w->k->n_roots; r++)
        buffer_printf(&w->body, "    Pack<%s, %d> y%d;\n",
                      dtype_ctype(w->k->nodes->node[w->k->root[r].node].dtype), w->each, r);
    w->interior = put_interior(w);
    if (w->interior) {
        buffer_puts(&w->body, "    if (interior) {\n");
        put_alone_body(w, 1);
        buffer_puts(&w->body, "    } else {\n");
        w->interior = 0;
        put_alone_body(w, 1);
        buffer_puts(&w->body, "    }\n");
    } else {
        put_alone_body(w, 1);
    }
    put_alone_vectors(w);
    buffer_puts(&w->body, "    return;\n    }\n");
    if (w->each > 1) put_alone_body(w, 0);
}

int alone_fits(const Writer *w)
{
    for (int r = 0; r < w->k->n_roots; r++) {
        const Index *at = &w->k->root[r].at;
        if (in_columns(w, w->k->root[r].step) || *at->text || !size_is(at->by[w->along], 1))
            return 0;
        for (int i = 0; i < w->k->axes.n; i++)
            if (i != w->along && !size_is(at->by[i], 0) &&
                !size_divides(w->k->axes.size[w->along], at->by[i]))
                return 0;
    }
    return 1;
}

int alone_launch(const Writer *w, Buffer *plan, Error *err)
{
    SizeTable *sizes = w->k->nodes->sizes;
    char rows[SIZE_TEXT], n[SIZE_TEXT];
    if (size_text(sizes, writer_product(w, w->k->rows & ~(1u << w->along)), rows, err) ||
        size_text(sizes, w->k->axes.size[w->along], n, err))
        return -1;
    buffer_printf(plan, "ceil_div(ceil_div(%s, %d) * (%s), %d), %d", n, w->each, rows, w->block,
                  w->block);
    return 0;
}

/* ---- rows that lie along another axis than their results ---- */

/* Columns that a thread folds by itself at most: those of a window. */
enum { TURNED_COLUMNS = 32, TURNED_AXIS = 8 };

/* The axis of rows along which results lie side by side; -1: none, or that of the strip. */
static int stored_along(const Writer *w)
{
    const Index *at = &w->k->root[0].at;
    for (int i = 0; i < w->k->axes.n && !*at->text; i++)
        if (w->k->rows >> i & 1 && i != w->strip && size_is(at->by[i], 1) &&
            w->k->axes.size[i].at[0] >= TURNED_AXIS)
            return i;
    return -1;
}

int turned_fits(const Writer *w)
{
    const Kernel *k = w->k;
    const Size columns = writer_product(w, w->columns);
    return !k->nodes->plain && w->strip >= 0 && k->n_roots == 1 && k->scan < 0 && w->part < 0 &&
           !in_columns(w, k->root[0].step) && size_constant(columns) &&
           columns.at[0] <= TURNED_COLUMNS && stored_along(w) >= 0;
}

/* The rows beside the strip: places of a tile, counted in the order of the results. */
static unsigned places(const Writer *w)
{
    return w->k->rows & ~(1u << w->strip);
}

/* Begins the loop over a warp's 32 neighbours: in it `k` is the row of the tile that the thread has. */
static void put_tile_loop(Writer *w, int stores)
{
    const char *type = w->wide ? "long long" : "int", *strip = w->k->axes.name[w->strip];
    char n[32], all[32];
    snprintf(n, sizeof n, "%s", writer_size(w, w->k->axes.size[w->strip]));
    snprintf(all, sizeof all, "%s", writer_size(w, writer_product(w, places(w))));
    buffer_printf(&w->body, "    for (int k = threadIdx.y; k < %d; k += %d) {\n", TURNED_SIDE,
                  TURNED_WARPS);
    if (stores)
        buffer_printf(&w->body,
                      "        const %s at = first + threadIdx.x, %s = chunk + k;\n"
                      "        if (at >= %s || %s >= %s) continue;\n",
                      type, strip, all, strip, n);
    else
        buffer_printf(&w->body,
                      "        const %s at = min(first + k, %s - 1), %s = min(chunk + "
                      "(int)threadIdx.x, %s - 1);\n",
                      type, all, strip, n);
    writer_axes(w, places(w), "at", type, "        ");
}

void turned_put(Writer *w)
{
    const Kernel *k = w->k;
    const char *type = dtype_ctype(k->nodes->node[k->root[0].node].dtype),
               *index = w->wide ? "long long" : "int";
    buffer_printf(&w->body,
                  "    __shared__ %s turned[%d][%d];\n    double *shared = nullptr;\n"
                  "    const int lane = 0;\n    (void)shared;\n"
                  "    const int strips = (%s + %d) / %d;\n"
                  "    const %s chunk = blockIdx.x %% strips * %d, first = (%s)(blockIdx.x / "
                  "strips) * %d;\n",
                  type, TURNED_SIDE, TURNED_SIDE + 1, writer_size(w, k->axes.size[w->strip]),
                  TURNED_SIDE - 1, TURNED_SIDE, index, TURNED_SIDE, index, TURNED_SIDE);
    put_tile_loop(w, 0);
    writer_kept(w);
    writer_row_steps(w, 0);
    for (int level = 1; level <= writer_passes(w); level++) {
        fold_put_level(w, level);
        writer_row_steps(w, level);
    }
    buffer_printf(&w->body,
                  "        turned[k][threadIdx.x] = (%s)t%d;\n    }\n    __syncthreads();\n", type,
                  k->root[0].step);
    put_tile_loop(w, 1);
    buffer_printf(&w->body, "        %s[", kernel_tensor(w->k, k->root[0].node, 1));
    writer_index(w, &k->root[0].at);
    buffer_puts(&w->body, "] = turned[threadIdx.x][k];\n    }\n");
}

int turned_launch(const Writer *w, Buffer *plan, Error *err)
{
    SizeTable *sizes = w->k->nodes->sizes;
    char strip[SIZE_TEXT], rows[SIZE_TEXT];
    if (size_text(sizes, w->k->axes.size[w->strip], strip, err) ||
        size_text(sizes, writer_product(w, places(w)), rows, err))
        return -1;
    buffer_printf(plan, "ceil_div(%s, %d) * ceil_div(%s, %d), dim3(32, %d)", strip, TURNED_SIDE,
                  rows, TURNED_SIDE, TURNED_WARPS);
    return 0;
}
