/* Which instructions the processor has, as far as kernels use them; TAMIS_ISA=scalar|avx2|avx512 in the
   environment limits it. */
#ifndef TAMIS_CPU_H
#define TAMIS_CPU_H

enum isa { ISA_SCALAR, ISA_AVX2, ISA_AVX512 };
enum isa cpu_isa(void);

#endif
