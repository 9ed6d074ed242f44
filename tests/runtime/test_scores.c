/* test_scores.c -- the area under the ROC curve against a count of all pairs, with equal scores and with one class only. */
#include "suite.h"
#include "train/scores.h"
#include <math.h>
#include <stdlib.h>

START_TEST(the_area_is_that_of_all_pairs)
{
    enum { MOST = 60 };
    Score s[MOST];
    srand(1);
    for (int round = 0; round < 2000; round++) {
        const int n = rand() % MOST, levels = 1 + rand() % 40; /* few levels: many equal scores */
        double halves = 0, pairs = 0;
        for (int i = 0; i < n; i++)
            s[i] = (Score){rand() % levels - 5, rand() % 3 == 0};
        for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++)
                if (s[i].positive > s[k].positive) {
                    pairs += 2;
                    halves += s[i].score > s[k].score ? 2 : s[i].score == s[k].score;
                }
        const double area = scores_area(s, n);
        ck_assert_msg(pairs > 0 ? area == halves / pairs : isnan(area), "%d scores: %.17g, not %.17g", n, area, halves / pairs);
    }
}
END_TEST

START_TEST(a_score_that_is_no_number)
{
    Score s[] = {{1, 0}, {NAN, 1}, {2, 1}};
    ck_assert(isnan(scores_area(s, 3)));
    Score infinite[] = {{-INFINITY, 0}, {INFINITY, 1}, {INFINITY, 0}};
    ck_assert(scores_area(infinite, 3) == 0.75);
}
END_TEST

TEST_MAIN("scores", the_area_is_that_of_all_pairs, a_score_that_is_no_number)
