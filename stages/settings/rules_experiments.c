/* What experiments add to the rules of a run. With WIDE, stage 1 learns from some kernels for more tasks;
 * with SELFSUP_WIDE_ASK or WIDE_ASK the rounds of stage 2 or 3 ask some of those beside TASKS, each round
 * others, and the pools have their kernels. With WITHHOLD the teacher keeps its fast designs, and figures
 * say how much of the gap to them is closed (stages/data/gap.h). */
#include "stages/settings/rules.h"

static int asks(const Settings *s, SettingId id)
{
    return *setting_text(s, id) && !setting_is(s, id, "0");
}

void rules_set_experiments(Rules *r)
{
    const Settings *s = r->settings;
    const int teaches = !setting_is(s, SETTING_STAGE1, "0"),
              wide = teaches && *setting_text(s, SETTING_WIDE),
              wide_ask = asks(s, SETTING_SELFSUP_WIDE_ASK) || asks(s, SETTING_WIDE_ASK),
              withheld = teaches && setting_is(s, SETTING_WITHHOLD, "1");
    rules_set(r, "wide", wide ? "$(WIDE)" : "");
    rules_set(r, "wide_ask", wide && wide_ask ? "yes" : "");
    rules_set(r, "counted_tasks", wide && wide_ask ? "{run}/cfg/tasks" : "");
    rules_set(r, "pool", wide && wide_ask ? "{run}/taught/pool.qa" : "{run}/collect/pool.qa");
    rules_set(r, "full_pool", withheld ? "{run}/full/pool.qa" : "");
    rules_set(r, "gap_pools", withheld ? "{run}/collect/pool.qa {full_pool}" : "");
}

void rules_ask_wide(Rules *r, SettingId id)
{
    rules_set(r, "wide_flags",
              *rules_word(r, "wide") && asks(r->settings, id)
                  ? "--wide $(call quoted,$(WIDE)) --wide-ask $({SET}WIDE_ASK) "
                    "--wide-copies $(WIDE_COPIES)"
                  : "");
}
