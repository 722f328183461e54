/* Selects the kernels that this machine runs; see kernel.h. */
#include "kernel.h"

#ifdef TAMIS_X86

const struct kernel *kernel_x86_blocked(bool avx512)
{
    return avx512 ? &kernel_avx512 : &kernel_avx2;
}

rows_fn rows_x86(bool avx512)
{
    return avx512 ? rows_avx512 : rows_avx2;
}

#else

const struct kernel *kernel_x86_blocked(bool avx512)
{
    (void)avx512;
    return NULL;
}

rows_fn rows_x86(bool avx512)
{
    (void)avx512;
    return NULL;
}

#endif

const struct kernel *kernel_choose(tamis_layout layout, const struct family *family)
{
    if (layout == TAMIS_SPREAD)
        return family->probe == probe_double ? &kernel_spread : &kernel_spread_probe;
    enum isa isa = cpu_isa();
    const struct kernel *best = isa == ISA_SCALAR ? NULL : kernel_x86_blocked(isa == ISA_AVX512);
    return best ? best : &kernel_blocked;
}

rows_fn kernel_rows(void)
{
    enum isa isa = cpu_isa();
    rows_fn best = isa == ISA_SCALAR ? NULL : rows_x86(isa == ISA_AVX512);
    return best ? best : rows_scalar;
}
