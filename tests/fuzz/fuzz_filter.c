/* The interpreter of test programs as a fuzz target; a failing program is one for
 * tests/golden/programs, after shrinking (test_model prints how it ends).
 */
#include <stdio.h>
#include <stdlib.h>

#include "interp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct interp_report report;
    if (interp_run(data, len, PLANT_NONE, &report))
        return 0;
    fprintf(stderr, "byte %zu: %s\n", report.at, report.text);
    abort();
}
