/* mask_counts.c -- counts for the metrics of a target whose numbers are from 0 to 1: a mask, or
 * several labels of a sample.  x[i] > 0 is a predicted truth; t[i] > 1/2 is a truth.
 *
 *   numbers_accuracy  y = share of the numbers whose prediction is right
 *   mask_overlap      y = I = number of truths that are predicted
 *   mask_union        y = U = number of numbers that are a truth or predicted
 *
 * The runtime adds I and U over a split, which is exact, and reports iou = I / U and
 * dice = 2 I / (I + U).  Source: Dice 1945, "Measures of the amount of ecologic association between
 * species"; Jaccard 1912.
 */
#include "ops/loss.h"
#include "ops/price.h"

/* Two comparisons and a sum for each vector. */
static void mask_counts_price(const Node *n, const Market *m, Price *p)
{
    price_each(p, m, n, 3.0 / m->lanes);
}

#define COUNT(word, text)                                                                          \
    {                                                                                              \
        .name = word, .brief = text, .arg = {LOSS_NUMBERS}, .flags = OP_HIDDEN,                    \
        .shape = loss_of_numbers, .price = mask_counts_price, .kernel = loss_kernel                \
    }

const Op op_mask_counts[] =
    {COUNT("numbers_accuracy",
           "share of a sample's numbers that are above 0 where the target is 1"),
     COUNT("mask_overlap", "number of truths of a sample that are predicted"),
     COUNT("mask_union", "number of a sample's numbers that are a truth or predicted"),
     {0}};
