/* Escapes text for HTML, and colours CUDA C++: comments, launch plans, strings, numbers, words. Any
 * text is accepted, valid or not. */
#include <ctype.h>
#include <string.h>

#include "base/words.h"
#include "report/report.h"

void html_escape(Buffer *b, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '<')
            buffer_puts(b, "&lt;");
        else if (c == '>')
            buffer_puts(b, "&gt;");
        else if (c == '&')
            buffer_puts(b, "&amp;");
        else if (c == '"')
            buffer_puts(b, "&quot;");
        else if (c >= 0x20 || c == '\n' || c == '\t')
            buffer_append(b, s + i, 1);
        else
            buffer_puts(b, "?");
    }
}

static int is_word(const char *s, size_t n)
{
    static const char words[] = " alignas auto bool break case char class const constexpr continue "
                                "default do double else enum extern false float "
                                "float2 float4 for half __half __half2 __nv_bfloat16 if inline int "
                                "int2 int4 int64_t long namespace return short "
                                "signed size_t sizeof static struct switch template true typedef "
                                "typename uint2 uint32_t uint4 unsigned using void "
                                "volatile while __align__ __constant__ __device__ __forceinline__ "
                                "__global__ __launch_bounds__ __noinline__ "
                                "__restrict__ __shared__ dim3 ";
    char key[40];
    if (n + 2 >= sizeof key) return 0;
    key[0] = ' ';
    memcpy(key + 1, s, n);
    key[n + 1] = ' ';
    key[n + 2] = 0;
    return strstr(words, key) != NULL;
}

static int is_special(const char *s, size_t n)
{
    static const char *const names[] = {"threadIdx", "blockIdx",      "blockDim",  "gridDim",
                                        "warpSize",  "__syncthreads", "__syncwarp"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (word_is(s, n, names[i])) return 1;
    return n > 7 && !memcmp(s, "__shfl_", 7);
}

static void span(Buffer *b, const char *class, const char *s, size_t n)
{
    if (class) buffer_printf(b, "<i class=%s>", class);
    html_escape(b, s, n);
    if (class) buffer_puts(b, "</i>");
}

static size_t quoted(const char *p)
{
    size_t n = 1;
    while (p[n] && p[n] != *p && p[n] != '\n') n += p[n] == '\\' && p[n + 1] ? 2 : 1;
    return n + (p[n] == *p);
}

/* Returns the length of the token at p and sets its class (NULL: no colour). */
static size_t token(const char *p, int line_start, const char **class)
{
    size_t n = 1;
    *class = NULL;
    if (!strncmp(p, "//", 2)) {
        *class = p[2] == '@' ? "p" : "c";
        return strcspn(p, "\n");
    }
    if (!strncmp(p, "/*", 2)) {
        const char *end = strstr(p + 2, "*/");
        *class = "c";
        return end ? (size_t)(end - p) + 2 : strlen(p);
    }
    if (*p == '#' && line_start) {
        *class = "k";
        return strcspn(p, " \n");
    }
    if (*p == '"' || *p == '\'') {
        *class = "s";
        return quoted(p);
    }
    if (isdigit((unsigned char)*p)) {
        while (word_has(p[n]) || p[n] == '.') n++;
        *class = "n";
    } else if (word_has(*p)) {
        n = word_length(p, NULL);
        *class = is_word(p, n) ? "k" : is_special(p, n) ? "b" : NULL;
    }
    return n;
}

void highlight_cuda(Buffer *b, const char *source)
{
    int line_start = 1;
    for (const char *p = source; *p;) {
        const char *class;
        size_t n = token(p, line_start, &class);
        span(b, class, p, n);
        for (size_t i = 0; i < n; i++)
            line_start = p[i] == '\n' || (line_start && isspace((unsigned char)p[i]));
        p += n;
    }
}
