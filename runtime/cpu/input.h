/* input.h -- from stored samples to the reals that the first layer reads.
 *
 * Stored samples are rows (C, H, W) of u8, f32 or f64; sample i of the batch is row index[i].  u8
 * are scaled; other types are used as they are.  With `last`, images are stored as (H, W, C), which
 * the fast kernels need.
 *
 * If a model has several inputs, they lie one after another in a row, each with its own type.
 *
 * Tokens and labels are rows of integers.  Rows can overlap: windows of a text are rows of one
 * array, and their labels are rows of the same array, one token later.  Targets that are numbers
 * are rows of reals.
 */
#ifndef CPU_INPUT_H
#define CPU_INPUT_H

/* Copies y (N, HW, C) from x (N, C, HW); the next function does the reverse. */
RT_LEAF void hwc_from_chw(real *restrict y, const real *restrict x, int n, int c, int hw)
{
    TEAM_FOR(row, n * hw) {
        const int64_t sample = (int64_t)(row / hw) * c * hw;
        for (int k = 0; k < c; k++)
            y[(int64_t)row * c + k] = x[sample + (int64_t)k * hw + row % hw];
    }
}
RT_LEAF void chw_from_hwc(real *restrict y, const real *restrict x, int n, int c, int hw)
{
    hwc_from_chw(y, x, n, hw, c);
}

#ifdef RT_BF16
RT_LEAF void hwc_from_chw_bf16(bf16 *restrict y, const bf16 *restrict x, int n, int c, int hw)
{
    TEAM_FOR(row, n * hw) {
        const int64_t sample = (int64_t)(row / hw) * c * hw;
        for (int k = 0; k < c; k++)
            y[(int64_t)row * c + k] = x[sample + (int64_t)k * hw + row % hw];
    }
}
RT_LEAF void chw_from_hwc_bf16(bf16 *restrict y, const bf16 *restrict x, int n, int c, int hw)
{
    hwc_from_chw_bf16(y, x, n, hw, c);
}
#endif

/* Returns one element of a stored sample. */
RT_LEAF real input_at(const Rt *r, const char *row, int64_t i)
{
    switch (r->x_type) {
    case RT_U8:
        return (real)((const uint8_t *)row)[i] * (real)r->x_scale;
    case RT_F32:
        return (real)((const float *)row)[i];
    default:
        return (real)((const double *)row)[i];
    }
}

/* Converts a sample to reals, in stored order.  The usual types are copied by whole vectors with
 * opaque loads.  GCC would replace a plain copy by a memmove, which is `rep movsb` for rows of this
 * length and three times slower on Zen 4. */
RT_LEAF void input_row(real *restrict y, const Rt *r, const char *restrict row, int64_t count)
{
    const real scale = (real)r->x_scale;
    int64_t i = 0;
    if (r->x_type == (sizeof(real) == 4 ? RT_F32 : RT_F64))
        for (; i + V <= count; i += V)
            v_store(y + i, v_load_opaque((const real *)row + i));
    else if (r->x_type == RT_U8)
        for (; i + V <= count; i += V)
            v_store(y + i, v_load_bytes((const uint8_t *)row + i) * v_set(scale));
    for (; i < count; i++)
        y[i] = input_at(r, row, i);
}

/* Prefetches sample i, if it exists.  Rows are at any address, and a short row ends before the
 * processor detects the stream: the MLP's 4096 samples of 784 bytes take 0.8 instead of 1.3 ms on
 * one thread of a Zen 4. */
enum { INPUT_FETCH_MOST = 4096 };
RT_LEAF void input_fetch(const Rt *r, int64_t i)
{
    if (i >= r->valid || r->x_stride > INPUT_FETCH_MOST)
        return;
    const char *row = (const char *)r->x + (int64_t)r->index[i] * r->x_stride;
    for (int64_t at = 0; at < r->x_stride; at += 64)
        __builtin_prefetch(row + at, 0, 2);
}

/* Samples first .. first + n - 1 of the global batch: y (N, C, HW), or (N, HW, C) if last. */
enum { INPUT_POSITIONS = 256 }; /* approximate number in a member's part of a sample */

RT_LEAF void rt_input(real *restrict y, const Rt *r, int first, int n, int c, int hw, bool last)
{
    const bool whole = !last || c == 1; /* a row is copied at once */
    const RtGrid part = team_grid(n, whole ? 1 : (hw + INPUT_POSITIONS - 1) / INPUT_POSITIONS);
    const TeamRange samples = team_rows(part, n), positions = team_columns(part, hw);
    y += samples.first * c * hw;
    for (int64_t i = samples.first; i < samples.end; i++, y += (int64_t)c * hw) {
        const char *row = (const char *)r->x + (int64_t)r->index[first + i] * r->x_stride;
        input_fetch(r, first + n + i);
        if (whole)
            input_row(y, r, row, (int64_t)c * hw);
        else
            for (int k = 0; k < c; k++)
                for (int64_t j = positions.first; j < positions.end; j++)
                    y[j * c + k] = input_at(r, row, (int64_t)k * hw + j);
    }
}

/* Replaces the numbers of a row that are no tokens by 0. */
static __attribute__((noinline, cold, unused)) void rt_no_tokens(int32_t *y, const Rt *r, int t)
{
    for (int j = 0; j < t; j++)
        y[j] = y[j] < r->vocab ? y[j] : 0;
    if (r->wrong)
        __atomic_store_n(r->wrong, 1, __ATOMIC_RELAXED);
}

/* y (N, T): the tokens of the same samples.  Padding becomes token 0, so that each token can be
 * looked up.  A number that is no token becomes 0, too: the file was checked, but another process
 * can write to it during the run, and a step that has seen such a number is not completed. */
RT_LEAF void rt_tokens(int32_t *restrict y, const Rt *r, int first, int n, int t)
{
    const TeamRange samples = team_range(n);
    y += samples.first * t;
    for (int64_t i = samples.first; i < samples.end; i++, y += t) {
        const char *row = (const char *)r->x + (int64_t)r->index[first + i] * r->x_stride;
        uint32_t top = 0; /* largest token + 1; padding: 0; other negative numbers: very large */
        for (int j = 0; j < t; j++) {
            const int32_t token = rt_integer_at(row, r->x_type, j);
            top = (uint32_t)token + 1 > top ? (uint32_t)token + 1 : top;
            y[j] = token < 0 ? 0 : token;
        }
        if (top > r->vocab)
            rt_no_tokens(y, r, t);
    }
}

/* Several inputs: part `part` of each stored row, seen as a row of its own. */
RT_LEAF Rt input_part(const Rt *r, int part)
{
    Rt own = *r;
    own.x = (const char *)r->x + r->part[part].at;
    own.x_type = r->part[part].type;
    return own;
}

RT_LEAF void rt_input_part(real *restrict y, const Rt *r, int first, int n, int c, int hw,
                           bool last, int part)
{
    const Rt own = input_part(r, part);
    rt_input(y, &own, first, n, c, hw, last);
}

RT_LEAF void rt_tokens_part(int32_t *restrict y, const Rt *r, int first, int n, int t, int part)
{
    const Rt own = input_part(r, part);
    rt_tokens(y, &own, first, n, t);
}

/* Whether there are no labels, as in predict, which computes no loss.  It then fills the rows of
 * these samples, each of `bytes` bytes, with 0. */
RT_LEAF bool no_labels(void *y, const Rt *r, TeamRange samples, size_t bytes)
{
    if (!r->label)
        memset((char *)y + (size_t)samples.first * bytes, 0,
               (size_t)(samples.end - samples.first) * bytes);
    return !r->label;
}

/* The labels of sample i, or what lies `at` bytes after their start. */
RT_LEAF const void *label_row(const Rt *r, int64_t i, int at)
{
    return (const char *)r->label + (int64_t)r->index[i] * r->label_stride + at;
}

/* y (N, T): T classes of each of the same samples; 0 if there are no labels.  One of several
 * targets lies `at` bytes after the start of a row of labels. */
RT_LEAF void rt_labels_at(int32_t *restrict y, const Rt *r, int first, int n, int t, int at)
{
    const TeamRange samples = team_range(n);
    if (no_labels(y, r, samples, sizeof *y * (size_t)t))
        return;
    y += samples.first * t;
    for (int64_t i = samples.first; i < samples.end; i++, y += t) {
        const char *row = label_row(r, first + i, at);
        for (int j = 0; j < t; j++)
            y[j] = rt_integer_at(row, r->label_type, j);
    }
}

RT_LEAF void rt_labels(int32_t *restrict y, const Rt *r, int first, int n, int t)
{
    rt_labels_at(y, r, first, n, t, 0);
}

/* y (N, K): K numbers for each of samples first .. first + n - 1 of the batch; 0 if there are none.
 * They are stored as reals of the program.  `at`: as above. */
RT_LEAF void rt_target_at(real *restrict y, const Rt *r, int first, int n, int k, int at)
{
    const TeamRange samples = team_range(n);
    if (no_labels(y, r, samples, sizeof *y * (size_t)k))
        return;
    y += samples.first * k;
    for (int64_t i = samples.first; i < samples.end; i++, y += k) {
        const real *row = label_row(r, first + i, at);
        int j = 0;
        for (; j + V <= k; j += V) /* opaque, as in input_row */
            v_store(y + j, v_load_opaque(row + j));
        for (; j < k; j++)
            y[j] = row[j];
    }
}

RT_LEAF void rt_target(real *restrict y, const Rt *r, int first, int n, int k)
{
    rt_target_at(y, r, first, n, k, 0);
}

#endif
