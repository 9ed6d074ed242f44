/* test_schedule.c -- learning rates: their schedules, and the fall on a plateau. */
#include "suite.h"
#include "train/plateau.h"
#include "train/schedule.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

START_TEST(learning_rates_follow_their_schedule)
{
    RtRecipe r = {.lr = 0.5, .epochs = 12, .schedule = RT_SCHED_STEP, .nat = 2, .at = {4, 10}, .factor = 0.1};
    ck_assert_double_eq(schedule_lr(&r, r.lr, 0, 10), 0.5);
    ck_assert_double_eq(schedule_lr(&r, r.lr, 39, 10), 0.5);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 40, 10), 0.05, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 100, 10), 0.005, 1e-15);
    r.schedule = RT_SCHED_COSINE;
    ck_assert_double_eq(schedule_lr(&r, r.lr, 0, 10), 0.5);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 60, 10), 0.25, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 120, 10), 0, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 500, 10), 0, 1e-15);
    r.end = 0.2;
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 120, 10), 0.1, 1e-15);
    r.schedule = RT_SCHED_POLYNOMIAL, r.power = 2, r.end = 0;
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 60, 10), 0.125, 1e-15);
    r.warmup = 2;
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 0, 10), 0.5 / 20, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 9, 10), 0.25, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 20, 10), 0.5, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 70, 10), 0.125, 1e-15);
    r.schedule = RT_SCHED_CONSTANT;
    ck_assert_double_eq(schedule_lr(&r, r.lr, 1000, 10), 0.5);

    r = (RtRecipe){.lr = 0.5, .epochs = 12, .schedule = RT_SCHED_ONE_CYCLE, .rise = 0.25, .start = 0.2, .end = 0.04};
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 0, 10), 0.1, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 15, 10), 0.3, 1e-15);                /* half way up */
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 30, 10), 0.5, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 75, 10), 0.26, 1e-15);               /* half way down */
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 120, 10), 0.02, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 500, 10), 0.02, 1e-15);
    r.rise = 0;
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 0, 10), 0.5, 1e-15);

    /* cycles of 2, 4 and 8 epochs after one of warm-up */
    r = (RtRecipe){.lr = 0.5, .epochs = 99, .schedule = RT_SCHED_RESTARTS, .first = 2, .factor = 2, .warmup = 1, .end = 0.2};
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 4, 10), 0.25, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 10, 10), 0.5, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 20, 10), 0.3, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 30, 10), 0.5, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 50, 10), 0.3, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 70, 10), 0.5, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 110, 10), 0.3, 1e-15);
    r.factor = 1, r.warmup = 0;
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 400, 10), 0.5, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 410, 10), 0.3, 1e-15);

    r = (RtRecipe){.lr = 0.5, .epochs = 9, .schedule = RT_SCHED_PLATEAU, .warmup = 1};
    ck_assert_double_eq_tol(schedule_lr(&r, 0.125, 4, 10), 0.125 / 2, 1e-15);
    ck_assert_double_eq(schedule_lr(&r, 0.125, 400, 10), 0.125);
}
END_TEST

/* The state after an epoch with this loss; saved as text and read back each time. */
static bool plateau_falls(Plateau *s, const RtProgram *p, double loss)
{
    char text[PLATEAU_ROOM + 32];
    const bool fell = plateau_epoch(s, p, &(Result){.validation = {loss}});
    plateau_text(s, &p->recipe, text, sizeof text);
    *s = (Plateau){0};
    ck_assert_msg(plateau_read(s, &p->recipe, text), "%s", text);
    return fell;
}

START_TEST(a_rate_falls_on_a_plateau)
{
    RtProgram p = {.nmetric = 1, .metric = {"loss"},
                   .recipe = {.lr = 1, .schedule = RT_SCHED_PLATEAU, .plateau = {.result = "validation_loss", .epochs = 1},
                              .factor = 0.25, .threshold = 0.1, .cooldown = 2, .end = 0.1}};
    Plateau s = plateau_new(&p.recipe);
    ck_assert(!plateau_falls(&s, &p, NAN) && s.bad == 1 && isnan(s.best));
    ck_assert(!plateau_falls(&s, &p, 8) && s.bad == 0 && s.best == 8);
    ck_assert(!plateau_falls(&s, &p, 7.5) && s.bad == 1 && s.best == 8);   /* less than 10 % */
    ck_assert(plateau_falls(&s, &p, 7.5) && s.rate == 0.25 && s.cooldown == 2);
    ck_assert(!plateau_falls(&s, &p, 9) && s.bad == 0 && s.cooldown == 1); /* not counted */
    ck_assert(!plateau_falls(&s, &p, 9) && s.bad == 0 && s.cooldown == 0);
    ck_assert(!plateau_falls(&s, &p, 9) && s.bad == 1);
    ck_assert(plateau_falls(&s, &p, NAN) && s.rate == 0.1);                /* end, not 0.0625 */
    for (int i = 0; i < 9; i++)
        ck_assert(!plateau_falls(&s, &p, 9) && s.rate == 0.1);             /* it stays there */
    ck_assert(!plateau_falls(&s, &p, 7) && s.best == 7);

    p.recipe.plateau.larger = true;
    s = plateau_new(&p.recipe);
    ck_assert(!plateau_falls(&s, &p, 1) && !plateau_falls(&s, &p, 1.05) && s.bad == 1);
    ck_assert(!plateau_falls(&s, &p, 1.2) && s.best == 1.2);
    s = plateau_new(&p.recipe); /* a finite result is better than an infinite one */
    ck_assert(!plateau_falls(&s, &p, -INFINITY) && !plateau_falls(&s, &p, 3) && s.best == 3 && s.bad == 0);
    p.recipe.plateau.larger = false;
    s = plateau_new(&p.recipe);
    ck_assert(!plateau_falls(&s, &p, INFINITY) && !plateau_falls(&s, &p, INFINITY) && s.bad == 1);
    ck_assert(!plateau_falls(&s, &p, 3) && s.best == 3 && s.bad == 0);
    p.recipe.plateau.larger = true;
    ck_assert(!plateau_read(&s, &p.recipe, "validation_loss 0x1p+0 0x1p+0 1"));
    ck_assert(!plateau_read(&s, &p.recipe, "validation_loss 0x1p+0 0x1p+0 1 2 3"));
    ck_assert(!plateau_read(&s, &p.recipe, "validation_loss_fit 0x1p+0 0x1p+0 1 2"));
    ck_assert(!plateau_read(&s, &p.recipe, "test_loss 0x1p+0 0x1p+0 1 2"));
    p.recipe.plateau.result = NULL;
    ck_assert(!plateau_epoch(&s, &p, &(Result){.validation = {9}}));
}
END_TEST

TEST_MAIN("schedule", learning_rates_follow_their_schedule, a_rate_falls_on_a_plateau)
