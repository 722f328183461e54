/* tamis plan: selects the form by the options given. */
#include "plan_verb.h"

#include <string.h>

#include "ui/args.h"
#include "plot.h"
#include "ui/report.h"

#define O(name) (UINT32_C(1) << PLAN_##name)

static const struct form {
    const char *name;
    uint32_t needs, may;
    plan_form *run;
} forms[] = {
    {"fixed", O(items) | O(fpp), 0, plan_fixed_size},
    {"fixed", O(bits) | O(hashes) | O(items), 0, plan_fixed_rate},
    {"fixed", O(bits) | O(hashes) | O(fpp), 0, plan_fixed_capacity},
    {"smooth", O(items) | O(fpp), 0, plan_smooth},
    {"dynamic", O(bits) | O(hashes) | O(capacity) | O(items), O(union_items), plan_dynamic_rates},
    {"dynamic", O(max_items) | O(fpp) | O(sizes), 0, plan_dynamic_sizes},
    {"dynamic", O(hashes) | O(items) | O(fpp) | O(tolerate), 0, plan_dynamic_thresholds},
    {"scalable", O(bits) | O(hashes) | O(fpp) | O(items), 0, plan_scalable},
    {"flexible", O(bits) | O(capacity) | O(hashes) | O(items) | O(lambda), 0, plan_flexible_lambda},
    {"flexible", O(rate) | O(base_rate), O(bits) | O(capacity) | O(hashes) | O(items),
     plan_flexible_rate},
    {"records", O(attributes) | O(hashes) | O(cells) | O(items), O(range), plan_records},
    {"replica", O(bits) | O(hashes) | O(items) | O(delta1) | O(delta0), O(hosts) | O(weights),
     plan_replica},
};

static const char *const option_names[] = {
#define X(name, kind) #name,
    PLAN_OPTIONS(X)
#undef X
};

/* "--union-items" */
static const char *option_text(unsigned i, char room[32])
{
    size_t len = strlen(option_names[i]);
    memcpy(room, "--", 2);
    memcpy(room + 2, option_names[i], len + 1);
    for (char *at = room + 2; *at; at++)
        *at = *at == '_' ? '-' : *at;
    return room;
}

void plan_begin(const struct plan *plan)
{
    report_open(plan->json);
    report_text("form", "form", plan->form);
}

/* The form whose options differ least from those given. */
static const struct form *nearest(const char *name, uint32_t given, int *distance)
{
    const struct form *best = NULL;
    for (size_t i = 0; i < COUNT(forms); i++) {
        if (strcmp(forms[i].name, name) != 0)
            continue;
        uint32_t missing = forms[i].needs & ~given,
                 extra = given & ~(forms[i].needs | forms[i].may);
        int here = __builtin_popcount(missing) + __builtin_popcount(extra);
        if (!best || here < *distance) {
            best = &forms[i];
            *distance = here;
        }
    }
    return best;
}

static int run_form(struct plan *plan, const char *name)
{
    uint32_t given = 0;
    int distance = 0;
    char room[32];
    for (unsigned i = 0; i < PLAN_OPTION_COUNT; i++)
        given |= plan->given[i] ? UINT32_C(1) << i : 0;
    const struct form *form = nearest(name, given, &distance);
    if (!form)
        return complain(
            "unknown form: %s: give smooth, fixed, dynamic, scalable, flexible, records or replica",
            name);
    plan->form = form->name;
    if (distance == 0 && plan->given[PLAN_hashes] && (plan->hashes < 1 || plan->hashes > 64))
        return complain("wrong value '%llu': --hashes: give 1 to 64",
                        (unsigned long long)plan->hashes);
    if (distance == 0)
        return form->run(plan);
    uint32_t missing = form->needs & ~given, extra = given & ~(form->needs | form->may);
    if (missing)
        return complain("missing option: %s: plan %s needs it here; see tamis help plan",
                        option_text((unsigned)__builtin_ctz(missing), room), name);
    return complain("option does not apply: %s: leave it out; see tamis help plan",
                    option_text((unsigned)__builtin_ctz(extra), room));
}

int verb_plan(int argc, char **argv)
{
    struct plan plan = {0};
    char names[PLAN_OPTION_COUNT][32];
    struct arg args[PLAN_OPTION_COUNT + 2] = {
#define X(name, kind) {#name, 0, kind, &plan.name, &plan.given[PLAN_##name], NULL},
        PLAN_OPTIONS(X)
#undef X
            ARG("json", 0, ARG_FLAG, &plan.json),
        ARG("plot", 0, ARG_TEXT, &plan.plot)};
    for (unsigned i = 0; i < PLAN_OPTION_COUNT; i++)
        args[i].name = option_text(i, names[i]) + 2;
    struct words words = args_read(argc, argv, args, COUNT(args));
    if (words.n != 1)
        return complain("%s: tamis plan FORM: give smooth, fixed, dynamic, scalable, flexible, "
                        "records or replica",
                        words.n ? "too many words" : "no form");
    return plan.plot && !plot_may(plan.plot) ? TROUBLE : run_form(&plan, words.word[0]);
}
