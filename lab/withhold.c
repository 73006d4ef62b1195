/* Which designs are withheld, and of which tasks. */
#include "lab/withhold.h"

#include <string.h>

#include "base/random.h"

static const char designs[] = "vec=2 vec=4 vec=8 pass=1 store=no";

int withhold_task(const Task *task)
{
    return !task->heldout && random_hash(task->name, strlen(task->name)) % 2;
}

int withhold_write(const TaskSet *tasks, Buffer *out)
{
    int n = 0;
    for (int i = 0; i < tasks->n; i++) {
        if (!withhold_task(tasks->tasks[i])) continue;
        buffer_printf(out, "%s %s\n", tasks->tasks[i]->name, designs);
        n++;
    }
    return n;
}

int withhold_names(const TaskSet *tasks, Buffer *out)
{
    int n = 0;
    for (int i = 0; i < tasks->n; i++)
        if (withhold_task(tasks->tasks[i]))
            buffer_printf(out, "%s%s", n++ ? "," : "", tasks->tasks[i]->name);
    return n;
}
