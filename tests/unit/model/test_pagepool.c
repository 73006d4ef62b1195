/* Pages: promised pages are always available, and the last user of a shared page returns it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/random.h"
#include "model/cuda/decode/pagepool.h"

static void promises(void **state)
{
    (void)state;
    PagePool p;
    PageList a, b;
    int32_t of_a[4], of_b[4];
    pagepool_init(&p, 6);
    assert_true(pagelist_begin(&a, &p, of_a, NULL, 0, 4));
    assert_int_equal(pagepool_left(&p), 2);
    assert_false(pagelist_begin(&b, &p, of_b, NULL, 0, 3));
    assert_int_equal(pagepool_left(&p), 2); /* a refusal takes nothing */
    int32_t first = pagelist_add(&a, &p);
    pagelist_add(&a, &p);
    assert_int_equal(pagepool_left(&p), 2);
    assert_true(pagelist_begin(&b, &p, of_b, of_a, 1, 3)); /* one shared page, and two others */
    assert_int_equal(pagepool_left(&p), 0);
    assert_int_equal(of_b[0], first);
    pagelist_end(&a, &p);
    assert_int_equal(pagepool_left(&p), 3); /* the shared page stays */
    assert_int_not_equal(pagelist_add(&b, &p), first);
    pagelist_end(&b, &p);
    assert_int_equal(pagepool_left(&p), 6);
    assert_int_equal(p.n_free, 6);
    pagepool_release(&p);
}

/* Many lists that begin, grow and end: no page has two lists that do not share it, and none is
 * lost. */
static void churn(void **state)
{
    (void)state;
    enum { PAGES = 40, LISTS = 12, MAX = 8, SHARED = 3 };
    PagePool p;
    PageList list[LISTS] = {{0}}, prompt;
    int32_t room[LISTS][MAX], shared[SHARED];
    int begun[LISTS] = {0}, refused = 0;
    Random r;
    random_init(&r, 1, 0);
    pagepool_init(&p, PAGES);
    assert_true(pagelist_begin(&prompt, &p, shared, NULL, 0, SHARED));
    for (int i = 0; i < SHARED; i++) pagelist_add(&prompt, &p);
    for (int step = 0; step < 5000; step++) {
        int i = (int)random_below(&r, LISTS);
        if (!begun[i]) {
            begun[i] = pagelist_begin(&list[i], &p, room[i], shared, SHARED, MAX);
            refused += !begun[i];
        } else if (list[i].promised && random_below(&r, 4))
            pagelist_add(&list[i], &p);
        else {
            pagelist_end(&list[i], &p);
            begun[i] = 0;
        }
        int owners[PAGES] = {0}, taken = SHARED, promised = 0;
        for (int j = 0; j < LISTS; j++) {
            for (int k = SHARED; begun[j] && k < list[j].n; k++, taken++)
                assert_int_equal(owners[list[j].page[k]]++, 0);
            for (int k = 0; begun[j] && k < SHARED; k++)
                assert_int_equal(list[j].page[k], shared[k]);
            promised += list[j].promised;
        }
        for (int k = 0; k < SHARED; k++) assert_int_equal(owners[shared[k]], 0);
        assert_int_equal(p.n_free, PAGES - taken);
        assert_int_equal(pagepool_left(&p), PAGES - taken - promised);
        assert_true(pagepool_left(&p) >= 0);
    }
    assert_true(refused > 10);
    pagepool_release(&p);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {cmocka_unit_test(promises), cmocka_unit_test(churn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
