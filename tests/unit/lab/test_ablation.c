/* The table of an ablation: Student's interval, paired differences, holes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lab/ablation.h"

static void interval(void **state)
{
    (void)state;
    const double v[3] = {1, 2, 3};
    double mean;
    assert_true(fabs(ablation_half_interval(v, 3, &mean) - 4.303 * sqrt(1.0 / 3)) < 1e-12);
    assert_true(mean == 2);
    assert_true(ablation_half_interval(v, 1, &mean) == 0 && mean == 1);
    ablation_half_interval(v, 0, &mean);
    assert_true(isnan(mean));
}

static void table(void **state)
{
    (void)state;
    static const char *const arms[] = {"bucket", "shuffled", "none"}, *const seeds[] = {"1", "2"};
    AblationCell cells[6] = {
        {1, {0.5, 1, 2, 0.9, 0.1, 0.5}, 100},  {1, {0.6, 1, 2, 0.8, 0.1, 0.7}, 100},
        {1, {0.4, 0, 1, NAN, -0.1, 0.4}, 100}, {1, {0.5, 0, 1, NAN, -0.1, 0.6}, 100},
        {1, {0.7, 1, 2, NAN, NAN, NAN}, 90},   {0}};
    Buffer b;
    buffer_init(&b, 10000);
    ablation_table(cells, &(AblationNames){arms, seeds, 3, 2}, &b);
    static const char *const lines[] = {
        "| bucket | 2 | 100 | 55.0% | 2.000 | 4.000 | 85.0% | 10.0% | 60.0% |\n",
        "| shuffled | 2 | 100 | 45.0% (-10.0, -10.0 to -10.0) | 1.000 (x0.500, 0.500 to 0.500) | "
        "2.000 (x0.500, 0.500 to 0.500) | - | "
        "-10.0% (-20.0, -20.0 to -20.0) | 50.0% (-10.0, -10.0 to -10.0) |\n",
        "| none | 1; MISSING: seed 2 | 90 | 70.0% | 2.000 | 4.000 | - | - | - |\n"};
    for (int i = 0; i < 3; i++)
        if (!strstr(b.data, lines[i])) fail_msg("no %s in %s", lines[i], b.data);
    buffer_release(&b);
}

static void no_run(void **state)
{
    (void)state;
    AblationCell c;
    Error err;
    assert_int_equal(ablation_cell_read("nowhere", &c, &err), 0);
    assert_int_equal(c.there, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(interval), cmocka_unit_test(table),
                                       cmocka_unit_test(no_run)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("ablation", tests, NULL, NULL);
}
