/* Positions that are compared in what sampled blocks have written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "eval/judge/contents/spans.h"

enum { ROW = 1000, TILE = 32, TILES = 3 };

/* The rows of square tiles, one tile below the other. */
static int64_t tiles(Span *spans)
{
    static const size_t column[TILES] = {64, 960, 0};
    for (size_t i = 0; i < TILES * TILE; i++) {
        size_t from = (i / TILE * 100 + i % TILE) * ROW + column[i / TILE];
        spans[i] = (Span){from, from + TILE};
    }
    return TILES * TILE;
}

/* Counts the chosen positions of each row and column of tile t. */
static void count(const int64_t *at, int64_t n, int t, int rows[TILE], int columns[TILE])
{
    Span spans[TILES * TILE];
    tiles(spans);
    memset(rows, 0, TILE * sizeof *rows);
    memset(columns, 0, TILE * sizeof *columns);
    for (int64_t i = 0; i < n; i++)
        for (int r = 0; r < TILE; r++) {
            const Span *s = &spans[t * TILE + r];
            if ((size_t)at[i] < s->from || (size_t)at[i] >= s->end) continue;
            rows[r]++;
            columns[(size_t)at[i] - s->from]++;
        }
}

/* A wrong row or column of a tile that was written is compared, whatever the seed. */
static void test_each_row_and_column(void **state)
{
    (void)state;
    Span spans[TILES * TILE];
    int64_t n = tiles(spans), at[TILES * TILE * 2];
    for (uint64_t seed = 1; seed < 40; seed++)
        for (int64_t each = 1; each <= 2; each++) {
            int64_t chosen = spans_choose(spans, n, &(SpanChoice){each * n, ROW, seed}, at);
            assert_int_equal(chosen, each * n);
            for (int64_t i = 1; i < chosen; i++) assert_true(at[i - 1] < at[i]);
            for (int t = 0; t < TILES; t++) {
                int rows[TILE], columns[TILE];
                count(at, chosen, t, rows, columns);
                /* The last position of all takes the place of another one. */
                int missing = 0;
                for (int i = 0; i < TILE; i++) {
                    assert_int_equal(rows[i], each);
                    missing += !columns[i];
                }
                assert_true(missing <= (t == TILES - 1));
            }
        }
}

/* Positions follow from the seed, and both ends of a span are among many. */
static void test_long_spans(void **state)
{
    (void)state;
    const Span spans[2] = {{10, 500}, {900, 901}};
    int64_t at[40], other[40];
    int64_t n = spans_choose(spans, 2, &(SpanChoice){40, 1, 1}, at);
    assert_int_equal(n, 21);
    assert_int_equal(at[0], 10);
    assert_int_equal(at[n - 2], 499);
    assert_int_equal(at[n - 1], 900);
    assert_int_equal(spans_choose(spans, 2, &(SpanChoice){40, 1, 2}, other), n);
    assert_memory_not_equal(at, other, (size_t)n * sizeof *at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_row_and_column),
                                       cmocka_unit_test(test_long_spans)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
