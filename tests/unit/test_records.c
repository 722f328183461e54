/*
 * Indexes through their public functions: what options mean, names, questions, values and their
 * normal forms, verification values as published, and the promise: the stated rate is the total for
 * single attributes, for declared combinations and for whole records, fresh or recombined.
 *
 * Record number r has, in every attribute, the value r (modulo the values the attribute has). So
 * values of different records never make a record, and every combination of them is recombined.
 */
#include "harness.h"
#include "set/set.h"
#include "model.h"
#include "tamis/records.h"
#include "plan/plan.h"

#include <math.h>

#define FRESH (UINT64_C(1) << 40) /* values from here on are never stored */

static const char *const letters[] = {"a", "b", "c", "d", "e"};

/* An index with p attributes named a, b, c... or a0, a1... */
static tamis_records *make(tamis_records_options o, uint32_t p, const uint64_t *distinct)
{
    static tamis_attribute attributes[TAMIS_ATTRIBUTES_MAX];
    static char names[TAMIS_ATTRIBUTES_MAX][16];
    tamis_reason reason = {0};
    tamis_records *x = NULL;
    for (uint32_t i = 0; i < p; i++) {
        snprintf(names[i], sizeof names[i], "a%u", i);
        attributes[i] = (tamis_attribute){.name = p <= 5 ? letters[i] : names[i],
                                          .distinct = distinct ? distinct[i] : 0};
    }
    o.attributes = attributes;
    o.n_attributes = p;
    tamis_error e = tamis_records_new(&x, &o, &reason);
    CHECK_MSG(e == TAMIS_OK, "%s: %s", tamis_error_name(e), reason.text);
    return x;
}

static tamis_digest digest_of(const tamis_records *x, uint32_t attribute, uint64_t value)
{
    return tamis_records_digest(x, attribute, (tamis_key){&value, sizeof value});
}

static void record_of(const tamis_records *x, uint32_t p, uint64_t r, const uint64_t *distinct,
                      tamis_digest *out)
{
    for (uint32_t i = 0; i < p; i++)
        out[i] = digest_of(x, i, distinct && distinct[i] ? r % distinct[i] : r);
}

static bool fill(tamis_records *x, uint32_t p, uint64_t from, uint64_t n, const uint64_t *distinct)
{
    tamis_digest *records = calloc((size_t)256 * p, sizeof *records);
    bool good = true;
    for (uint64_t done = 0; done < n && good;) {
        size_t some = n - done < 256 ? (size_t)(n - done) : 256;
        for (size_t i = 0; i < some; i++)
            record_of(x, p, from + done + i, distinct, records + i * p);
        good = CHECK(tamis_records_add_many(x, records, some, NULL, NULL) == TAMIS_OK);
        done += some;
    }
    free(records);
    return good;
}

/* ---- making ---------------------------------------------------------------------------------- */

static tamis_error try_make(tamis_records_options o, tamis_reason *reason)
{
    tamis_records *x = NULL;
    tamis_error e = tamis_records_new(&x, &o, reason);
    if (e == TAMIS_OK)
        tamis_records_free(x);
    return e;
}

TEST(options_that_cannot_be)
{
    tamis_attribute two[] = {{.name = "a"}, {.name = "b"}}, same[] = {{.name = "a"}, {.name = "a"}};
    tamis_attribute bad[] = {{.name = ""}}, typed[] = {{.name = "a", .type = 9}};
    tamis_attribute many[TAMIS_ATTRIBUTES_MAX + 1] = {{.name = "a"}};
    uint64_t one = 1, outside = 5, pair = 3;
    tamis_records_options o = {.attributes = two, .n_attributes = 2}, t;
    tamis_reason reason;
    CHECK(try_make(o, &reason) == TAMIS_OK);
    CHECK(tamis_records_new(&(tamis_records *){NULL}, NULL, &reason) == TAMIS_EARG);
#define REFUSED(change, why)                                                              \
    do {                                                                                  \
        t = o;                                                                            \
        change;                                                                           \
        CHECK(try_make(t, &reason) == TAMIS_EARG);                                        \
        CHECK_MSG(strstr(reason.text, why), "\"%s\" is not in \"%s\"", why, reason.text); \
    } while (0)
    REFUSED(t.n_attributes = 0, "1 to 64 attributes");
    REFUSED((t.attributes = many, t.n_attributes = 65), "1 to 64 attributes");
    REFUSED(t.attributes = same, "two attributes are named \"a\"");
    /* Foreign names give no orders to a terminal: C0, C1 as character, byte and overlong, DEL; one line. */
    same[0].name = same[1].name = "\033]0;\xc3\xa9\a\n\xc2\x9b\x9b\x7f\xc0\x9b\xe2";
    REFUSED(t.attributes = same, "two attributes are named \"?]0;\xc3\xa9?????????\"");
    REFUSED((t.attributes = bad, t.n_attributes = 1), "has 0 bytes");
    REFUSED((t.attributes = typed, t.n_attributes = 1), "unknown type");
    REFUSED((t.combos = &one, t.n_combos = 1), "two or more");
    REFUSED((t.combos = &outside, t.n_combos = 1), "two or more");
    REFUSED((t.combos = &pair, t.n_combos = 64), "at most 63");
    REFUSED((t.combos = &pair, t.n_combos = 1, t.verifier = TAMIS_VERIFIER_NONE), "verifier");
    REFUSED(t.verifier = 4, "unknown verifier");
    REFUSED(t.value = 4, "unknown verifier");
    REFUSED(t.set.growth = TAMIS_WINDOW, "window");
    REFUSED(t.set.fpp = 1.5, "rate");
    REFUSED(t.set.fpp = (double)NAN, "rate");
    REFUSED(t.set.layout = 7, "layout");
    REFUSED(t.set.expansion = 0.5, "expansion");
    REFUSED((t.set.unique = t.set.deletable = true), "only filters have unique");
    REFUSED((t.set.shared_adds = true, t.set.growth = TAMIS_FIXED), "only filters have");
    REFUSED(t.set.add_always = true, "only filters have");
    REFUSED((t.set.tolerate = 0.5, t.set.growth = TAMIS_DYNAMIC), "only filters have");
    REFUSED((t.set.bits = 64, t.set.hashes = 1), "do not grow");
#undef REFUSED
    t = o, t.combos = &pair, t.n_combos = 1; /* the whole record, which is verified anyway */
    CHECK(try_make(t, &reason) == TAMIS_OK);
}

TEST(which_combinations_are_declared)
{
    uint64_t combos[] = {3, 12, 3};
    tamis_records *x = make((tamis_records_options){0}, 3, NULL);
    CHECK(tamis_records_combo(x, 0) == 3 && tamis_records_combo(x, 1) == 5);
    CHECK(tamis_records_combo(x, 2) == 6 && tamis_records_combo(x, 3) == 0);
    for (uint64_t mask = 0; mask < 8; mask++)
        CHECK(tamis_records_verifies(x, mask));
    tamis_records_free(x);
    x = make((tamis_records_options){.no_combos = true}, 3, NULL);
    CHECK(tamis_records_combo(x, 0) == 0 && !tamis_records_verifies(x, 5));
    CHECK(tamis_records_verifies(x, 7) && tamis_records_verifies(x, 0) &&
          tamis_records_verifies(x, 2));
    tamis_records_free(x);
    x = make((tamis_records_options){.combos = combos, .n_combos = 3}, 4, NULL);
    CHECK(tamis_records_combo(x, 0) == 3 && tamis_records_combo(x, 1) == 12);
    CHECK(tamis_records_combo(x, 2) == 0 && tamis_records_verifies(x, 12));
    CHECK(!tamis_records_verifies(x, 7) && tamis_records_verifies(x, 15));
    tamis_records_free(x);
    x = make((tamis_records_options){.verifier = TAMIS_VERIFIER_NONE}, 3, NULL);
    CHECK(!tamis_records_verifies(x, 3) && !tamis_records_verifies(x, 7) &&
          tamis_records_verifies(x, 1));
    tamis_records_free(x);
    x = make((tamis_records_options){0}, 1, NULL);
    CHECK(tamis_records_verifies(x, 0) && set_layers(&x->set)->l[0]->parts == 1);
    tamis_records_free(x);
}

TEST(unknown_names_list_the_known)
{
    tamis_attribute at[] = {{.name = "ip"}, {.name = "user"}, {.name = "path"}};
    tamis_records_options o = {.attributes = at, .n_attributes = 3};
    tamis_records *x;
    tamis_reason reason;
    uint32_t number = 9;
    CHECK(tamis_records_new(&x, &o, NULL) == TAMIS_OK);
    CHECK(tamis_records_attribute(x, "user", &number, &reason) == TAMIS_OK && number == 1);
    CHECK(tamis_records_attribute(x, "usr", &number, &reason) == TAMIS_EARG && number == 1);
    CHECK_MSG(!strcmp(reason.text, "no attribute \"usr\"; there are: ip, user, path"), "%s",
              reason.text);
    CHECK(tamis_records_attribute(x, "", &number, NULL) == TAMIS_EARG);
    tamis_records_free(x);
    x = make((tamis_records_options){0}, 64, NULL);
    CHECK(tamis_records_attribute(x, "b", &number, &reason) == TAMIS_EARG);
    CHECK_MSG(strstr(reason.text, "a0, a1, ") && strstr(reason.text, ", ...") &&
                  strlen(reason.text) < sizeof reason.text,
              "%s", reason.text);
    tamis_attribute_facts info;
    CHECK(tamis_records_attribute_info(x, 63, &info) && !strcmp(info.name, "a63"));
    CHECK(!tamis_records_attribute_info(x, 64, &info));
    tamis_records_free(x);
}

TEST(a_limit_on_memory_can_be_changed)
{
    tamis_records *x =
        make((tamis_records_options){.set.capacity = 100, .set.memory_limit = 20000}, 2, NULL);
    tamis_digest record[2];
    tamis_error e = TAMIS_OK;
    tamis_records_facts info, brief;
    if (!x)
        return;
    for (uint64_t r = 0; e == TAMIS_OK && r < 100000; r++) {
        record_of(x, 2, r, NULL, record);
        e = tamis_records_add_many(x, record, 1, NULL, NULL);
    }
    CHECK(e == TAMIS_ESPACE);
    CHECK(tamis_records_limit(x, 0) == TAMIS_OK);
    CHECK(tamis_records_add_many(x, record, 1, NULL, NULL) == TAMIS_OK);
    CHECK(tamis_records_limit(x, 50000) == TAMIS_OK);
    tamis_records_info(x, &info);
    tamis_records_brief(x, &brief);
    CHECK(brief.set.memory_limit == 50000 && brief.set.items == info.set.items &&
          brief.set.fpp == info.set.fpp);
    CHECK(brief.set.bytes == info.set.bytes && brief.set.bits == info.set.bits &&
          brief.layers == info.layers);
    CHECK(info.fpp_fresh > 0 && brief.fpp_fresh == 0);
    CHECK(strcmp(tamis_records_name(x, 1), "b") == 0 && tamis_records_name(x, 2) == NULL);
    tamis_records_free(x);
}

TEST(kinds_and_families_are_kept_apart)
{
    uint8_t key[TAMIS_KEY_LEN] = {1};
    tamis_records_options o = {.set.key = key};
    tamis_records *x = make(o, 2, NULL), *y = make(o, 3, NULL), *z = make(o, 2, NULL);
    uint8_t back[TAMIS_KEY_LEN];
    CHECK(tamis_records_key(x, back) && memcmp(back, key, sizeof key) == 0);
    CHECK(tamis_records_merge(x, y, 0, NULL) == TAMIS_ESHAPE &&
          tamis_records_merge(x, z, 0, NULL) == TAMIS_OK);
    CHECK(tamis_records_remove(x, (tamis_key[2]){{"", 0}, {"", 0}}, NULL) == TAMIS_EKIND);
    tamis_records_free(y);
    tamis_records_free(z);
    o.set.deletable = true;
    y = make(o, 2, NULL);
    o.set.deletable = false, o.verifier = TAMIS_VERIFIER_TABLE;
    z = make(o, 2, NULL);
    CHECK(tamis_records_merge(x, y, 0, NULL) == TAMIS_EKIND &&
          tamis_records_merge(x, z, 0, NULL) == TAMIS_ESHAPE);
    tamis_records_free(y);
    tamis_records_free(z);
    y = make((tamis_records_options){0}, 2, NULL);
    CHECK(tamis_records_merge(x, y, 0, NULL) == TAMIS_EFAMILY && !tamis_records_equal(x, y));
    tamis_records_free(x);
    tamis_records_free(y);
}

TEST(settings_from_elsewhere)
{
    tamis_records *x = make((tamis_records_options){0}, 3, NULL);
    struct elsewhere {
        struct record_form form;
        struct settings set;
    } good = {*x->set.stack->form, set_terms(&x->set)->opt}, s;
    CHECK(!record_form_wrong(&good.form, &good.set) &&
          !settings_wrong(&good.set, set_family(&x->set)));
#define WRONG(change)                                                                             \
    do {                                                                                          \
        s = good;                                                                                 \
        change;                                                                                   \
        CHECK(record_form_wrong(&s.form, &s.set) || settings_wrong(&s.set, set_family(&x->set))); \
    } while (0)
    WRONG(s.form.attributes = 0);
    WRONG(s.form.attributes = 65);
    WRONG(s.form.verifiers = 65);
    WRONG(s.form.verifiers = 0);
    WRONG(s.form.masks[0] = 3);
    WRONG(s.form.masks[1] = 7);
    WRONG(s.form.masks[1] = 8);
    WRONG(s.form.masks[2] = 1);
    WRONG(s.form.masks[2] = s.form.masks[1]);
    WRONG(s.form.verifier = 0);
    WRONG(s.form.value = 4);
    WRONG(s.form.types[1] = TAMIS_TYPES);
    WRONG(s.form.distinct[1] = UINT64_MAX);
    WRONG(s.set.growth = TAMIS_WINDOW);
    WRONG(s.set.fpp = -1);
    WRONG(s.set.unique = true);
#undef WRONG
    tamis_records_free(x);
}

/* ---- questions ------------------------------------------------------------------------------- */

static tamis_key text_key(const char *text)
{
    return (tamis_key){text, text ? strlen(text) : 0};
}

TEST(missing_empty_and_null_are_three)
{
    tamis_records *x = make((tamis_records_options){.set.fpp = 1e-9}, 2, NULL);
    const char *values[] = {NULL, "", "null", "x"};
    bool fresh;
    for (int added = 0; added < 4; added++) {
        tamis_key record[2] = {text_key(values[added]), text_key("k")};
        CHECK(tamis_records_add(x, record, &fresh) == TAMIS_OK && fresh);
        CHECK(tamis_records_add(x, record, &fresh) == TAMIS_OK && !fresh);
        for (int i = 0; i < 4; i++) {
            tamis_key asked[2] = {text_key(values[i]), text_key("k")};
            CHECK(tamis_records_has(x, asked, 0).maybe == (i <= added));
            CHECK(tamis_records_has(x, asked, 1).maybe == (i <= added));
            CHECK(tamis_records_has(x, asked, 2).maybe);
        }
    }
    /* what is in one attribute is not in the other */
    CHECK(!tamis_records_has(x, (tamis_key[2]){{NULL, 0}, text_key("x")}, 2).maybe);
    CHECK(!tamis_records_has(x, (tamis_key[2]){{NULL, 0}, {NULL, 0}}, 2).maybe);
    tamis_records_free(x);
}

TEST(values_must_come_from_one_record)
{
    tamis_records *x = make((tamis_records_options){.set.fpp = 1e-6}, 3, NULL);
    CHECK(tamis_records_add(x, (tamis_key[3]){text_key("1"), text_key("ann"), text_key("/")},
                            NULL) == TAMIS_OK);
    CHECK(tamis_records_add(x, (tamis_key[3]){text_key("2"), text_key("bob"), text_key("/x")},
                            NULL) == TAMIS_OK);
    tamis_key mixed[3] = {text_key("1"), text_key("bob"), text_key("/")};
    tamis_answer answer = tamis_records_has(x, mixed, 3);
    CHECK(!answer.maybe && answer.verified);
    CHECK(tamis_records_has(x, mixed, 5).maybe && !tamis_records_has(x, mixed, 7).maybe);
    CHECK(tamis_records_has(x, mixed, 1).maybe && tamis_records_has(x, mixed, 2).maybe);
    tamis_records_free(x);
    x = make((tamis_records_options){.set.fpp = 1e-6, .no_combos = true}, 3, NULL);
    CHECK(tamis_records_add(x, (tamis_key[3]){text_key("1"), text_key("ann"), text_key("/")},
                            NULL) == TAMIS_OK);
    CHECK(tamis_records_add(x, (tamis_key[3]){text_key("2"), text_key("bob"), text_key("/x")},
                            NULL) == TAMIS_OK);
    answer = tamis_records_has(x, mixed, 3);
    CHECK(answer.maybe && !answer.verified);
    tamis_records_free(x);
}

TEST(any_of_several_values)
{
    enum { MANY = 400 };
    tamis_records *x =
        make((tamis_records_options){.set.fpp = 1e-9, .set.capacity = 4 * MANY}, 2, NULL);
    static tamis_digest a[MANY], b[MANY];
    fill(x, 2, 0, MANY, NULL);
    for (uint64_t i = 0; i < MANY; i++) {
        a[i] = digest_of(x, 0, i);
        b[i] = digest_of(x, 1, (i + 1) % MANY);
    }
    tamis_choice choices[2] = {{0, a, 10}, {1, b, 10}};
    tamis_answer answer;
    CHECK(tamis_records_ask(x, choices, 2, &answer, NULL) == TAMIS_OK && answer.maybe &&
          answer.verified);
    choices[1].values = b + 20; /* records 21..30 */
    CHECK(tamis_records_ask(x, choices, 2, &answer, NULL) == TAMIS_OK && !answer.maybe &&
          answer.verified);
    choices[0].n = 100, choices[1].n = 0; /* any of none */
    CHECK(tamis_records_ask(x, choices, 2, &answer, NULL) == TAMIS_OK && !answer.maybe);
    choices[1].n = 100, choices[1].values = b + 200; /* 10,000 choices, none of them */
    CHECK(tamis_records_ask(x, choices, 2, &answer, NULL) == TAMIS_OK && !answer.maybe &&
          answer.verified);
    choices[0].n = 300, choices[1] = (tamis_choice){1, b + 99, 300}; /* some, but tried late */
    CHECK(tamis_records_ask(x, choices, 2, &answer, NULL) == TAMIS_OK && answer.maybe);
    /* too many to try: by the attributes alone */
    tamis_digest *far = calloc(MANY, sizeof *far);
    for (uint64_t i = 0; i < MANY; i++)
        far[i] = digest_of(x, 1, i < 300 ? 300 + i % 100 : FRESH + i);
    choices[0] = (tamis_choice){0, a, 300}, choices[1] = (tamis_choice){1, far, 300};
    CHECK(tamis_records_ask(x, choices, 2, &answer, NULL) == TAMIS_OK && answer.maybe &&
          !answer.verified);
    choices[1] = (tamis_choice){1, far + 300, 100}; /* values that are nowhere */
    CHECK(tamis_records_ask(x, choices, 2, &answer, NULL) == TAMIS_OK && !answer.maybe);
    free(far);
    CHECK(tamis_records_ask(x, choices, 0, &answer, NULL) == TAMIS_EARG);
    choices[1].attribute = 0;
    CHECK(tamis_records_ask(x, choices, 2, &answer, NULL) == TAMIS_EARG);
    choices[1].attribute = 2;
    CHECK(tamis_records_ask(x, choices, 2, &answer, NULL) == TAMIS_EARG);
    tamis_records_free(x);
}

/* ---- verification values as published -------------------------------------------------------- */

/* Sums of addresses 1..m, written from the paper: exact in 128 bits, cut to 64. */
static uint64_t published_value(const tamis_records *x, uint64_t mask, const tamis_digest *record,
                                bool attenuated)
{
    unsigned __int128 sum = 0;
    const struct layer *layer = set_layers(&x->set)->l[0];
    unsigned q = 0;
    for (uint32_t i = 0; i < x->set.stack->form->attributes; i++)
        q = layer->part[i].vector->bits.k > q ? layer->part[i].vector->bits.k : q;
    for (uint32_t i = 0; i < x->set.stack->form->attributes; i++) {
        const struct vector *v = layer->part[i].vector;
        struct model_shape shape = {TAMIS_SPREAD, vector_positions_total(v), v->bits.k};
        uint64_t address[64];
        model_positions(&shape, record[i], address);
        for (unsigned j = 1; (mask >> i & 1) && j <= v->bits.k; j++) {
            unsigned __int128 h = address[j - 1] + 1;
            sum += attenuated ? h << (q - j) : h;
        }
    }
    return (uint64_t)sum;
}

TEST(published_values_are_the_published_sums)
{
    uint64_t distinct[3] = {0, 7, 40};
    for (int attenuated = 0; attenuated < 2; attenuated++)
        for (int layout = 1; layout <= 2; layout++) {
            tamis_records *x =
                make((tamis_records_options){.verifier = TAMIS_VERIFIER_TABLE,
                                             .value = attenuated ? TAMIS_VERIFY_ATTENUATED
                                                                 : TAMIS_VERIFY_BASIC,
                                             .set.growth = TAMIS_FIXED,
                                             .set.layout = (tamis_layout)layout},
                     3, distinct);
            struct layer *layer = set_layers(&x->set)->l[0];
            fill(x, 3, 0, 200, distinct);
            for (uint64_t r = 0; r < 200; r++) {
                tamis_digest record[3];
                record_of(x, 3, r, distinct, record);
                for (uint32_t v = 0; v < 4; v++) {
                    uint64_t value =
                        published_value(x, x->set.stack->form->masks[v], record, attenuated);
                    CHECK(table_get(&layer->part[3 + v].table, value) >= 1);
                }
            }
            tamis_records_free(x);
        }
}

/* ---- rates ----------------------------------------------------------------------------------- */

struct tally {
    double asked, said_yes, sum, squares;
    unsigned indexes;
};

static void tally_add(struct tally *t, double asked, double yes)
{
    t->asked += asked;
    t->said_yes += yes;
    t->sum += yes / asked;
    t->squares += yes / asked * yes / asked;
    t->indexes++;
}

static double tally_rate(const struct tally *t)
{
    return t->asked > 0 ? t->said_yes / t->asked : 0;
}

/* Deviation of the mean: binomial at the rate p, or as seen between indexes, whichever is larger. */
static double tally_sigma(const struct tally *t, double p)
{
    double n = t->indexes, mean = t->sum / n, chance = sqrt(p * (1 - p) / t->asked);
    double spread = n > 1 ? sqrt(fmax(0, t->squares / n - mean * mean) / (n - 1)) : 0;
    return fmax(chance, spread);
}

static bool at_most(const struct tally *t, double p, const char *what, const char *where)
{
    double sigma = tally_sigma(t, p), rate = tally_rate(t);
    if (getenv("TEST_VERBOSE"))
        printf("%-34s %-12s stated %.3g, measured %.4g (sigma %.2g)\n", where, what, p, rate,
               sigma);
    return CHECK_MSG(rate <= p + 6 * sigma, "%s: %s: %g stated, %g measured, deviation %g", where,
                     what, p, rate, sigma);
}

enum class { FRESH_ONE, FRESH_ALL, RECOMBINED, PAIR, CLASSES };
static const char *const class_names[CLASSES] = {"fresh, one", "fresh, all", "recombined", "pair"};

/* Questions of one class to one index: records 0..n-1 are stored. */
static double ask_class(const tamis_records *x, enum class class, uint32_t p, uint64_t n,
                        const uint64_t *distinct, size_t asked, uint64_t *rng)
{
    tamis_digest *records = calloc((size_t)64 * p, sizeof *records);
    uint8_t found[64];
    double yes = 0;
    uint64_t mask = class == FRESH_ONE ? UINT64_C(1) << rng_next(rng) % p : class == PAIR ? 3 : 0;
    for (size_t done = 0; done < asked; done += 64) {
        for (size_t i = 0; i < 64; i++) {
            uint64_t first = rng_next(rng) % n;
            for (uint32_t j = 0; j < p; j++) {
                uint64_t value = FRESH + (rng_next(rng) >> 8);
                if (class >= RECOMBINED) { /* of any record but the first's, after the first */
                    value = j == 0 ? first : (first + 1 + rng_next(rng) % (n - 1)) % n;
                    if (distinct && distinct[j]) /* a neighbour in this many steps differs */
                        value %= distinct[j];
                }
                records[i * p + j] = digest_of(x, j, value);
            }
        }
        tamis_records_has_many(x, mask, records, 64, found);
        for (size_t i = 0; i < 64; i++)
            yes += found[i];
    }
    free(records);
    return yes;
}

static void rates_of(tamis_records_options o, uint32_t p, uint64_t n, unsigned indexes,
                     size_t asked, const char *where)
{
    struct tally tally[CLASSES] = {{0}};
    uint64_t rng = harness_seed() ^ p ^ n << 8 ^ (uint64_t)o.set.layout << 40;
    bool verified = o.verifier != TAMIS_VERIFIER_NONE;
    for (unsigned i = 0; i < indexes; i++) {
        uint8_t key[TAMIS_KEY_LEN];
        for (unsigned j = 0; j < TAMIS_KEY_LEN; j++)
            key[j] = (uint8_t)rng_next(&rng);
        o.set.key = key;
        tamis_records *x = make(o, p, NULL);
        fill(x, p, 0, n, NULL);
        for (int class = 0; class < CLASSES; class ++) {
            bool applies = class == PAIR         ? p == 3 && verified
                           : class == RECOMBINED ? p > 1 && verified
                                                 : true;
            if (applies && n > 1)
                tally_add(&tally[class], (double)asked,
                          ask_class(x, (enum class) class, p, n, NULL, asked, &rng));
        }
        tamis_records_facts info;
        tamis_records_info(x, &info);
        if (n >= 1000) { /* small ones differ from one another */
            CHECK(info.fpp_attribute <= 1.5 * o.set.fpp && info.fpp_fresh <= info.fpp_attribute);
            CHECK(!verified || p == 1 || info.fpp_record <= 1.5 * o.set.fpp);
        }
        tamis_records_free(x);
    }
    for (int class = 0; class < CLASSES; class ++)
        if (tally[class].indexes)
            at_most(&tally[class], o.set.fpp, class_names[class], where);
}

TEST(rates_by_class_of_question)
{
    static const uint32_t attributes[] = {1, 2, 3, 4, 5, 20, 64};
    char where[64];
    unsigned indexes = harness_long() ? 100 : harness_slow() ? 6 : 20;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        for (int layout = 1; layout <= 2; layout++)
            for (int growth = 0; growth < 2; growth++) {
                uint32_t p = attributes[i];
                if (p > 5 && growth && harness_slow())
                    continue;
                tamis_records_options o = {.set.fpp = 0.02,
                                           .set.layout = (tamis_layout)layout,
                                           .set.capacity = growth ? 20 : 1000,
                                           .set.growth = growth ? TAMIS_SCALABLE : TAMIS_FIXED,
                                           .set.expansion = growth ? 2 : 0};
                snprintf(where, sizeof where, "p %u, %s, %s", p, layout == 1 ? "spread" : "blocked",
                         growth ? "scalable" : "fixed");
                rates_of(o, p, 1000, p > 5 ? indexes / 5 + 1 : indexes, 2048, where);
            }
}

TEST(rates_of_small_and_deletable_records)
{
    char where[64];
    for (int layout = 1; layout <= 2; layout++)
        for (int deletable = 0; deletable < 2; deletable++) {
            tamis_records_options o = {.set.fpp = 0.05,
                                       .set.layout = (tamis_layout)layout,
                                       .set.capacity = 10,
                                       .set.growth = TAMIS_FIXED,
                                       .set.deletable = deletable};
            snprintf(where, sizeof where, "10 records, %s, %s", layout == 1 ? "spread" : "blocked",
                     deletable ? "deletable" : "plain");
            rates_of(o, 3, 10, harness_slow() ? 40 : 200, 1024, where);
        }
}

/* Whole records of stored values: always "maybe" without a verifier, as rarely as stated with a
   filter, never with a table. */
TEST(recombined_records)
{
    struct tally none = {0}, table = {0};
    uint64_t rng = harness_seed(), n = 2000;
    for (int i = 0; i < 4; i++) {
        tamis_records_options o = {.set.fpp = 0.01,
                                   .set.capacity = n,
                                   .set.growth = TAMIS_FIXED,
                                   .set.layout = 1 + i % 2,
                                   .verifier = TAMIS_VERIFIER_NONE};
        tamis_records *x = make(o, 4, NULL);
        o.verifier = TAMIS_VERIFIER_TABLE;
        tamis_records *y = make(o, 4, NULL);
        fill(x, 4, 0, n, NULL);
        fill(y, 4, 0, n, NULL);
        tally_add(&none, 4096, ask_class(x, RECOMBINED, 4, n, NULL, 4096, &rng));
        tally_add(&table, 4096, ask_class(y, RECOMBINED, 4, n, NULL, 4096, &rng));
        tamis_records_facts info;
        tamis_records_info(x, &info);
        CHECK(info.fpp_record == 1 && info.fpp_fresh < 1e-6);
        tamis_records_info(y, &info);
        CHECK(info.fpp_record < 1e-12);
        tamis_records_free(x);
        tamis_records_free(y);
    }
    CHECK(none.said_yes == none.asked && table.said_yes == 0);
}

/* The hardest question: every pair of its values occurs together, all three never do. */
TEST(pairs_that_occur_and_no_record)
{
    struct tally t = {0};
    for (int i = 0; i < (harness_slow() ? 4 : 20); i++) {
        uint64_t n = 600;
        tamis_records *x = make((tamis_records_options){.set.fpp = 0.03,
                                                        .set.capacity = 3 * n,
                                                        .set.growth = TAMIS_FIXED,
                                                        .set.layout = 1 + i % 2},
                                3, NULL);
        double yes = 0;
        for (uint64_t r = 0; r < 3 * n; r++) { /* (r, r, -), (r, -, r), (-, r, r) */
            tamis_digest record[3];
            for (uint32_t j = 0; j < 3; j++)
                record[j] = digest_of(x, j, j == r % 3 ? n + r : r / 3);
            CHECK(tamis_records_add_many(x, record, 1, NULL, NULL) == TAMIS_OK);
        }
        for (uint64_t r = 0; r < n; r++) {
            tamis_digest record[3];
            uint8_t found;
            record_of(x, 3, r, NULL, record);
            for (uint64_t mask = 1; mask < 7; mask++) {
                tamis_records_has_many(x, mask, record, 1, &found);
                CHECK(found);
            }
            tamis_records_has_many(x, 7, record, 1, &found);
            yes += found;
        }
        tally_add(&t, (double)n, yes);
        tamis_records_free(x);
    }
    at_most(&t, 0.03, "all three", "pairs that occur");
    CHECK(t.said_yes > 0);
}

/* The published sums collide as often as the corrected forms say: Theorems 5.3 and 5.4. */
TEST(published_values_collide_as_corrected)
{
    uint64_t rng = harness_seed(), n = 1000;
    for (int layout = 1; layout <= 2; layout++)
        for (int attenuated = 0; attenuated < 2; attenuated++)
            for (uint32_t p = 2; p <= 4; p += 2) {
                struct tally t = {0};
                tamis_plan_verify want = {0};
                for (int i = 0; i < (harness_slow() ? 4 : 12); i++) {
                    tamis_records *x =
                        make((tamis_records_options){.verifier = TAMIS_VERIFIER_TABLE,
                                                     .value = attenuated ? TAMIS_VERIFY_ATTENUATED
                                                                         : TAMIS_VERIFY_BASIC,
                                                     .set.growth = TAMIS_FIXED,
                                                     .set.fpp = 0.3,
                                                     .set.capacity = n,
                                                     .set.layout = (tamis_layout)layout,
                                                     .no_combos = true},
                             p, NULL);
                    const struct vector *v = set_layers(&x->set)->l[0]->part[0].vector;
                    want = plan_verify_rates(p, v->bits.k, (double)vector_positions_total(v),
                                             (double)n);
                    fill(x, p, 0, n, NULL);
                    tally_add(&t, 4096, ask_class(x, RECOMBINED, p, n, NULL, 4096, &rng));
                    double mean = attenuated ? want.attenuated_mean : want.basic_mean;
                    CHECK(fabs(tamis_records_rate(x, 0, false) - mean) < 0.05 * mean);
                    tamis_records_free(x);
                }
                double mean = attenuated ? want.attenuated_mean : want.basic_mean;
                double bound = attenuated ? want.attenuated : want.basic;
                double sigma = tally_sigma(&t, mean), rate = tally_rate(&t);
                if (getenv("TEST_VERBOSE"))
                    printf("p %u, %s: measured %.4f, mean %.4f, bound %.4f\n", p,
                           attenuated ? "attenuated" : "basic", rate, mean, bound);
                /* sums of so few addresses are not quite normal */
                CHECK_MSG(fabs(rate - mean) <= 0.1 * mean + 6 * sigma && rate <= bound + 6 * sigma,
                          "p %u, %s: %g measured, mean %g, bound %g", p,
                          attenuated ? "attenuated" : "basic", rate, mean, bound);
            }
}

/* Equal values in two attributes: false positives of one say nothing about the other. */
TEST(attributes_err_apart)
{
    struct tally one = {0}, both = {0};
    uint64_t rng = harness_seed();
    for (int i = 0; i < (harness_slow() ? 8 : 40); i++) {
        tamis_records *x = make((tamis_records_options){.verifier = TAMIS_VERIFIER_NONE,
                                                        .set.growth = TAMIS_FIXED,
                                                        .set.fpp = 0.1,
                                                        .set.capacity = 1000,
                                                        .set.layout = 1 + i % 2},
                                2, NULL);
        fill(x, 2, 0, 1000, NULL);
        double yes[2] = {0, 0};
        for (int j = 0; j < 2000; j++) {
            uint64_t value = FRESH + (rng_next(&rng) >> 8);
            tamis_digest record[2] = {digest_of(x, 0, value), digest_of(x, 1, value)};
            uint8_t found;
            tamis_records_has_many(x, 1, record, 1, &found);
            yes[0] += found;
            tamis_records_has_many(x, 3, record, 1, &found);
            yes[1] += found;
        }
        tally_add(&one, 2000, yes[0]);
        tally_add(&both, 2000, yes[1]);
        tamis_records_free(x);
    }
    at_most(&one, 0.1, "one", "equal values");
    at_most(&both, 0.01, "both", "equal values");
}

/* ---- attributes of few values ---------------------------------------------------------------- */

TEST(few_values_take_few_bits)
{
    uint64_t few[3] = {0, 8, 8}, n = 20000;
    tamis_records_options o = {.set.growth = TAMIS_FIXED, .set.capacity = n, .no_combos = true};
    tamis_records *x = make(o, 3, few), *y = make(o, 3, NULL);
    tamis_attribute_facts a, b;
    fill(x, 3, 0, n, few); /* all of them fit: no value is new after the eighth */
    tamis_records_attribute_info(x, 1, &a);
    tamis_records_attribute_info(y, 1, &b);
    CHECK(a.bits * 20 < b.bits);
    tamis_records_free(x);
    /* One of the eight is covered by the others in one index of 200, and then counts less. */
    double distinct = 0;
    for (int i = 0; i < 100; i++) {
        x = make(o, 3, few);
        fill(x, 3, 0, 100, few);
        tamis_records_attribute_info(x, 1, &a);
        distinct += a.distinct / 100;
        tamis_records_free(x);
    }
    CHECK_MSG(fabs(distinct - 8) < 0.1, "%g", distinct);
    /* a pair of such attributes has few combinations */
    o.no_combos = false;
    x = make(o, 3, few);
    const struct layer *layer = set_layers(&x->set)->l[0];
    CHECK(vector_positions_total(layer->part[3].vector) >
          4 * vector_positions_total(layer->part[6].vector));
    tamis_records_free(x);
    tamis_records_free(y);
}

/* Plans that were too small: the rate holds, and the next layer is made larger. */
TEST(more_values_than_planned)
{
    uint64_t planned[2] = {0, 5}, n = 4000;
    for (int layout = 1; layout <= 2; layout++)
        for (int deletable = 0; deletable < 2; deletable++) {
            struct tally t = {0};
            uint64_t rng = harness_seed();
            uint32_t layers = 0;
            for (int i = 0; i < (harness_slow() ? 4 : 12); i++) {
                tamis_records *x = make((tamis_records_options){.set.capacity = n,
                                                                .set.fpp = 0.02,
                                                                .set.layout = (tamis_layout)layout,
                                                                .set.deletable = deletable},
                                        2, planned);
                fill(x, 2, 0, n, NULL); /* as many values as records */
                tamis_records_facts info;
                tamis_records_info(x, &info);
                layers = info.layers > layers ? info.layers : layers;
                CHECK(info.set.items > n - n / 20);
                double yes = 0;
                for (int j = 0; j < 2048; j++) {
                    tamis_digest record[2] = {{0, 0}, digest_of(x, 1, FRESH + rng_next(&rng) / 4)};
                    uint8_t found;
                    tamis_records_has_many(x, 2, record, 1, &found);
                    yes += found;
                }
                tally_add(&t, 2048, yes);
                tamis_records_free(x);
            }
            at_most(&t, 0.02, "fresh, one", "more values than planned");
            CHECK_MSG(layers <= 3, "%u layers", layers);
        }
    tamis_records *x =
        make((tamis_records_options){.set.capacity = n, .set.growth = TAMIS_FIXED}, 2, planned);
    tamis_digest record[2];
    tamis_error e = TAMIS_OK;
    uint64_t r = 0;
    for (; r < n && e == TAMIS_OK; r++) {
        record_of(x, 2, r, NULL, record);
        e = tamis_records_add_many(x, record, 1, NULL, NULL);
    }
    CHECK(e == TAMIS_EFULL && r > 5 && r < n); /* a fixed one is full */
    tamis_records_free(x);
}

/* ---- values in very many records ------------------------------------------------------------- */

TEST(values_in_very_many_records)
{
    uint64_t n = harness_long() ? 1000000 : harness_slow() ? 50000 : 300000, distinct[2] = {1, 0};
    for (int verifier = 1; verifier <= 3; verifier++) {
        tamis_records *x = make((tamis_records_options){.set.capacity = n,
                                                        .set.growth = TAMIS_FIXED,
                                                        .set.deletable = true,
                                                        .set.fpp = 0.001,
                                                        .verifier = (tamis_verifier)verifier},
                                2, distinct);
        fill(x, 2, 0, n, distinct);
        fill(x, 2, 0, 1000, distinct); /* a record can be there twice */
        tamis_digest record[2];
        uint8_t outcome, found;
        uint64_t absent = 0, denied = 0;
        for (uint64_t r = 0; r < n; r++)
            for (int twice = 0; twice <= (r < 1000); twice++) {
                record_of(x, 2, r, distinct, record);
                CHECK(tamis_records_remove_many(x, record, 1, &outcome, NULL) == TAMIS_OK);
                absent += outcome != TAMIS_REMOVED;
                tamis_records_has_many(x, 1, record, 1, &found);
                denied += !found && r + 1 < n;
            }
        CHECK(absent == 0 && denied == 0 && found == 0);
        tamis_records_facts info;
        tamis_records_info(x, &info);
        CHECK(info.set.items == 0 && info.set.pending == 0 && info.layers == 1);
        CHECK(info.fpp_attribute == 0 && info.fpp_record == 0);
        tamis_records_free(x);
    }
}

TEST(limits_of_memory_and_capacity)
{
    tamis_records *x =
        make((tamis_records_options){.set.memory_limit = 1 << 16, .set.capacity = 100}, 2, NULL);
    tamis_digest record[2];
    tamis_error e = TAMIS_OK;
    uint64_t r = 0;
    for (; r < 100000 && e == TAMIS_OK; r++) {
        record_of(x, 2, r, NULL, record);
        e = tamis_records_add_many(x, record, 1, NULL, NULL);
    }
    tamis_records_facts info;
    tamis_records_info(x, &info);
    CHECK(e == TAMIS_ESPACE && info.set.bytes <= 1 << 16 && r > 100);
    tamis_records_free(x);
    x = make((tamis_records_options){.set.growth = TAMIS_DYNAMIC,
                                     .set.capacity = 1000,
                                     .set.vectors = 4},
             2, NULL);
    fill(x, 2, 0, 980, NULL);
    for (r = 980, e = TAMIS_OK; r < 2000 && e == TAMIS_OK; r++) {
        record_of(x, 2, r, NULL, record);
        e = tamis_records_add_many(x, record, 1, NULL, NULL);
    }
    tamis_records_info(x, &info);
    CHECK(e == TAMIS_EFULL && info.layers == 4 && info.set.items == 1000 &&
          info.set.capacity == 1000);
    record_of(x, 2, 3, NULL, record); /* a member is no reason to refuse */
    CHECK(tamis_records_add_many(x, record, 1, NULL, NULL) == TAMIS_OK);
    tamis_records_free(x);
}

static uint64_t read_clock(void *context)
{
    return *(const uint64_t *)context;
}

/* Flexible: layers as the arrival rate asks. */
TEST(flexible_layers_follow_the_arrivals)
{
    uint64_t clock = 1000;
    tamis_records *x = make((tamis_records_options){.set.growth = TAMIS_FLEXIBLE,
                                                    .set.capacity = 100,
                                                    .set.clock = read_clock,
                                                    .set.clock_context = &clock},
                            2, NULL);
    tamis_digest record[2];
    for (uint64_t r = 0; r < 20000; r++) {
        record_of(x, 2, r, NULL, record);
        clock += r < 300 ? 1000000 : 10000; /* a hundred times faster */
        CHECK(tamis_records_add_many(x, record, 1, NULL, NULL) == TAMIS_OK);
    }
    const struct layers *layers = set_layers(&x->set);
    uint32_t n = layers_count(layers);
    CHECK(layers->l[1]->capacity == 100 && layers->l[2]->capacity <= 200);
    CHECK_MSG(n > 3 && layers->l[n - 1]->capacity >= 6400, "%u layers, the last for %llu", n,
              (unsigned long long)layers->l[n - 1]->capacity);
    tamis_records_facts info;
    tamis_records_info(x, &info);
    CHECK(info.fpp_attribute <= 0.01 && info.fpp_record <= 0.01);
    tamis_records_free(x);
}

/* A clock that is set back stands still, as for filters: what comes after is no older. */
TEST(a_clock_set_back_stands_still)
{
    uint64_t clock = UINT64_C(1) << 40;
    tamis_records *x = make((tamis_records_options){.set.growth = TAMIS_FLEXIBLE,
                                                    .set.capacity = 10,
                                                    .set.clock = read_clock,
                                                    .set.clock_context = &clock},
                            2, NULL);
    tamis_digest record[2];
    uint64_t born = 0;
    for (uint64_t r = 0; r < 100; r++) {
        record_of(x, 2, r, NULL, record);
        clock += r == 50 ? -(clock / 2) : 1000;
        CHECK(tamis_records_add_many(x, record, 1, NULL, NULL) == TAMIS_OK);
    }
    const struct layers *layers = set_layers(&x->set);
    CHECK(layers_count(layers) > 3);
    for (uint32_t i = 0; i < layers_count(layers); i++) {
        CHECK(layers->l[i]->born >= born);
        born = layers->l[i]->born;
    }
    tamis_records_free(x);
}

/* ---- normal forms ---------------------------------------------------------------------------- */

struct form {
    tamis_type type;
    const char *value, *normal; /* NULL: none */
};

static const struct form forms[] = {
    {TAMIS_INT, "7", "7"},
    {TAMIS_INT, "07", "7"},
    {TAMIS_INT, "+7", "7"},
    {TAMIS_INT, "\"7\"", "7"},
    {TAMIS_INT, " 7 ", "7"},
    {TAMIS_INT, "\" 7\"", "7"},
    {TAMIS_INT, "-0", "0"},
    {TAMIS_INT, "000", "0"},
    {TAMIS_INT, "-007", "-7"},
    {TAMIS_INT, "123456789012345678901234567890", "123456789012345678901234567890"},
    {TAMIS_INT, "", NULL},
    {TAMIS_INT, "-", NULL},
    {TAMIS_INT, "7.0", NULL},
    {TAMIS_INT, "7a", NULL},
    {TAMIS_INT, "0x7", NULL},
    {TAMIS_INT, "7 7", NULL},
    {TAMIS_INT, "\"7", NULL},
    {TAMIS_INT, "\"", NULL},
    {TAMIS_INT, "+-7", NULL},
    {TAMIS_DEC, "1.50", "15e-1"},
    {TAMIS_DEC, "1.5", "15e-1"},
    {TAMIS_DEC, "15e-1", "15e-1"},
    {TAMIS_DEC, "+0015.0E-1", "15e-1"},
    {TAMIS_DEC, ".5", "5e-1"},
    {TAMIS_DEC, "5.", "5"},
    {TAMIS_DEC, "100", "1e2"},
    {TAMIS_DEC, "1e2", "1e2"},
    {TAMIS_DEC, "0.01e4", "1e2"},
    {TAMIS_DEC, "100.00", "1e2"},
    {TAMIS_DEC, "10.05", "1005e-2"},
    {TAMIS_DEC, "-0.0", "0"},
    {TAMIS_DEC, "0e999999999999999999999", "0"},
    {TAMIS_DEC, "-12.3400", "-1234e-2"},
    {TAMIS_DEC, "0.1000000000000000055511151231257827", "1000000000000000055511151231257827e-34"},
    {TAMIS_DEC, "1e1000000000000000", "1e1000000000000000"},
    {TAMIS_DEC, "1e-1000000000000000", "1e-1000000000000000"},
    {TAMIS_DEC, "1e1000000000000001", NULL},
    {TAMIS_DEC, "1e99999999999999999999", NULL},
    {TAMIS_DEC, ".", NULL},
    {TAMIS_DEC, "e5", NULL},
    {TAMIS_DEC, "1e", NULL},
    {TAMIS_DEC, "1e+", NULL},
    {TAMIS_DEC, "1.2.3", NULL},
    {TAMIS_DEC, "1,5", NULL},
    {TAMIS_DEC, "nan", NULL},
    {TAMIS_DEC, "inf", NULL},
    {TAMIS_TIME, "2024-01-31T23:59:59.50+01:00", "2024-01-31T22:59:59.5Z"},
    {TAMIS_TIME, "2024-01-31 22:59:59,5", "2024-01-31T22:59:59.5Z"},
    {TAMIS_TIME, "20240131T225959.5Z", "2024-01-31T22:59:59.5Z"},
    {TAMIS_TIME, "20240131T235959.5+0100", "2024-01-31T22:59:59.5Z"},
    {TAMIS_TIME, "1706741999.5", "2024-01-31T22:59:59.5Z"},
    {TAMIS_TIME, "2024-01-31t22:59:59.500000z", "2024-01-31T22:59:59.5Z"},
    {TAMIS_TIME, "2024-01-31 23:59:59.5 +01", "2024-01-31T22:59:59.5Z"},
    {TAMIS_TIME, "\"2024-01-31\"", "2024-01-31T00:00:00Z"},
    {TAMIS_TIME, "2024-01-31", "2024-01-31T00:00:00Z"},
    {TAMIS_TIME, "2024-01-31T00:00", "2024-01-31T00:00:00Z"},
    {TAMIS_TIME, "2024-01-30T23:30-00:30", "2024-01-31T00:00:00Z"},
    {TAMIS_TIME, "2024-02-29", "2024-02-29T00:00:00Z"},
    {TAMIS_TIME, "2000-02-29T12:00:00.000Z", "2000-02-29T12:00:00Z"},
    {TAMIS_TIME, "2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"},
    {TAMIS_TIME, "0", "1970-01-01T00:00:00Z"},
    {TAMIS_TIME, "-0.25", "1969-12-31T23:59:59.75Z"},
    {TAMIS_TIME, "-1.10", "1969-12-31T23:59:58.9Z"},
    {TAMIS_TIME, "-1", "1969-12-31T23:59:59Z"},
    {TAMIS_TIME, "-1.000", "1969-12-31T23:59:59Z"},
    {TAMIS_TIME, "20240131", "1970-08-23T06:15:31Z"}, /* digits alone are seconds */
    {TAMIS_TIME, "0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"},
    {TAMIS_TIME, "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"},
    {TAMIS_TIME, "-62167219200", "0000-01-01T00:00:00Z"},
    {TAMIS_TIME, "253402300799", "9999-12-31T23:59:59Z"},
    {TAMIS_TIME, "253402300800", NULL},
    {TAMIS_TIME, "-62167219201", NULL},
    {TAMIS_TIME, "9999-12-31T23:59:59-01:00", NULL},
    {TAMIS_TIME, "0000-01-01T00:00:00+00:01", NULL},
    {TAMIS_TIME, "2023-02-29", NULL},
    {TAMIS_TIME, "1900-02-29", NULL},
    {TAMIS_TIME, "2024-13-01", NULL},
    {TAMIS_TIME, "2024-00-01", NULL},
    {TAMIS_TIME, "2024-01-00", NULL},
    {TAMIS_TIME, "2024-04-31", NULL},
    {TAMIS_TIME, "2024-01-31T24:00:00", NULL},
    {TAMIS_TIME, "2024-01-31T23:60:00", NULL},
    {TAMIS_TIME, "2024-01-31T23:59:61", NULL},
    {TAMIS_TIME, "2024-01-31T23", NULL},
    {TAMIS_TIME, "2024-01-31T23:59:59.", NULL},
    {TAMIS_TIME, "2024-01-31T23:59:59+24:00", NULL},
    {TAMIS_TIME, "2024-01-31T23:59:59+1", NULL},
    {TAMIS_TIME, "2024-01-31T23:59:59 x", NULL},
    {TAMIS_TIME, "2024-01-31T23:59:59ZZ", NULL},
    {TAMIS_TIME, "2024-1-31", NULL},
    {TAMIS_TIME, "20240131 225959", NULL},
    {TAMIS_TIME, "yesterday", NULL},
    {TAMIS_TIME, "1e9", NULL},
    {TAMIS_TIME, "1.", NULL},
    {TAMIS_TIME, "", NULL},
    {TAMIS_BYTES, "7", NULL},
};

TEST(normal_forms)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const struct form *f = &forms[i];
        char out[128], again[128];
        size_t len = strlen(f->value);
        size_t n = tamis_value_normal(f->type, f->value, len, out, len + 32);
        bool good = f->normal ? n == strlen(f->normal) && !memcmp(out, f->normal, n) : n == 0;
        CHECK_MSG(good, "%d %s: %.*s, not %s", (int)f->type, f->value, (int)n, out,
                  f->normal ? f->normal : "nothing");
        /* a normal form is its own */
        CHECK(!n || (tamis_value_normal(f->type, out, n, again, sizeof again) == n &&
                     !memcmp(out, again, n)));
        CHECK(!n || tamis_value_normal(f->type, f->value, len, again, n - 1) == 0);
    }
    char big[5000], out[5100];
    memset(big, '9', sizeof big);
    CHECK(tamis_value_normal(TAMIS_INT, big, 4096, out, sizeof out) == 4096);
    CHECK(tamis_value_normal(TAMIS_INT, big, 4097, out, sizeof out) == 0);
    CHECK(tamis_value_normal(TAMIS_INT, NULL, 0, out, sizeof out) == 0);
    big[2000] = '.';
    CHECK(tamis_value_normal(TAMIS_DEC, big, 4096, out, sizeof out) == 4101);
}

/* Random decimals and moments, written in several ways. */
TEST(ways_to_write_one_value)
{
    uint64_t rng = harness_seed();
    char one[200], other[200], x[300], y[300];
    for (int i = 0; i < 20000; i++) {
        uint64_t digits = rng_next(&rng) >> (rng_next(&rng) % 60);
        int zeros = (int)(rng_next(&rng) % 5), e = (int)(rng_next(&rng) % 40) - 20;
        int n = sprintf(one, "%llue%d", (unsigned long long)digits, e);
        int m = sprintf(other, "+0%llu%.*s.%.*sE%d", (unsigned long long)digits, zeros, "00000",
                        zeros, "00000", e - zeros);
        size_t a = tamis_value_normal(TAMIS_DEC, one, (size_t)n, x, sizeof x);
        size_t b = tamis_value_normal(TAMIS_DEC, other, (size_t)m, y, sizeof y);
        if (!CHECK_MSG(a && a == b && !memcmp(x, y, a), "%s and %s", one, other))
            return;
        /* a moment as seconds and as the calendar of libc says, some hours off */
        time_t t = (time_t)(rng_next(&rng) % 200000000000) - 60000000000;
        int hours = (int)(rng_next(&rng) % 47) - 23;
        time_t local = t + 3600 * hours;
        struct tm tm;
        gmtime_r(&local, &tm);
        n = sprintf(one, "%lld", (long long)t);
        m = sprintf(other, "%04d-%02d-%02dT%02d:%02d:%02d.000%c%02d:00", tm.tm_year + 1900,
                    tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                    hours < 0 ? '-' : '+', hours < 0 ? -hours : hours);
        a = tamis_value_normal(TAMIS_TIME, one, (size_t)n, x, sizeof x);
        b = tamis_value_normal(TAMIS_TIME, other, (size_t)m, y, sizeof y);
        if (!CHECK_MSG(a && a == b && !memcmp(x, y, a), "%s and %s", one, other))
            return;
    }
}

TEST(typed_attributes_meet)
{
    tamis_attribute at[] = {{.name = "n", .type = TAMIS_INT},
                            {.name = "x", .type = TAMIS_DEC},
                            {.name = "t", .type = TAMIS_TIME},
                            {.name = "s"}};
    tamis_records_options o = {.attributes = at, .n_attributes = 4, .set.fpp = 1e-9};
    tamis_records *x;
    CHECK(tamis_records_new(&x, &o, NULL) == TAMIS_OK);
    tamis_key stored[4] = {text_key("07"), text_key("1.50"), text_key("2024-01-31"),
                           text_key("07")};
    tamis_key asked[4] = {text_key("7"), text_key("15e-1"), text_key("1706659200"), text_key("07")};
    CHECK(tamis_records_add(x, stored, NULL) == TAMIS_OK);
    CHECK(tamis_records_has(x, asked, 0).maybe);
    asked[3] = text_key("7"); /* text is text */
    CHECK(!tamis_records_has(x, asked, 0).maybe && tamis_records_has(x, asked, 7).maybe);
    stored[0] = asked[0] = text_key("seven"), stored[3] = asked[3];
    CHECK(tamis_records_add(x, stored, NULL) == TAMIS_OK && tamis_records_has(x, asked, 0).maybe);
    asked[0] = text_key("seven ");
    CHECK(!tamis_records_has(x, asked, 0).maybe);
    tamis_records_free(x);
}

HARNESS_MAIN
