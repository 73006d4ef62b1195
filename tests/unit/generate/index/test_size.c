/* Sizes of a graph at its bindings: which of them count as equal, and which expressions they get. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "generate/index/size.h"
#include "tests/small_draft.h"

/* Every axis but the first is the width of a tensor of its own. */
enum { AXES = 8, WIDE = AXES - 1, STRIDES = 2, LINES = 2 * STRIDES * WIDE };

typedef struct {
    char name[AXES][8], input[WIDE][8], line[2 * LINES][80];
    const char *lines[2 * LINES];
    int n_lines;
    DraftAxis axes[AXES];
    DraftTensor inputs[WIDE], output;
} Wide;

/* Elements of each tensor in steps of 8 and of 16, and the sum of all. */
static void write_lines(Wide *w)
{
    for (int i = 0; i < WIDE; i++)
        for (int k = 0; k < STRIDES; k++, w->n_lines++)
            snprintf(w->line[w->n_lines], sizeof w->line[0],
                     "a%d = aten.slice.Tensor(%s, 1, 0, 9223372036854775807, %d)", w->n_lines,
                     w->input[i], 8 << k);
    for (int i = 0; i < STRIDES * WIDE; i++, w->n_lines++)
        snprintf(w->line[w->n_lines], sizeof w->line[0], "b%d = aten.sum(a%d)", i, i);
    for (int i = 0; i + 1 < STRIDES * WIDE; i++, w->n_lines++)
        snprintf(w->line[w->n_lines], sizeof w->line[0], "c%d = aten.add.Tensor(%s%d, b%d)", i,
                 i ? "c" : "b", i ? i - 1 : 0, i + 1);
    memcpy(w->line[w->n_lines - 1], "y   ", 4); /* the last name */
    for (int i = 0; i < w->n_lines; i++) w->lines[i] = w->line[i];
}

static Task *wide_task(Wide *w, int64_t size)
{
    memset(w, 0, sizeof *w);
    for (int i = 0; i < AXES; i++) {
        snprintf(w->name[i], sizeof w->name[i], "n%d", i);
        w->axes[i] = (DraftAxis){w->name[i], NULL, i ? size : 8};
    }
    for (int i = 0; i < WIDE; i++) {
        snprintf(w->input[i], sizeof w->input[i], "x%d", i);
        w->inputs[i] = tensor(w->input[i], DTYPE_F32, w->name[0], w->name[i + 1]);
    }
    write_lines(w);
    w->output = (DraftTensor){.name = "y", .dtype = DTYPES, .rank = -1};
    return planned(&(Draft){.name = "wide",
                            .level = 1,
                            .axes = w->axes,
                            .n_axes = AXES,
                            .inputs = w->inputs,
                            .n_inputs = WIDE,
                            .outputs = &w->output,
                            .n_outputs = 1,
                            .lines = w->lines,
                            .n_lines = w->n_lines});
}

static Size columns_of(const SizeTable *t, int value)
{
    Size s;
    for (int k = 0; k < SIZE_BINDINGS; k++) s.at[k] = t->bound[k]->values[value].tensor.size[1];
    return s;
}

/* The timed sizes are multiples of all strides, where twice the elements of one are those of the other. */
static void test_rounded_quotients_are_told_apart(void **state)
{
    static SizeTable t;
    static Wide w;
    Error err;
    (void)state;
    Task *task = wide_task(&w, 224);
    if (size_open(&t, task, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < STRIDES * WIDE; i += STRIDES) {
        Size one = columns_of(&t, task->graph->first[i]),
             other = columns_of(&t, task->graph->first[i + 1]);
        assert_int_equal(one.at[0], 2 * other.at[0]);
        if (size_same(one, size_times(other, size_number(2)))) fail_msg("tensor %d", i / STRIDES);
    }
    size_close(&t);
    task_free(task);
}

/* An image whose width is divided three times, as stages of a network do: (width + 5) / 16 fits many sizes
 * near the task's own, too. Small images have no place for z's windows. */
static void test_windows_of_windows_have_expressions(void **state)
{
    static SizeTable t;
    static const char *const lines[] = {
        "a = aten.max_pool2d(x, [7, 7], [4, 4], [3, 3])",
        "b = aten.max_pool2d(a, [3, 3], [2, 2], [1, 1])",
        "y = aten.max_pool2d(b, [2, 2], [2, 2])",
        "z = aten.max_pool2d(a, [4, 4], [4, 4])",
    };
    DraftAxis axes[] = {{"channels", NULL, 16}, {"height", NULL, 64}, {"width", NULL, 64}};
    DraftTensor x = tensor("x", DTYPE_F32, "channels", "height"),
                out[] = {{.name = "y", .dtype = DTYPES, .rank = -1},
                         {.name = "z", .dtype = DTYPES, .rank = -1}};
    x.shape[x.rank++] = "width";
    Task *task = planned(&(Draft){.name = "stages",
                                  .level = 1,
                                  .axes = axes,
                                  .n_axes = 3,
                                  .inputs = &x,
                                  .n_inputs = 1,
                                  .outputs = out,
                                  .n_outputs = 2,
                                  .lines = lines,
                                  .n_lines = 4});
    Error err;
    char text[SIZE_TEXT];
    (void)state;
    if (size_open(&t, task, &err)) fail_msg("%s", err.text);
    Size pair = size_number(1);
    for (int d = 1; d < 3; d++) {
        Size s;
        for (int k = 0; k < SIZE_BINDINGS; k++)
            s.at[k] = t.bound[k]->values[t.bound[k]->graph->first[2]].tensor.size[d];
        if (size_text(&t, s, text, &err)) fail_msg("%s", err.text);
        assert_string_equal(text, d == 1 ? "((height + 7) / 16)" : "((width + 7) / 16)");
        pair = size_times(pair, s);
    }
    if (size_text(&t, pair, text, &err)) fail_msg("%s", err.text);
    size_close(&t);
    task_free(task);
}

/* Positions turn a part of a head, whose size is a number: the axis has small sizes alone. */
static void test_a_part_of_a_number_has_an_expression(void **state)
{
    static SizeTable t;
    static const char *const lines[] = {
        "a = aten.slice.Tensor(x, 1, 0, 2 * part)", "b = aten.cat([turn, turn], -1)",
        "c = aten.mul.Tensor(a, b)", "d = aten.slice.Tensor(x, 1, 2 * part)",
        "y = aten.cat([c, d], -1)"};
    DraftAxis axes[] = {{"rows", NULL, 64}, {"part", NULL, 2}};
    DraftTensor in[] = {tensor("x", DTYPE_F32, "rows", "16"),
                        tensor("turn", DTYPE_F32, "part", NULL)},
                y = {.name = "y", .dtype = DTYPES, .rank = -1};
    Task *task = planned(&(Draft){.name = "turned",
                                  .level = 1,
                                  .axes = axes,
                                  .n_axes = 2,
                                  .inputs = in,
                                  .n_inputs = 2,
                                  .outputs = &y,
                                  .n_outputs = 1,
                                  .lines = lines,
                                  .n_lines = 5});
    Error err;
    char text[SIZE_TEXT];
    (void)state;
    if (size_open(&t, task, &err)) fail_msg("%s", err.text);
    if (size_text(&t, columns_of(&t, task->graph->first[3]), text, &err)) fail_msg("%s", err.text);
    assert_string_equal(text, "((16 - 2 * part))");
    size_close(&t);
    task_free(task);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounded_quotients_are_told_apart),
        cmocka_unit_test(test_windows_of_windows_have_expressions),
        cmocka_unit_test(test_a_part_of_a_number_has_an_expression),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
