/* The figures of filters and records that info prints. See set_file.h. */
#include "ui/out.h"
#include "read/record_input.h"
#include "ui/report.h"
#include "set_file.h"

/* ---- filters --------------------------------------------------------------------------------- */

static void report_vectors(const tamis_filter *filter)
{
    static const struct report_column columns[] = {
        {"bits", "bits"},   {"hashes", "hashes"}, {"capacity", "capacity"},
        {"items", "items"}, {"ones", "ones"},     {"fpp", "fpp"},
    };
    tamis_vector_facts v;
    report_table("vector_list", "vectors, oldest first", columns, COUNT(columns));
    for (uint32_t i = 0; tamis_filter_vector(filter, i, &v); i++) {
        const double row[] = {(double)v.bits,  (double)v.hashes, (double)v.capacity,
                              (double)v.items, (double)v.ones,   v.fpp};
        report_row(row);
    }
    report_end();
}

/* ---- records --------------------------------------------------------------------------------- */

static void report_attributes(const tamis_records *set)
{
    tamis_attribute_facts a;
    report_list("attributes", "attributes");
    for (uint32_t i = 0; tamis_records_attribute_info(set, i, &a); i++)
        if (report_item(a.name, "%s, %.0f values (estimated), fpp now %.3g",
                        tamis_type_name(a.type), a.distinct, a.fpp)) {
            json_text("name", a.name);
            json_text("type", tamis_type_name(a.type));
            json_count("bits", a.bits);
            json_real("distinct", a.distinct);
            json_real("fpp_now", a.fpp);
            json_close();
        }
    report_end();
}

static void report_combos(const tamis_records *set, uint32_t n)
{
    char names[200];
    report_list("combos", "combinations");
    for (uint32_t i = 0; i < n; i++) {
        uint64_t mask = tamis_records_combo(set, i);
        double rate = tamis_records_rate(set, mask, false);
        records_names(set, mask, names, sizeof names);
        if (report_item("combination", "%s, fpp now %.3g", names, rate)) {
            json_text("attributes", names);
            json_real("fpp_now", rate);
            json_close();
        }
    }
    report_end();
}

static void report_rates(const struct store *store, const tamis_records_facts *facts, bool all)
{
    if (facts->set.fpp == 0) /* growing vectors as published: the total has no bound */
        report_none("fpp", "fpp (stated)", "none stated");
    else
        report_rate("fpp", "fpp (stated)", facts->set.fpp);
    if (store_has_records(store)) {
        report_rate("fpp_attribute", "fpp now, one attribute", facts->fpp_attribute);
        report_rate("fpp_record", "fpp now, whole records", facts->fpp_record);
        report_attributes(as_records(store->set));
        report_combos(as_records(store->set), facts->combos);
    } else {
        report_rate("fpp_now", "fpp now (estimated)", facts->set.fpp_now);
        report_rate("fill", "fill", facts->set.fill);
        if (all)
            report_vectors(as_filter(store->set));
    }
}

void store_report(const struct store *store, bool json, bool all)
{
    static const char *const values[] = {"mixed", "mixed", "basic", "attenuated"};
    bool records = store_has_records(store);
    tamis_records_facts facts = {0};
    const tamis_filter_facts *i = &facts.set;
    if (records)
        tamis_records_info(as_records(store->set), &facts);
    else
        tamis_filter_info(as_filter(store->set), &facts.set);
    report_open(json);
    report_text("kind", "kind", records ? "records" : "filter");
    report_text("growth", "growth", growth_names[i->growth]);
    report_text("layout", "layout", layout_names[i->layout]);
    report_text("hash", "hash", hash_names[i->hash]);
    if (records)
        report_text("verifier", "verifier", verifier_names[facts.verifier]);
    if (records && facts.verifier != TAMIS_VERIFIER_NONE)
        report_text("value", "verification value", values[facts.value]);
    report_flag("deletable", "deletable", i->deletable);
    if (!records)
        report_flag("unique", "unique", i->unique);
    report_flag("bits_only", "bits only", i->bits_only);
    report_flag("has_key", "key stored", i->has_key);
    report_count(records ? "records" : "items", records ? "records" : "items", i->items);
    if (!records)
        report_real("distinct", "distinct (estimated)",
                    json ? i->distinct : (double)(uint64_t)(i->distinct + 0.5));
    report_count("capacity", "capacity", i->capacity);
    report_size("bytes", "bytes", i->bytes);
    report_count("bits", "bits", i->bits);
    if (records)
        report_count("layers", "layers", facts.layers);
    else
        report_count("vectors", "vectors", i->vectors);
    if (!records)
        report_count("hashes", "hashes (most)", i->hashes);
    report_count("pending", "pending removals", i->pending);
    report_rates(store, &facts, all);
    report_end();
}
