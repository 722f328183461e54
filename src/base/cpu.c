/* Detects the instruction set, once per process. */
#include "base.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static enum isa detect(void)
{
    enum isa isa = ISA_SCALAR;
#if defined(__x86_64__) && !defined(TAMIS_SCALAR_ONLY) && !defined(__SANITIZE_THREAD__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
        __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt"))
        isa = ISA_AVX2;
    if (isa == ISA_AVX2 && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw"))
        isa = ISA_AVX512;
#endif
    const char *limit = getenv("TAMIS_ISA");
    if (limit && strcmp(limit, "scalar") == 0)
        isa = ISA_SCALAR;
    else if (limit && strcmp(limit, "avx2") == 0 && isa > ISA_AVX2)
        isa = ISA_AVX2;
    return isa;
}

enum isa cpu_isa(void)
{
    static atomic_int known; /* isa + 1 */
    int isa = atomic_load_explicit(&known, memory_order_relaxed);
    if (isa == 0) {
        isa = (int)detect() + 1;
        atomic_store_explicit(&known, isa, memory_order_relaxed);
    }
    return (enum isa)(isa - 1);
}
