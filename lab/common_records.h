/*
 * Records as the paper on parallel filters (PBF) has them: p attributes, for each q arrays of m cells
 * (the segment form), and for the whole record no verifier (PBF), a table of verification values
 * (PBF-HT) or one more filter (PBF-BF). The library sizes records by itself; here its vectors are
 * replaced, before the first record, by ones of the paper's shape and addresses. A value is a number.
 */
#ifndef TAMIS_LAB_RECORDS_H
#define TAMIS_LAB_RECORDS_H

#include "common.h"
#include "tamis/records.h"

#define RECORDS_P_MAX 4

struct records {
    tamis_records *set;
    unsigned p, q;
    uint64_t m;
};

void records_new(struct records *r, unsigned p, unsigned q, uint64_t m, tamis_verifier verifier,
                 tamis_verify value, uint64_t stream);
void records_free(struct records *r);
/* values: n times p numbers. */
void records_add(struct records *r, const uint64_t *values, size_t n);
double records_share(const struct records *r, const uint64_t *values, size_t n);

/* The concatenated record in one filter of p q m bits with p q hashes (SBF). */
tamis_filter *concatenated_new(unsigned p, unsigned q, uint64_t m, uint64_t stream);
void concatenated_add(tamis_filter *f, unsigned p, const uint64_t *values, size_t n);
double concatenated_share(const tamis_filter *f, unsigned p, const uint64_t *values, size_t n);

/* Records and questions. Stored values are all distinct, or drawn from 0..range-1. */
void values_distinct(uint64_t stream, unsigned p, uint64_t *values, size_t n);
void values_in_range(uint64_t *state, uint64_t range, unsigned p, uint64_t *values, size_t n);
/* Each attribute from another stored record. */
void values_recombined(uint64_t *state, unsigned p, const uint64_t *stored, size_t n_stored,
                       uint64_t *values, size_t n);

#endif
