/* What a process owes its surroundings: signals and standard descriptors. */
#ifndef JASK_TOOLS_CLI_SIGNALS_H
#define JASK_TOOLS_CLI_SIGNALS_H

/* Call first. SIGINT, SIGTERM and SIGHUP then ask the run to stop, unless they came ignored
 * (nohup); the second one ends the process at once. A closed pipe and the file size limit become
 * errors of write. A standard descriptor that came closed is made unusable, so that no file can
 * take its number and receive our messages. */
void cli_signals_init(void);

/* The signal that asked to stop; 0 while none did. */
int cli_stop_signal(void);

#endif
