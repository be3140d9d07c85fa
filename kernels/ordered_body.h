/* The ordered product of one real type, by vectors, and of complex numbers of that type: part of
 * host_ordered.c, which defines REAL, VECTOR, OP, FMA and NAME for each. A complex B is a real one of twice
 * the columns; A's real and imaginary parts multiply it one after the other. */

enum { NAME(LANES) = sizeof(VECTOR) / sizeof(REAL), NAME(COLS) = VECTORS_OF_COLS * NAME(LANES) };

/* t[ROWS x COLS] = the sums over k of a[p][r] * b[p][c]. */
VECTORS static void NAME(multiply)(int64_t k, const REAL *a, const REAL *b, REAL *t)
{
    VECTOR sum[ROWS][VECTORS_OF_COLS];
#pragma GCC unroll 6
    for (int r = 0; r < ROWS; r++)
        sum[r][0] = sum[r][1] = OP(setzero)();
    for (int64_t p = 0; p < k; p++, a += ROWS, b += NAME(COLS)) {
        VECTOR left = OP(load)(b), right = OP(load)(b + NAME(LANES));
#pragma GCC unroll 6
        for (int r = 0; r < ROWS; r++) {
            VECTOR x = OP(set1)(a[r]);
            sum[r][0] = OP(fmadd)(x, left, sum[r][0]);
            sum[r][1] = OP(fmadd)(x, right, sum[r][1]);
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < ROWS; r++) {
        OP(store)(t + r * NAME(COLS), sum[r][0]);
        OP(store)(t + r * NAME(COLS) + NAME(LANES), sum[r][1]);
    }
}

/* c[rows x cols] = fma(alpha, t, beta * c) in reals. */
VECTORS static void NAME(add)(int64_t rows, int64_t cols, REAL alpha, const REAL *t, REAL beta,
                              REAL *c, int64_t c_row)
{
    for (int64_t r = 0; r < rows; r++, t += NAME(COLS), c += c_row) {
        if (beta == 0)
            for (int64_t j = 0; j < cols; j++)
                c[j] = FMA(alpha, t[j], (REAL)0);
        else
            for (int64_t j = 0; j < cols; j++)
                c[j] = FMA(alpha, t[j], beta * c[j]);
    }
}

/* t = t + i u. */
static void NAME(join)(REAL *t, const REAL *u)
{
    for (int i = 0; i < ROWS * NAME(COLS); i += 2) {
        t[i] -= u[i + 1];
        t[i + 1] += u[i];
    }
}

/* `rows` rows of A, `k` deep, as groups of ROWS: [group][p][row]; rows that lack are zero. */
static void NAME(pack_a)(const jk_ordered *g, int parts, int part, int64_t row, int64_t rows,
                         int64_t p0, int64_t k, REAL *to)
{
    int64_t step = parts * (g->trans_a ? 1 : g->lda), deep = parts * (g->trans_a ? g->lda : 1);
    const REAL *a = (const REAL *)g->a + row * step + p0 * deep + part;
    for (int64_t r0 = 0; r0 < rows; r0 += ROWS, to += ROWS * k)
        for (int64_t r = 0; r < ROWS; r++)
            for (int64_t p = 0; p < k; p++)
                to[p * ROWS + r] = r0 + r < rows ? a[(r0 + r) * step + p * deep] : 0;
}

/* `cols` columns of B in reals, `k` deep, as groups of COLS: [group][p][column]; columns that lack are
 * zero. */
static void NAME(pack_b)(const jk_ordered *g, int parts, int64_t col, int64_t cols, int64_t p0,
                         int64_t k, REAL *to)
{
    int64_t step = parts * (g->trans_b ? g->ldb : 1), deep = parts * (g->trans_b ? 1 : g->ldb);
    const REAL *b = (const REAL *)g->b + col / parts * step + p0 * deep;
    for (int64_t c0 = 0; c0 < cols; c0 += NAME(COLS), to += NAME(COLS) * k) {
        int64_t some = jk_min(NAME(COLS), cols - c0);
        if (some < NAME(COLS))
            memset(to, 0, (size_t)(NAME(COLS) * k) * sizeof *to);
        if (!g->trans_b)
            for (int64_t p = 0; p < k; p++)
                memcpy(to + p * NAME(COLS), b + p * deep + c0, (size_t)some * sizeof *to);
        else
            for (int64_t c = 0; c < some; c += parts)
                for (int64_t p = 0; p < k; p++)
                    memcpy(to + p * NAME(COLS) + c, b + (c0 + c) / parts * step + p * deep,
                           (size_t)parts * sizeof *to);
    }
}

/* What one slab of a packed part of A and one of B add to their block of C. */
static void NAME(add_block)(int64_t rows, int64_t cols, int64_t k, int parts, const REAL *a,
                            const REAL *b, REAL alpha, REAL beta, REAL *c, int64_t c_row)
{
    _Alignas(64) REAL t[ROWS * NAME(COLS)], u[ROWS * NAME(COLS)];
    for (int64_t j = 0; j < cols; j += NAME(COLS))
        for (int64_t i = 0; i < rows; i += ROWS) {
            NAME(multiply)(k, a + i * k, b + j * k, t);
            if (parts == 2) {
                NAME(multiply)(k, a + (A_ROWS + i) * k, b + j * k, u);
                NAME(join)(t, u);
            }
            NAME(add)
            (jk_min(ROWS, rows - i), jk_min(NAME(COLS), cols - j), alpha, t, beta,
             c + i * c_row + j, c_row);
        }
}

static void NAME(gemm)(const jk_ordered *g, int parts, void *room)
{
    REAL *a = room, *b = (REAL *)((char *)room + A_BYTES);
    const int64_t most_cols = B_BYTES / JK_SLAB / (int)sizeof(REAL);
    int64_t n = g->n * parts, c_row = g->ldc * parts;
    for (int64_t col = 0; col < n; col += most_cols)
        for (int64_t p = 0; p < g->k; p += JK_SLAB) {
            int64_t cols = jk_min(most_cols, n - col), k = jk_min(JK_SLAB, g->k - p);
            NAME(pack_b)(g, parts, col, cols, p, k, b);
            for (int64_t row = 0; row < g->m; row += A_ROWS) {
                int64_t rows = jk_min(A_ROWS, g->m - row);
                for (int part = 0; part < parts; part++)
                    NAME(pack_a)(g, parts, part, row, rows, p, k, a + part * A_ROWS * k);
                NAME(add_block)
                (rows, cols, k, parts, a, b, (REAL)g->alpha, p == 0 ? (REAL)g->beta : 1,
                 (REAL *)g->c + row * c_row + col, c_row);
            }
        }
}
