/* Selects the kernels that this machine runs; see kernel.h. */
#include "kernel.h"

const struct kernel *kernel_choose(tamis_layout layout, const struct family *family)
{
    if (layout == TAMIS_SPREAD)
        return family->probe == probe_double ? &kernel_spread : &kernel_spread_probe;
#ifdef TAMIS_X86
    enum isa isa = cpu_isa();
    if (isa != ISA_SCALAR)
        return isa == ISA_AVX512 ? &kernel_avx512 : &kernel_avx2;
#endif
    return &kernel_blocked;
}

rows_fn kernel_rows(void)
{
#ifdef TAMIS_X86
    enum isa isa = cpu_isa();
    if (isa != ISA_SCALAR)
        return isa == ISA_AVX512 ? rows_avx512 : rows_avx2;
#endif
    return rows_scalar;
}
