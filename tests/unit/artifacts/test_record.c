/* Records: canonical bytes, every getter's error, and hostile msgpack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "artifacts/record.h"
#include "artifacts/schema.h"

static msgpack_zone *zone;
static Error err;

static int set_up(void **state)
{
    (void)state;
    zone = msgpack_zone_new(8192);
    return zone ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    msgpack_zone_free(zone);
    return 0;
}

static Buffer encoded(const Record *r)
{
    Buffer b;
    buffer_init(&b, 1 << 20);
    assert_int_equal(record_encode(r, &b, &err), 0);
    return b;
}

static void test_bytes_are_canonical(void **state)
{
    (void)state;
    Record *a = record_new(), *b = record_new();
    record_text(a, "name", "x");
    record_int(a, "a", 5);
    record_float(a, "b", 1.0);
    record_float(b, "b", 1.0);
    record_text(b, "name", "x");
    record_int(b, "a", 5);
    Buffer x = encoded(a), y = encoded(b);
    static const unsigned char expected[] = {0x83, 0xa1, 'a', 5,   0xa1, 'b', 0xcb, 0x3f,
                                             0xf0, 0,    0,   0,   0,    0,   0,    0xa4,
                                             'n',  'a',  'm', 'e', 0xa1, 'x'};
    assert_int_equal(x.len, sizeof expected);
    assert_memory_equal(x.data, expected, sizeof expected);
    assert_int_equal(y.len, x.len);
    assert_memory_equal(x.data, y.data, x.len);
    buffer_release(&x);
    buffer_release(&y);
    record_free(a);
    record_free(b);
}

static Record *sample(void)
{
    static const int64_t ints[] = {0, -1, INT64_MAX, INT64_MIN, 300};
    static const double floats[] = {0.5, -1e300, 0};
    static const char *const texts[] = {"one", "", "three"};
    Record *r = record_new();
    record_text(r, "text", "h\xc3\xa9llo");
    record_textn(r, "raw", "\xff\0z", 3);
    record_bytes(r, "bytes", "\0\1\2", 3);
    record_int(r, "int", -7);
    record_float(r, "float", 0.1);
    record_bool(r, "yes", 1);
    record_bool(r, "no", 0);
    record_ints(r, "ints", ints, 5);
    record_floats(r, "floats", floats, 3);
    record_floats(r, "none", NULL, 0);
    record_texts(r, "texts", texts, 3);
    Record *m = record_map(r, "map");
    record_int(m, "deep", 1);
    record_int(record_item(r, "list"), "i", 10);
    record_int(record_item(r, "list"), "i", 11);
    return r;
}

static void test_round_trip(void **state)
{
    (void)state;
    Record *r = sample();
    Buffer b = encoded(r);
    View v, sub;
    assert_int_equal(view_decode(b.data, b.len, "mem", zone, &v, &err), 0);
    const char *s;
    const void *p;
    size_t n;
    int64_t i, *is;
    double f, *fs;
    int yes;
    assert_int_equal(view_text(&v, "text", &s, &n, &err), 0);
    assert_int_equal(n, 6);
    assert_memory_equal(s, "h\xc3\xa9llo", 6);
    assert_int_equal(view_text(&v, "raw", &s, &n, &err), 0);
    assert_int_equal(n, 3);
    assert_memory_equal(s, "\xff\0z", 3);
    assert_int_equal(view_bytes(&v, "bytes", &p, &n, &err), 0);
    assert_int_equal(n, 3);
    assert_int_equal(view_int(&v, "int", &i, &err), 0);
    assert_int_equal(i, -7);
    assert_int_equal(view_float(&v, "float", &f, &err), 0);
    assert_true(f == 0.1);
    assert_int_equal(view_float(&v, "int", &f, &err), 0);
    assert_true(f == -7);
    assert_int_equal(view_bool(&v, "yes", &yes, &err), 0);
    assert_true(yes);
    assert_int_equal(view_bool(&v, "no", &yes, &err), 0);
    assert_false(yes);
    assert_int_equal(view_ints(&v, "ints", &is, &n, &err), 0);
    assert_int_equal(n, 5);
    assert_true(is[1] == -1 && is[2] == INT64_MAX && is[3] == INT64_MIN && is[4] == 300);
    free(is);
    assert_int_equal(view_floats(&v, "floats", &fs, &n, &err), 0);
    assert_true(n == 3 && fs[1] == -1e300);
    free(fs);
    assert_int_equal(view_floats(&v, "none", &fs, &n, &err), 0);
    assert_int_equal(n, 0);
    free(fs);
    assert_int_equal(view_map(&v, "map", &sub, &err), 0);
    assert_int_equal(view_int(&sub, "deep", &i, &err), 0);
    assert_int_equal(view_count(&v, "list", &n, &err), 0);
    assert_int_equal(n, 2);
    assert_int_equal(view_item(&v, "list", 1, &sub, &err), 0);
    assert_int_equal(view_int(&sub, "i", &i, &err), 0);
    assert_int_equal(i, 11);
    /* a copy of all fields encodes to the same bytes */
    Record *copy = record_new();
    record_copy(copy, &v);
    Buffer c = encoded(copy);
    assert_int_equal(c.len, b.len);
    assert_memory_equal(c.data, b.data, b.len);
    buffer_release(&b);
    buffer_release(&c);
    record_free(copy);
    record_free(r);
}

static void test_copy_keeps_what_is_there(void **state)
{
    (void)state;
    Record *r = sample(), *copy = record_new();
    Buffer b = encoded(r);
    View v;
    int64_t i;
    assert_int_equal(view_decode(b.data, b.len, "mem", zone, &v, &err), 0);
    record_int(copy, "int", 99);
    record_copy(copy, &v);
    Buffer c = encoded(copy);
    assert_int_equal(view_decode(c.data, c.len, "copy", zone, &v, &err), 0);
    assert_int_equal(view_int(&v, "int", &i, &err), 0);
    assert_int_equal(i, 99);
    buffer_release(&b);
    buffer_release(&c);
    record_free(copy);
    record_free(r);
}

static void test_errors_name_record_and_field(void **state)
{
    (void)state;
    Record *r = sample();
    Buffer b = encoded(r);
    View v, sub;
    const char *s;
    size_t n;
    int64_t i, *is;
    double *fs;
    assert_int_equal(view_decode(b.data, b.len, "f.qa, record 3", zone, &v, &err), 0);
    assert_int_equal(view_text(&v, "int", &s, &n, &err), -1);
    assert_string_equal(err.text, "f.qa, record 3, field int: expected a text, found an integer");
    assert_int_equal(view_int(&v, "absent", &i, &err), -1);
    assert_string_equal(err.text,
                        "f.qa, record 3, field absent: expected an integer, found no such field");
    assert_int_equal(view_ints(&v, "texts", &is, &n, &err), -1);
    assert_string_equal(err.text,
                        "f.qa, record 3, field texts[0]: expected an integer, found a text");
    assert_int_equal(view_floats(&v, "map", &fs, &n, &err), -1);
    assert_string_equal(err.text,
                        "f.qa, record 3, field map: expected a list of floats, found a map");
    assert_int_equal(view_item(&v, "list", 2, &sub, &err), -1);
    assert_int_equal(view_item(&v, "ints", 0, &sub, &err), -1);
    assert_int_equal(view_map(&v, "map", &sub, &err), 0);
    assert_int_equal(view_text(&sub, "deep", &s, &n, &err), -1);
    assert_string_equal(err.text,
                        "f.qa, record 3, in map, field deep: expected a text, found an integer");
    assert_null(view_strdup(&v, "no", &err));
    buffer_release(&b);
    record_free(r);
}

static void test_every_truncation_is_refused(void **state)
{
    (void)state;
    Record *r = sample();
    Buffer b = encoded(r);
    View v;
    for (size_t n = 0; n < b.len; n++) {
        char *cut = malloc(n ? n : 1); /* exactly n bytes: a sanitizer sees a read past them */
        memcpy(cut, b.data, n);
        assert_int_equal(view_decode(cut, n, "cut", zone, &v, &err), -1);
        assert_non_null(strstr(err.text, "cut"));
        free(cut);
    }
    buffer_append(&b, "\xc0", 1);
    assert_int_equal(view_decode(b.data, b.len, "tail", zone, &v, &err), -1);
    buffer_release(&b);
    record_free(r);
}

static void refused(const char *bytes, size_t n, const char *why)
{
    View v;
    assert_int_equal(view_decode(bytes, n, "x", zone, &v, &err), -1);
    if (!strstr(err.text, why)) fail_msg("expected \"%s\" in \"%s\"", why, err.text);
}

static void test_hostile_bytes(void **state)
{
    (void)state;
    refused("\xdf\xff\xff\xff\xff", 5,
            "a map of 4294967295 fields is claimed, 0 bytes are present");
    refused("\x81\xa1k\xdd\xff\xff\xff\xff", 8,
            "field k: a list of 4294967295 elements is claimed");
    refused("\x81\xa1k\xdb\xff\xff\xff\xff", 8, "field k: a text of 4294967295 bytes is claimed");
    refused("\x81\xa1k\xc6\xff\xff\xff\xff", 8, "field k: a byte string of 4294967295 bytes");
    refused("\x81\xdb\xff\xff\xff\xff", 6, "a field's name of 4294967295 bytes is claimed");
    refused("\x81\xa1k\xc1", 4, "begins no type");
    refused("\x81\xa1k\xd4\x01\x02", 6, "begins no type");
    refused("\x81\x01\x02", 3, "name is expected to be text");
    refused("\x82\xa1k\x01\xa1k\x02", 7, "field k: the field comes twice or out of order");
    refused("\x82\xa1k\x01\xa1j\x02", 7, "field j: the field comes twice or out of order");
    refused("\x93\x01\x02\x03", 4, "expected a map");
    char deep[64];
    size_t n = 0;
    for (int i = 0; i < 9; i++) memcpy(deep + n, "\x81\xa1k", 3), n += 3;
    deep[n++] = 1;
    refused(deep, n, "nested deeper than 8");
    View v;
    n = 0;
    for (int i = 0; i < 8; i++) memcpy(deep + n, "\x81\xa1k", 3), n += 3;
    deep[n++] = 1;
    assert_int_equal(view_decode(deep, n, "x", zone, &v, &err), 0);
}

static void test_schema(void **state)
{
    (void)state;
    Record *r = record_new();
    record_int(r, "step", 1);
    record_text(r, "name", "loss");
    View v;
    Buffer b = encoded(r);
    assert_int_equal(view_decode(b.data, b.len, "m, record 0", zone, &v, &err), 0);
    assert_int_equal(schema_check("metrics", &v, &err), -1);
    assert_string_equal(err.text,
                        "m, record 0, field value: expected a 64-bit float, found no such field");
    buffer_release(&b);
    record_float(r, "value", 2);
    b = encoded(r);
    assert_int_equal(view_decode(b.data, b.len, "m", zone, &v, &err), 0);
    assert_int_equal(schema_check("metrics", &v, &err), 0);
    assert_int_equal(schema_check("dataset", &v, &err), -1);
    assert_int_equal(schema_check("nonsense", &v, &err), -1);
    buffer_release(&b);
    record_text(r, "valeu", "x");
    b = encoded(r);
    assert_int_equal(view_decode(b.data, b.len, "m", zone, &v, &err), 0);
    assert_int_equal(schema_check("metrics", &v, &err), -1);
    assert_string_equal(err.text, "m, field valeu: the kind 'metrics' has no such field");
    buffer_release(&b);
    record_free(r);
}

static void test_full_buffer(void **state)
{
    (void)state;
    Record *r = sample();
    Buffer b;
    buffer_init(&b, 40);
    assert_int_equal(buffer_puts(&b, "before"), 0);
    assert_int_equal(record_encode(r, &b, &err), -1);
    assert_int_equal(b.len, 6);
    assert_string_equal(b.data, "before");
    buffer_release(&b);
    record_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bytes_are_canonical, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_round_trip, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_copy_keeps_what_is_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_errors_name_record_and_field, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_every_truncation_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hostile_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_schema, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_full_buffer, set_up, tear_down),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
