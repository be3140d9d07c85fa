/* Prints the table of settings as README.md has it. */
#include <jask.h>

#include <stdio.h>

int main(void)
{
    puts("| variable | field of `jask_options` | type | default | meaning |\n"
         "|---|---|---|---|---|");
    for (int i = 0; i < jask_setting_count(); i++) {
        const jask_setting *s = jask_setting_get(i);
        const char *unit = s->type[0] == 's' ? "_bytes" : "";
        const char *mark = s->default_value[0] ? "`" : "";
        printf("| `%s` | `%s%s` | %s | %s%s%s | %s |\n", s->environment, s->name, unit, s->type,
               mark, s->default_value, mark, s->help);
    }
    return 0;
}
