/*
 * Flexible filters, growth: figures 7, 8 and 11 on synthetic items once more, where an item that already
 * tests positive is not inserted. The paper does not say so, but its numbers need it.
 */
#include "common_growth.h"

int main(void)
{
    lab_head();
    growth_synthetic(true, lab_size(20000, 200000, 1000000));
    return 0;
}
