/* test_bf16.c -- products with factors in bf16: each form gives the bits of the definition in
 * bf16.h. */
#include "bf16_test.h"

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Known results: ties, carries into the exponent, overflow, NaN, denormals. */
START_TEST(narrow)
{
    static const struct {
        uint32_t from;
        bf16 to;
    } known[] = {
        {0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82},
        {0x3fffffff, 0x4000}, {0xbf808001, 0xbf81}, {0x7f7fffff, 0x7f80}, {0x7f7f7fff, 0x7f7f},
        {0x7f800000, 0x7f80}, {0xff800000, 0xff80}, {0x7f800001, 0x7fc0}, {0xff80ffff, 0xffc0},
        {0x7fc12345, 0x7fc1}, {0x7fffffff, 0x7fff}, {0x007fffff, 0x0000}, {0x80000001, 0x8000},
        {0x00800000, 0x0080}, {0x80808000, 0x8080}, {0x00000000, 0x0000}, {0x80000000, 0x8000},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const bf16 got = bf16_narrow(from_bits(known[i].from));
        ck_assert_msg(got == known[i].to, "%08x becomes %04x, not %04x", known[i].from, got,
                      known[i].to);
    }
    for (int i = 0; i < 65536; i++) { /* a bf16 stays, but for denormals and signaling NaNs */
        const bool denormal = (i & 0x7f80) == 0, nan = (i & 0x7fff) > 0x7f80;
        const bf16 want = (bf16)(denormal ? i & 0x8000 : nan ? i | 0x40 : i);
        REQUIRE(bf16_narrow(bf16_wide((bf16)i)) == want, "%04x does not stay", i);
    }
}
END_TEST

#ifndef RT_DOUBLE
#include "bf16_test_attention.h"
#include "bf16_test_conv.h"
#include "bf16_test_products.h"

/* Floats of all kinds: any bits, and numbers close to the middle of two bf16. */
static OPTIMISED float any_float(int64_t i)
{
    uint32_t bits[4];
    rt_philox(bits, 0xbf16, (uint32_t)i, 0, 0, 0);
    return from_bits(bits[1] % 4 ? (bits[0] & 0xffff0000) + 0x7fff + bits[1] % 3 : bits[0]);
}

START_TEST(vectors)
{
    enum { COUNT = 20000 };
    flush_denormals();
    real *x = buffer(COUNT), *back = buffer(COUNT);
    bf16 *y = buffer_bytes(COUNT * sizeof *y);
    for (int i = 0; i < COUNT; i++)
        x[i] = any_float(i);
    for (int n = COUNT - 2 * V; n <= COUNT; n++) {
        const bool all = n == COUNT;
        const int first = all ? 0 : COUNT - 4 * V;
        memset(y, GUARD, COUNT * sizeof *y);
        bf16_from_f32(y + first, x + first, n - first);
        for (int i = first; i < COUNT; i++) {
            const bf16 want = i < n ? bf16_narrow(x[i]) : GUARD << 8 | GUARD;
            REQUIRE(y[i] == want, "number %d: %04x instead of %04x", i, y[i], want);
        }
        memset(back, GUARD, COUNT * sizeof *back);
        bf16_to_f32(back + first, y + first, n - first);
        for (int i = first; i < n; i++) {
            const float want = bf16_wide(y[i]);
            REQUIRE(memcmp(&want, back + i, sizeof want) == 0, "number %d wide", i);
        }
        for (int i = n; i < COUNT; i++)
            REQUIRE(((const unsigned char *)(back + i))[0] == GUARD, "number %d written", i);
    }
    check_guard(y, COUNT * sizeof *y, "bf16_from_f32");
    check_guard(back, COUNT * (int64_t)sizeof(real), "bf16_to_f32");
    release(3, x, back, y);
}
END_TEST

#if defined(RT_AMX) && !defined(TILES_H)
/* A program for AVX-512, with tiles.c, uses tiles if this processor has them and the system gives
 * permission.  A system that refuses is noted once. */
static int notes;
void rt_note(const char *fmt, ...)
{
    notes++;
    ck_assert_ptr_nonnull(strstr(fmt, "AMX"));
}

_Noreturn void rt_die(const char *fmt, ...)
{
    ck_abort_msg("%s", fmt);
    abort();
}

static void *ask_for_tiles(void *ready)
{
    *(bool *)ready = bf16_has_tiles() && bf16_has_tiles();
    return NULL;
}
START_TEST(permission)
{
    bool other = false;
    pthread_t thread;
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[8192];
    bool has = false;
    while (f && fgets(line, sizeof line, f))
        has = has || strstr(line, " amx_bf16");
    if (f)
        fclose(f);
    ck_assert_int_eq(pthread_create(&thread, NULL, ask_for_tiles, &other), 0);
    pthread_join(thread, NULL);
    ck_assert_msg(bf16_has_tiles() == has && other == has, "tiles: %d, of another thread: %d",
                  bf16_has_tiles(), other);
    ck_assert_int_le(notes, has ? 0 : 1);
    rt_tiles = RT_TILES_REFUSED; /* vectors give the same bits where there are tiles */
    for (int i = 0; i < DENSE_SIZES; i++)
        check_layer(dense_sizes[i], USUAL, 1);
    check_filter(conv_sizes[3], USUAL, 1);
}
END_TEST
#elif defined(RT_AMX)
/* A thread without permission for tiles computes the same bits and uses no tile. */
START_TEST(refused)
{
    check_layer(dense_sizes[4], USUAL, 1);
    ck_assert_msg(tile_products > 0, "no product by tiles");
    rt_tiles = RT_TILES_UNKNOWN, tiles_refused = true, tile_products = 0;
    check_layer(dense_sizes[4], USUAL, 1);
    check_filter(conv_sizes[3], USUAL, 1);
    ck_assert_msg(tile_products == 0, "%ld products by tiles without permission", tile_products);
}
END_TEST
#endif
#endif

int main(void)
{
    TCase *c = tcase_create("bf16");
    tcase_add_test(c, narrow);
#ifndef RT_DOUBLE
    tcase_add_test(c, vectors);
    add_rounds(c, dense_layers, 0, DENSE_SIZES * KINDS);
    tcase_add_test(c, flushed);
#ifdef RT_FAST
    add_rounds(c, chains, 0, 48);
#endif
    add_rounds(c, bound, 0, 16);
    add_rounds(c, dense_teams, 0, DENSE_SIZES);
    add_rounds(c, gemm, 0, GEMM_SIZES * KINDS);
    add_rounds(c, gemm_teams, 0, GEMM_SIZES * 2);
    add_rounds(c, gemm_bound, 0, 5);
    add_rounds(c, attention_heads, 0, ATTENTIONS * 2);
    add_rounds(c, attention_teams, 0, ATTENTIONS);
    add_rounds(c, attention_tokens, 0, ATTENTIONS);
    add_rounds(c, attention_bound, 0, ATTENTIONS * 2);
    add_rounds(c, conv_layers, 0, CONV_SIZES * KINDS);
    add_rounds(c, conv_bands, 0, LARGE_SIZES);
    add_rounds(c, conv_teams, 0, CONV_SIZES);
    add_rounds(c, conv_updates, 0, FILTER_UPDATES * KINDS);
    add_rounds(c, dense_updates, 0, DENSE_UPDATES * KINDS);
#if defined(RT_AMX) && !defined(TILES_H)
    tcase_add_test(c, permission);
#elif defined(RT_AMX)
    tcase_add_test(c, refused);
#endif
#endif
    return run_suite(c, "bf16");
}
