/*
 * Flexible filters on traces whose items repeat: figures 7, 8 and 11 and the numbers of section 8.2.4.
 * The paper's traces cannot be had; see common_trace.h for those in their place. As published, a million
 * arrivals and a hundred repetitions with other hashes each; a hundred thousand other items are asked for
 * each time (the paper: half a million). An item that tests positive is not inserted.
 *
 * The stand-in for MAWI has one unknown, how many of its million addresses differ. It is set so that DBF
 * comes to its published size; all other sizes and ratios published for MAWI must then follow.
 */
#include "common_growth.h"

/* How the published numbers are given: at the end, and relative to DBF. */
struct end {
    struct mean bits, rate, over;
};

static void print_end(const struct end *end, uint64_t asked)
{
    for (enum speed speed = 0; speed < SPEEDS; speed++) {
        double x = speed + 1, dbf = mean_of(&end[DBF].bits);
        lab_measured("mawi", "bits", x, &end[speed].bits);
        lab_value("mawi", "bits over DBF", x, mean_of(&end[speed].bits) / dbf,
                  mean_error(&end[speed].bits) / dbf, end[speed].bits.n);
        lab_rate("mawi", "rate", x, &end[speed].rate, asked);
        lab_measured("mawi", "rate over DBF", x, &end[speed].over);
    }
}

/* Figures with this suffix and row number `row` of the table of traces; `end` gets what each
   repetition came to. */
static void one_trace(const char *suffix, const struct trace *t, double row, struct end *end,
                      uint64_t asked)
{
    struct growth g[SPEEDS] = {0};
    size_t found = 0;
    for (uint64_t i = 0; i < lab_size(4, 20, 100); i++) {
        double dbf = 1;
        for (enum speed speed = SPEEDS; speed-- > 0;) { /* DBF is the last of them */
            struct flexible x;
            flexible_new(&x, speed, TAMIS_XXH3, true, 300 + i);
            growth_run(&g[speed], &x, t, asked, 300 + i);
            dbf = speed == DBF ? g[speed].last_rate : dbf;
            mean_add(&end[speed].rate, g[speed].last_rate);
            mean_add(&end[speed].over, g[speed].last_rate / dbf);
            mean_add(&end[speed].bits, g[speed].last_bits - FLEX_BITS);
            for (size_t j = 0; j < t->distinct && i == 0; j++)
                found += flexible_has(&x, t->keys[j]);
            flexible_free(&x);
        }
    }
    for (enum speed speed = 0; speed < SPEEDS; speed++)
        growth_print(&g[speed], speed, suffix, t->arrivals, asked);
    lab_exact("traces", "arrivals", row, (double)t->arrivals);
    lab_exact("traces", "distinct", row, (double)t->distinct);
    lab_exact("traces", "members denied", row, (double)(SPEEDS * t->distinct - found));
}

int main(void)
{
    struct mean distinct = {0};
    struct trace t;
    struct end end[3][SPEEDS] = {0};
    size_t n = 1000000, most = lab_size(100000, 300000, 1000000), some;
    uint64_t asked = lab_size(5000, 20000, 100000), *arrivals;
    lab_head();
    for (uint64_t i = 0; i < lab_size(4, 8, 20); i++)
        mean_add(&distinct, (double)flexible_mawi(300 + i));
    trace_of(&t, trace_addresses(n, 0, mean_of(&distinct), 299), n);
    one_trace("m", &t, 1, end[0], asked);
    print_end(end[0], asked);
    trace_free(&t);

    arrivals = trace_words(most, &some);
    trace_of(&t, arrivals, some);
    one_trace("w", &t, 2, end[1], asked);
    trace_free(&t);

    arrivals = trace_integers(most, &some);
    trace_of(&t, arrivals, some);
    one_trace("i", &t, 3, end[2], asked);
    trace_free(&t);
    return 0;
}
