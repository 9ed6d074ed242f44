/* embedding.h -- rows of a table by their numbers, and the sum of what comes back for each.
 *
 *   y[i] = w[token[i]]        dw[token[i]] += dy[i], i in order        token `padding`: 0, nothing
 *
 *   w, dw (V, F) as in files, or in dense's panels [V / P][F][P] where a product reads the table too
 */
#ifndef CPU_EMBEDDING_H
#define CPU_EMBEDDING_H

typedef struct Embedding {
    int rows, width, padding;
    bool panels;
} Embedding;

/* Where row v begins; its numbers lie 1 or P apart. */
RT_INLINE int64_t embedding_row(int32_t v, Embedding e)
{
    return e.panels ? (int64_t)(v / P) * e.width * P + v % P : (int64_t)v * e.width;
}

RT_INLINE void embedding_plain(real *y, const int32_t *token, const real *w, Embedding e)
{
    for (int i = 0; i < e.rows; i++)
        for (int j = 0; j < e.width; j++)
            y[(int64_t)i * e.width + j] =
                token[i] == e.padding ? 0 : w[(int64_t)token[i] * e.width + j];
}

RT_INLINE void embedding_dw_plain(real *dw, const int32_t *token, const real *dy, Embedding e)
{
    for (int i = 0; i < e.rows; i++)
        for (int j = 0; j < e.width; j++)
            if (token[i] != e.padding)
                dw[(int64_t)token[i] * e.width + j] += dy[(int64_t)i * e.width + j];
}

RT_INLINE void embedding(real *restrict y, const int32_t *restrict token, const real *restrict w,
                         Embedding e)
{
    for (int i = 0; i < e.rows; i++, y += e.width) {
        const real *row = w + embedding_row(token[i], e);
        if (token[i] == e.padding)
            memset(y, 0, sizeof(real) * (size_t)e.width);
        else if (e.panels)
            for (int j = 0; j < e.width; j++)
                y[j] = row[(int64_t)j * P];
        else
            RT_MAP(e.width, STORE(y, LOAD(row)));
    }
}

RT_INLINE void embedding_dw(real *restrict dw, const int32_t *restrict token,
                            const real *restrict dy, Embedding e)
{
    for (int i = 0; i < e.rows; i++, dy += e.width) {
        real *row = dw + embedding_row(token[i], e);
        if (token[i] == e.padding)
            continue;
        if (e.panels)
            for (int j = 0; j < e.width; j++)
                row[(int64_t)j * P] += dy[j];
        else
            RT_MAP(e.width, STORE(row, LOAD(row) + LOAD(dy)));
    }
}

#endif
