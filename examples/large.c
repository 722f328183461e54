/*
 * A list of a million numbers is put into a filter by all cores; and a filter that grows is kept within a limit,
 * beside a copy of it as it was.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tamis.h>

enum { NUMBERS = 1000000, SOME = 1000 };

static int failed(tamis_error e)
{
    if (e != TAMIS_OK)
        fprintf(stderr, "%s\n", tamis_error_text(e));
    return e != TAMIS_OK;
}

/* All keys are known: their number gives the size, and threads share the work. */
static int build(const uint64_t *numbers)
{
    tamis_filter *list = NULL;
    tamis_options options;
    uint64_t absent = NUMBERS;
    tamis_digest *digests = (tamis_digest *)calloc(NUMBERS, sizeof *digests);
    memset(&options, 0, sizeof options);
    options.growth = TAMIS_FIXED;
    options.capacity = NUMBERS;
    int bad = !digests || failed(tamis_filter_new(&list, &options, NULL));
    if (!bad) {
        tamis_filter_digest_fixed(list, numbers, sizeof *numbers, NUMBERS, digests);
        bad = failed(tamis_filter_build(list, digests, NUMBERS, 0)) ||
              !tamis_filter_has(list, &numbers[7], sizeof *numbers);
        printf("%u is %s\n", (unsigned)absent,
               tamis_filter_has(list, &absent, sizeof absent) ? "perhaps listed" : "not listed");
    }
    tamis_filter_free(list);
    free(digests);
    return bad;
}

/* What was taken before the limit was reached stays, and a higher limit takes more. */
static int grow_within(const uint64_t *numbers)
{
    tamis_filter *seen = NULL, *early = NULL;
    tamis_error e = TAMIS_OK;
    int n = 0, bad = failed(tamis_filter_new(&seen, NULL, NULL));
    for (; n < SOME && !bad; n++)
        bad = failed(tamis_filter_add(seen, &numbers[n], sizeof *numbers, NULL));
    bad =
        bad || failed(tamis_filter_clone(&early, seen)) || failed(tamis_filter_limit(seen, 100000));
    while (!bad && e == TAMIS_OK && n < NUMBERS) {
        e = tamis_filter_add(seen, &numbers[n], sizeof *numbers, NULL);
        n += e == TAMIS_OK;
    }
    if (!bad) {
        printf("%s\n", tamis_error_text(e));
        bad = e != TAMIS_ESPACE || tamis_filter_equal(seen, early) ||
              failed(tamis_filter_limit(seen, 0)) ||
              failed(tamis_filter_add(seen, &numbers[n], sizeof *numbers, NULL));
    }
    tamis_filter_free(early);
    tamis_filter_free(seen);
    return bad;
}

int main(void)
{
    uint64_t *numbers = (uint64_t *)calloc(NUMBERS, sizeof *numbers);
    if (!numbers)
        return 1;
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = (uint64_t)i;
    int bad = build(numbers) || grow_within(numbers);
    free(numbers);
    return bad;
}
