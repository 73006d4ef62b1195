/* An expression is a graph of nodes, matched by recursion whose depth is the number of nodes. A run of one
 * set is a loop: it takes what it can, then gives back until the rest matches. */
#include "model/tokenizer/regex.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/tokenizer/unicode.h"

enum {
    MAX_NODES = 512,
    MAX_DEPTH = 16, /* of groups */
    MAX_REPEAT = 1000,
    LEAST_STEPS = 1 << 20, /* of a match, and so many for each byte of the text: */
    STEPS_A_BYTE = 64,
    ENDLESS = -1, /* of a run */
    END = -1,     /* the node after the last: what follows its group, or the end of the match */
    ABSENT = -2   /* no other way */
};

/* Characters: a bit for each ASCII one that is in the set; categories and ranges for the others. */
typedef struct {
    uint32_t ascii[4], categories;
    int negated, space, first_range, n_ranges;
    int unlike; /* \S within a set */
} Set;

typedef struct {
    uint32_t first, last;
} Range;

typedef enum { NODE_RUN, NODE_EITHER, NODE_AHEAD, NODE_LINE_END } NodeKind;

typedef struct {
    NodeKind kind;
    int next;                   /* END: the match is complete */
    int set, min, max, possess; /* of a run */
    int body, other;            /* of EITHER: two ways; of AHEAD: what follows, or does not */
    int negated;                /* AHEAD */
    uint32_t starts[4];         /* EITHER: the ASCII characters that its body can begin with */
} Node;

struct Regex {
    Node nodes[MAX_NODES];
    Set sets[MAX_NODES];
    Range *ranges;
    int n_nodes, n_sets, n_ranges, start;
};

/* ---- compiling ---- */

typedef struct {
    Regex *r;
    const char *p, *end, *from;
    int fold, depth;
    Error *err;
} Parser;

static int refuse(const Parser *p, const char *what)
{
    return error_set(p->err, ERROR_UNSUPPORTED, "the expression has %s at byte %zu: %.200s", what,
                     (size_t)(p->p - p->from), p->from);
}

static int more(const Parser *p)
{
    return p->p < p->end;
}

/* Takes the text if it comes next. */
static int taken(Parser *p, const char *text)
{
    size_t n = strlen(text);
    if ((size_t)(p->end - p->p) < n || memcmp(p->p, text, n)) return 0;
    p->p += n;
    return 1;
}

static int new_node(Parser *p, Node node)
{
    if (p->r->n_nodes == MAX_NODES) return refuse(p, "too many parts");
    p->r->nodes[p->r->n_nodes] = node;
    return p->r->n_nodes++;
}

static void add_range(Regex *r, Set *set, uint32_t first, uint32_t last)
{
    for (uint32_t c = first; c <= last && c < 0x80; c++) set->ascii[c / 32] |= 1u << c % 32;
    if (last < 0x80) return;
    r->ranges = memory_grow(r->ranges, (size_t)r->n_ranges + 1, sizeof *r->ranges);
    r->ranges[r->n_ranges++] = (Range){first, last};
    set->n_ranges++;
}

/* Adds a character; under (?i:) with the other case. s and k have a third form each. */
static int add_char(Parser *p, Set *set, uint32_t code)
{
    add_range(p->r, set, code, code);
    if (!p->fold) return 0;
    if (code >= 0x80) return refuse(p, "a letter beyond ASCII under (?i:)");
    uint32_t low = code | 32;
    if (low < 'a' || low > 'z') return 0;
    add_range(p->r, set, code ^ 32, code ^ 32);
    if (low == 's') add_range(p->r, set, 0x17F, 0x17F);
    if (low == 'k') add_range(p->r, set, 0x212A, 0x212A);
    return 0;
}

static void add_categories(Set *set, uint32_t categories)
{
    set->categories |= categories;
    for (uint32_t c = 0; c < 0x80; c++)
        if (categories >> unicode_category(c) & 1) set->ascii[c / 32] |= 1u << c % 32;
}

static void add_space(Set *set, int is_space)
{
    if (is_space)
        set->space = 1;
    else
        set->unlike = 1;
    for (uint32_t c = 0; c < 0x80; c++)
        if (unicode_is_space(c) == is_space) set->ascii[c / 32] |= 1u << c % 32;
}

/* Reads {X}, a general category or its first letter. */
static int property(Parser *p, uint32_t *categories)
{
    const char *close = memchr(p->p, '}', (size_t)(p->end - p->p));
    if (!taken(p, "{") || !close) return refuse(p, "no name of a property");
    *categories = unicode_categories(p->p, (size_t)(close - p->p));
    if (!*categories) return refuse(p, "an unknown property");
    p->p = close + 1;
    return 0;
}

/* Reads what follows a backslash into the set. *code: the character if it is one, else UNICODE_INVALID. */
static int escape(Parser *p, Set *set, uint32_t *code)
{
    static const char names[] = "rntfv0", codes[] = "\r\n\t\f\v";
    uint32_t categories = 0;
    *code = UNICODE_INVALID;
    if (!more(p)) return refuse(p, "nothing after a backslash");
    char c = *p->p++;
    const char *name = strchr(names, c);
    if (c == 's' || c == 'S') {
        add_space(set, c == 's');
        return 0;
    }
    if (c == 'p' || c == 'P') {
        if (p->fold) return refuse(p, "a property under (?i:)");
        if (property(p, &categories)) return -1;
        add_categories(set, c == 'p' ? categories : ~categories);
        return 0;
    }
    if (c == 'd') {
        add_categories(set, unicode_categories("Nd", 2));
        return 0;
    }
    if (!name && ((c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z')))
        return refuse(p, "an unknown escape");
    if (c == '0') return refuse(p, "an octal number");
    *code = name ? (unsigned char)codes[name - names] : (unsigned char)c;
    return add_char(p, set, *code);
}

static uint32_t next_code(Parser *p)
{
    uint32_t code;
    p->p += unicode_decode(p->p, (size_t)(p->end - p->p), &code);
    return code;
}

/* Reads one end of a range, or a class. *code: UNICODE_INVALID for a class. */
static int set_item(Parser *p, Set *set, uint32_t *code)
{
    if (taken(p, "\\")) return escape(p, set, code);
    if (*p->p == '[' || (p->end - p->p > 1 && p->p[0] == '&' && p->p[1] == '&'))
        return refuse(p, "a set within a set");
    *code = next_code(p);
    return *code == UNICODE_INVALID ? refuse(p, "no UTF-8") : add_char(p, set, *code);
}

/* Reads a set after its bracket. */
static int bracket(Parser *p, Set *set)
{
    set->negated = taken(p, "^");
    for (int first = 1; more(p); first = 0) {
        uint32_t code, last;
        if (!first && taken(p, "]")) {
            for (int i = 0; i < 4 && set->negated; i++) set->ascii[i] = ~set->ascii[i];
            return 0;
        }
        if (set_item(p, set, &code)) return -1;
        if (p->end - p->p < 2 || *p->p != '-' || p->p[1] == ']') continue;
        p->p++;
        if (set_item(p, set, &last)) return -1;
        if (code == UNICODE_INVALID || last == UNICODE_INVALID || last < code || p->fold)
            return refuse(p, "a range that is none");
        add_range(p->r, set, code, last);
    }
    return refuse(p, "a set without its end");
}

/* Reads {m}, {m,} or {m,n}. */
static int counts(Parser *p, Node *run)
{
    int got[2] = {0, ENDLESS}, n = 0;
    for (; n < 2; n++) {
        const char *digits = p->p;
        int v = 0;
        while (more(p) && *p->p >= '0' && *p->p <= '9' && v <= MAX_REPEAT)
            v = v * 10 + *p->p++ - '0';
        if (p->p > digits) got[n] = v;
        if (v > MAX_REPEAT || (!n && p->p == digits)) return refuse(p, "a count that is none");
        if (!n && !taken(p, ",")) {
            got[1] = got[0];
            break;
        }
    }
    run->min = got[0], run->max = got[1];
    if (!taken(p, "}") || (run->max != ENDLESS && run->max < run->min))
        return refuse(p, "a count that is none");
    return 0;
}

static int quantifier(Parser *p, Node *run)
{
    run->min = run->max = 1;
    const char *at = p->p;
    if (taken(p, "?"))
        run->min = 0;
    else if (taken(p, "*"))
        run->min = 0, run->max = ENDLESS;
    else if (taken(p, "+"))
        run->max = ENDLESS;
    else if (taken(p, "{") && counts(p, run))
        return -1;
    if (p->p == at) return 0;
    run->possess = p->p[-1] != '}' && taken(p, "+");
    return more(p) && strchr("?*+", *p->p) ? refuse(p, "a run that is not greedy") : 0;
}

static int alternatives(Parser *p, int *out);

/* Reads a group after its parenthesis. */
static int group(Parser *p, int *out)
{
    const int fold = p->fold;
    Node node = {.kind = NODE_EITHER, .next = END, .other = ABSENT};
    if (taken(p, "?=") || taken(p, "?!"))
        node.kind = NODE_AHEAD, node.negated = p->p[-1] == '!';
    else if (taken(p, "?i:"))
        p->fold = 1;
    else if (!taken(p, "?:") && more(p) && *p->p == '?')
        return refuse(p, "an unknown group");
    if (p->depth++ == MAX_DEPTH) return refuse(p, "groups too deep");
    if (alternatives(p, &node.body)) return -1;
    p->depth--;
    p->fold = fold;
    if (!taken(p, ")")) return refuse(p, "a group without its end");
    if (node.kind == NODE_EITHER) {
        Node times = {0};
        if (quantifier(p, &times)) return -1;
        if (times.max != 1 || times.possess) return refuse(p, "a group that repeats");
        if (!times.min) node.other = END;
    }
    *out = new_node(p, node);
    return *out < 0 ? -1 : 0;
}

static int run(Parser *p, int *out)
{
    Node node = {.kind = NODE_RUN, .next = END, .set = p->r->n_sets};
    uint32_t code;
    if (p->r->n_sets == MAX_NODES) return refuse(p, "too many sets");
    Set *set = &p->r->sets[p->r->n_sets++];
    *set = (Set){.first_range = p->r->n_ranges};
    if (taken(p, "$")) {
        *out = new_node(p, (Node){.kind = NODE_LINE_END, .next = END});
        return *out < 0 ? -1 : 0;
    }
    if (strchr(".^*+?{)", *p->p)) return refuse(p, "a mark that is not read");
    int rc = taken(p, "[") ? bracket(p, set) : set_item(p, set, &code);
    if (rc || quantifier(p, &node)) return -1;
    *out = new_node(p, node);
    return *out < 0 ? -1 : 0;
}

static int sequence(Parser *p, int *out)
{
    *out = END;
    for (int last = END, node = END; more(p) && *p->p != '|' && *p->p != ')'; last = node) {
        if (taken(p, "(") ? group(p, &node) : run(p, &node)) return -1;
        if (last == END)
            *out = node;
        else
            p->r->nodes[last].next = node;
    }
    return 0;
}

static int alternatives(Parser *p, int *out)
{
    int body, either, other;
    if (sequence(p, &body)) return -1;
    *out = body;
    if (!taken(p, "|")) return 0;
    *out = either = new_node(p, (Node){.kind = NODE_EITHER, .next = END, .body = body});
    if (either < 0 || alternatives(p, &other)) return -1;
    p->r->nodes[either].other = other;
    return 0;
}

/* Adds the ASCII characters that a match from this node on can begin with; all of them where it may be
 * empty. */
static void add_starts(const Regex *r, int i, uint32_t starts[4])
{
    for (; i >= 0 && r->nodes[i].kind == NODE_RUN; i = r->nodes[i].next) {
        for (int k = 0; k < 4; k++) starts[k] |= r->sets[r->nodes[i].set].ascii[k];
        if (r->nodes[i].min) return;
    }
    if (i >= 0 && r->nodes[i].kind == NODE_EITHER && r->nodes[i].other != END) {
        add_starts(r, r->nodes[i].body, starts);
        if (r->nodes[i].other >= 0) add_starts(r, r->nodes[i].other, starts);
        return;
    }
    memset(starts, 0xFF, 4 * sizeof *starts);
}

int regex_compile(const char *pattern, size_t len, Regex **out, Error *err)
{
    Regex *r = *out = memory_alloc(sizeof *r);
    Parser p = {.r = r, .p = pattern, .end = pattern + len, .from = pattern, .err = err};
    int rc = alternatives(&p, &r->start);
    if (!rc && more(&p)) rc = refuse(&p, "a parenthesis too much");
    for (int i = 0; i < r->n_nodes; i++)
        if (r->nodes[i].kind == NODE_EITHER) add_starts(r, r->nodes[i].body, r->nodes[i].starts);
    if (!rc) return 0;
    regex_free(r);
    *out = NULL;
    return -1;
}

void regex_free(Regex *r)
{
    if (!r) return;
    free(r->ranges);
    free(r);
}

/* ---- matching ---- */

typedef struct {
    const Regex *r;
    const char *s;
    size_t n;
    long steps; /* that are left */
} Match;

/* What follows a group. */
typedef struct After {
    int node;
    const struct After *next;
} After;

static int in_ranges(const Regex *r, const Set *set, uint32_t code)
{
    for (int i = 0; i < set->n_ranges; i++) {
        const Range *range = &r->ranges[set->first_range + i];
        if (code >= range->first && code <= range->last) return 1;
    }
    return 0;
}

/* Returns the size of the character at `at` if the set has it, else 0. */
static inline size_t step(const Match *m, const Set *set, size_t at)
{
    uint32_t code = (unsigned char)m->s[at];
    if (code < 0x80) return set->ascii[code / 32] >> code % 32 & 1;
    size_t size = unicode_decode(m->s + at, m->n - at, &code);
    int found = (set->categories && set->categories >> unicode_category(code) & 1) ||
                (set->space && unicode_is_space(code)) ||
                (set->unlike && !unicode_is_space(code)) || in_ranges(m->r, set, code);
    return found != set->negated ? size : 0;
}

static long match(Match *m, int node, size_t at, const After *after);

/* Matches a run, and what follows it after as many characters as possible. */
static long match_run(Match *m, const Node *node, size_t at, const After *after)
{
    const Set *set = &m->r->sets[node->set];
    int count = 0;
    for (size_t size; count != node->max && at < m->n && (size = step(m, set, at)); count++)
        at += size;
    m->steps -= count;
    if (node->next == END && !after) return count >= node->min ? (long)at : REGEX_NONE;
    for (; count >= node->min; count--) {
        long end = match(m, node->next, at, after);
        if (end != REGEX_NONE || node->possess || count == node->min) return end;
        do at--;
        while ((m->s[at] & 0xC0) == 0x80);
    }
    return REGEX_NONE;
}

static long match(Match *m, int i, size_t at, const After *after)
{
    if (m->steps-- < 0) return REGEX_HARD;
    if (i == END) return after ? match(m, after->node, at, after->next) : (long)at;
    const Node *node = &m->r->nodes[i];
    if (node->kind == NODE_RUN) return match_run(m, node, at, after);
    if (node->kind == NODE_LINE_END)
        return at == m->n || m->s[at] == '\n' ? match(m, node->next, at, after) : REGEX_NONE;
    if (node->kind == NODE_AHEAD) {
        long end = match(m, node->body, at, NULL);
        if (end == REGEX_HARD || (end == REGEX_NONE) != node->negated)
            return end == REGEX_HARD ? end : REGEX_NONE;
        return match(m, node->next, at, after);
    }
    const After then = {node->next, after};
    const unsigned char c = at < m->n ? (unsigned char)m->s[at] : 0x80;
    const int may = c >= 0x80 || node->starts[c / 32] >> c % 32 & 1;
    long end = may ? match(m, node->body, at, &then) : REGEX_NONE;
    return end != REGEX_NONE || node->other == ABSENT ? end : match(m, node->other, at, &then);
}

long regex_match(const Regex *r, const char *s, size_t n, size_t at)
{
    Match m = {r, s, n, LEAST_STEPS + (long)(n - at) * STEPS_A_BYTE};
    long end = match(&m, r->start, at, NULL);
    return end < 0 ? end : end - (long)at;
}
