/* What a filter or an index says of itself. See set_file.h. */
#include <stdio.h>

#include "ui/out.h"
#include "read/record_input.h"
#include "ui/report.h"
#include "set_file.h"

static const char *const growths[] = {"", "fixed", "dynamic", "scalable", "flexible", "window"};
static const char *const layouts[] = {"", "spread", "blocked"};
static const char *const hashes[] = {"", "xxh3", "sip", "h3"};

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
    report_table_end();
}

static void report_filter(const tamis_filter *filter, bool json, bool all)
{
    tamis_filter_facts i;
    tamis_filter_info(filter, &i);
    report_text("kind", "kind", "filter");
    report_text("growth", "growth", growths[i.growth]);
    report_text("layout", "layout", layouts[i.layout]);
    report_text("hash", "hash", hashes[i.hash]);
    report_flag("deletable", "deletable", i.deletable);
    report_flag("unique", "unique", i.unique);
    report_flag("bits_only", "bits only", i.bits_only);
    report_flag("has_key", "key stored", i.has_key);
    report_count("items", "items", i.items);
    report_real("distinct", "distinct (estimated)",
                json ? i.distinct : (double)(uint64_t)(i.distinct + 0.5));
    report_count("capacity", "capacity", i.capacity);
    report_size("bytes", "bytes", i.bytes);
    report_count("bits", "bits", i.bits);
    report_count("vectors", "vectors", i.vectors);
    report_count("hashes", "hashes (most)", i.hashes);
    report_count("pending", "pending removals", i.pending);
    report_rate("fpp", "fpp (stated)", i.fpp);
    report_rate("fpp_now", "fpp now (estimated)", i.fpp_now);
    report_rate("fill", "fill", i.fill);
    if (all)
        report_vectors(filter);
}

/* ---- indexes --------------------------------------------------------------------------------- */

static void report_attributes(const tamis_records *index, bool json)
{
    tamis_attribute_facts a;
    char text[120];
    if (json)
        json_open("attributes", '[');
    else
        report_group(NULL, "attributes");
    for (uint32_t i = 0; tamis_records_attribute_info(index, i, &a); i++) {
        if (json) {
            json_open(NULL, '{');
            json_text("name", a.name);
            json_text("type", tamis_type_name(a.type));
            json_count("bits", a.bits);
            json_real("distinct", a.distinct);
            json_real("fpp_now", a.fpp);
            json_close('}');
            continue;
        }
        snprintf(text, sizeof text, "%s, %.0f values (estimated), fpp now %.3g",
                 tamis_type_name(a.type), a.distinct, a.fpp);
        report_text(NULL, a.name, text);
    }
    if (json)
        json_close(']');
    else
        report_group_end();
}

static void report_combos(const tamis_records *index, bool json, uint32_t n)
{
    char names[200], text[256];
    if (json)
        json_open("combos", '[');
    else if (n)
        report_group(NULL, "combinations");
    for (uint32_t i = 0; i < n; i++) {
        uint64_t mask = tamis_records_combo(index, i);
        double rate = tamis_records_rate(index, mask, false);
        records_names(index, mask, names, sizeof names);
        if (json) {
            json_open(NULL, '{');
            json_text("attributes", names);
            json_real("fpp_now", rate);
            json_close('}');
            continue;
        }
        snprintf(text, sizeof text, "%s, fpp now %.3g", names, rate);
        report_text(NULL, "combination", text);
    }
    if (json)
        json_close(']');
    else if (n)
        report_group_end();
}

static void report_index(const tamis_records *index, bool json)
{
    static const char *const verifiers[] = {"", "none", "table", "filter"};
    tamis_records_facts i;
    tamis_records_info(index, &i);
    report_text("kind", "kind", "index");
    report_text("growth", "growth", growths[i.growth]);
    report_text("layout", "layout", layouts[i.layout]);
    report_text("hash", "hash", hashes[i.hash]);
    report_text("verifier", "verifier", verifiers[i.verifier]);
    report_flag("deletable", "deletable", i.deletable);
    report_flag("bits_only", "bits only", i.bits_only);
    report_flag("has_key", "key stored", i.has_key);
    report_count("records", "records", i.records);
    report_count("capacity", "capacity", i.capacity);
    report_size("bytes", "bytes", i.bytes);
    report_count("bits", "bits", i.bits);
    report_count("layers", "layers", i.layers);
    report_count("pending", "pending removals", i.pending);
    report_rate("fpp", "fpp (stated)", i.fpp);
    report_rate("fpp_attribute", "fpp now, one attribute", i.fpp_attribute);
    report_rate("fpp_record", "fpp now, whole records", i.fpp_record);
    report_attributes(index, json);
    report_combos(index, json, i.combos);
}

void store_report(const struct store *store, bool json, bool all)
{
    report_open(json);
    if (store->index)
        report_index(store->index, json);
    else
        report_filter(store->filter, json, all);
    report_close();
}
