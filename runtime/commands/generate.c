/* generate.c -- the command `generate`: continues a text, token by token, each drawn from the
 * predicted distribution.
 *
 *   p[i] = exp((x[i] - max x) / temperature) / sum, over the top-k largest x
 *
 * A network with one label for each position computes each token once: the program keeps its
 * states, keys and values (net_token). So the output of a recurrent network depends on the whole
 * text. A network with positions (attention) keeps a window of tokens. If the text is longer than
 * the window, the program computes the whole window of the last tokens for each new token. The
 * program computes whole windows from the first token on with --anew, and for networks with one
 * label for each window. The window of these networks must be full, so a short text gets padding
 * before it.
 *
 * Token k of a text is drawn with counter k of the seed. So a seed gives one text, on any number of
 * threads.
 */
#include "base/error.h"
#include "base/random.h"
#include "commands/commands.h"
#include "data/vocab.h"
#include "files/params.h"
#include "step/net.h"
#include "train/weights.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Choice {
    double x;
    int32_t token;
} Choice;

typedef struct Generator {
    const RtProgram *p;
    const Options *o;
    const Vocab *vocab;
    Net *net;
    Tokens text;
    Trail trail; /* of the text's first trail.position tokens */
    int32_t *window;
    uint32_t *index;
    char *output;
    Choice *choice;
    double *share;
} Generator;

/* The largest x first; equal ones in the order of tokens. */
static int by_falling_x(const void *a, const void *b)
{
    const Choice *p = a, *q = b;
    return p->x != q->x ? (p->x < q->x) - (p->x > q->x) : p->token - q->token;
}

/* Draws one of the first n choices, which are sorted by x. */
static int32_t draw_choice(const Generator *g, int n, int64_t number)
{
    double sum = 0, u[2];
    if (g->o->temperature == 0)
        return g->choice[0].token;
    for (int i = 0; i < n; i++)
        sum += g->share[i] = exp((g->choice[i].x - g->choice[0].x) / g->o->temperature);
    random_uniform2(u, g->o->seed, RT_PURPOSE_GENERATE, (uint32_t)number, (uint32_t)(number >> 32),
                    0);
    double left = u[0] * sum;
    for (int i = 0; i < n; i++)
        if ((left -= g->share[i]) < 0)
            return g->choice[i].token;
    return g->choice[0].token; /* rounding: `left` has not fallen below 0 */
}

/* Copies the last tokens of the text to the window; returns the position whose output predicts the
 * next token. */
static int64_t fill_window(Generator *g)
{
    const int64_t room = g->p->input_dim[0], n = g->text.n < room ? g->text.n : room,
                  first = g->p->labels > 1 ? 0 : room - n;
    for (int64_t i = 0; i < room; i++)
        g->window[i] = -1;
    memcpy(g->window + first, g->text.at + g->text.n - n, sizeof *g->window * (size_t)n);
    return g->p->labels > 1 ? n - 1 : 0;
}

/* The order of one sample, which fills all places of the batch. */
static const RtOrder alone = {.n = 1};

/* Computes the output of the network for the last tokens; returns the index in this output at
 * which the prediction of the next token begins. */
static int64_t look_at_window(Generator *g)
{
    const RtProgram *p = g->p;
    const int64_t at = fill_window(g) * p->classes;
    const Batch b = {.x = g->window,
                     .x_stride = p->input_dim[0] * (int64_t)sizeof *g->window,
                     .x_type = RT_I32,
                     .index = g->index,
                     .order = &alone,
                     .valid = 1,
                     .stored = g->window,
                     .stored_bytes = p->input_dim[0] * (int64_t)sizeof *g->window,
                     .fresh = true};
    net_evaluate(g->net, &b, g->output);
    return at;
}

static bool text_goes_on(const Generator *g)
{
    const RtProgram *p = g->p;
    return p->ntoken > 0 && !g->o->anew && (p->window == 0 || g->text.n <= p->window);
}

/* As look_at_window, but one token at a time: computes the tokens that were added since the last
 * call. */
static int64_t run_new_tokens(Generator *g)
{
    while (g->trail.position < g->text.n)
        net_token(g->net, &g->trail, g->text.at[g->trail.position], g->output);
    return 0;
}

static int32_t next_token(Generator *g, int64_t number)
{
    const RtProgram *p = g->p;
    const int64_t at = text_goes_on(g) ? run_new_tokens(g) : look_at_window(g);
    int n = 0;
    for (int32_t i = 0; i < p->classes && i < g->vocab->n; i++)
        g->choice[n++] = (Choice){params_real(g->output, p->real_bytes, at + i), i};
    qsort(g->choice, (size_t)n, sizeof *g->choice, by_falling_x);
    return draw_choice(g, g->o->top_k && g->o->top_k < n ? (int)g->o->top_k : n, number);
}

static void print(const Generator *g, int32_t token)
{
    const Piece piece = g->vocab->piece[token];
    if (g->vocab->unit == RT_TEXT_WORD)
        printf("%s", piece.length ? " " : "");
    fwrite(piece.bytes ? piece.bytes : "", 1, (size_t)piece.length, stdout);
    fflush(stdout);
}

/* Begins the text with the tokens of the prompt. Without a prompt, or with an empty one, the text
 * begins with a new line, or with token 0 if the vocabulary has no new line. */
static void begin_text(Generator *g)
{
    const bool given = g->o->prompt && *g->o->prompt;
    const char *prompt = given ? g->o->prompt : "\n";
    const Text t = {"--prompt", prompt, (int64_t)strlen(prompt), 1};
    const bool none =
        !given && g->vocab->unit == RT_TEXT_CHAR && table_find(&g->vocab->known, "\n", 1) < 0;
    if (g->vocab->unit != RT_TEXT_BYTE)
        text_check_utf8(&t);
    if (!none)
        vocab_encode(g->vocab, &t, &g->text);
    if (g->text.n == 0 && given)
        rt_die("--prompt holds no word");
    if (g->text.n == 0)
        tokens_add(&g->text, 0);
    if (given)
        fwrite(prompt, 1, strlen(prompt), stdout);
}

/* Weights come first, so that errors of their file are reported. */
static const Vocab *load_vocab(Net *n, const char *weights)
{
    weights_load(n, weights);
    if (!vocab_of_weights(n->p, weights))
        rt_die("%s holds no vocabulary, which generate needs: use weights that this program has "
               "saved",
               weights);
    return vocab_now();
}

int generate_run(const RtProgram *p, const Options *o)
{
    Generator g = {.p = p, .o = o, .net = net_new(p, pool_on(&o->place), o->comm, 1, false)};
    g.trail = net_trail(p);
    g.window = rt_alloc(sizeof *g.window * (size_t)p->input_dim[0]);
    g.index = rt_alloc(sizeof *g.index * (size_t)p->batch);
    g.output = rt_alloc((size_t)(p->batch * p->outputs * p->real_bytes));
    g.choice = rt_alloc(sizeof *g.choice * (size_t)p->classes);
    g.share = rt_alloc(sizeof *g.share * (size_t)p->classes);
    g.vocab = load_vocab(g.net, o->weights);
    begin_text(&g);
    for (int64_t i = 0; i < o->length; i++) {
        tokens_add(&g.text, next_token(&g, i));
        print(&g, g.text.at[g.text.n - 1]);
    }
    printf("\n");
    return 0;
}
