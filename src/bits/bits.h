/* The parts of sets: vectors and their counters, matrices of vectors, tables of values, rows of
   bits. */
#ifndef TAMIS_BITS_H
#define TAMIS_BITS_H

#include "bit_rows.h"
#include "lines_bytes.h"
#include "lines_follow.h"
#include "matrix.h"
#include "packed.h"
#include "page_sums.h"
#include "value_table.h"
#include "vector.h"

#endif
