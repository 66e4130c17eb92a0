/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's first process, in pieces: main.c starts it, plan.c reads what is to be done, step.c does it,
 * hello.c, record.c, sink.c and report.c tell the host, next.c goes on to the next kernel, machine.c and http.c are
 * what all of them stand on.
 */
#ifndef KPERFLAB_AGENT_H
#define KPERFLAB_AGENT_H

#include <stddef.h>
#include <stdio.h>

#define CHUNK 32768	/* of one record; virtio_console cuts writes at 32 KiB */
#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

/* machine.c: seconds since boot, small files, and the end */
double now(void);
void nap(double seconds);
void power_off(void);
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
char *slurp(const char *path, char *text, size_t size);
void write_text(const char *path, const char *text);
const char *option(const char *name);

/* plan.c: strings and lists end with a zero; nothing of a plan is ever freed */
struct step {
	char *kind, *name, **argv, **send;
	double deadline_s;
};
int plan_step(FILE *plan, struct step *step);

/* tune.c */
void tune(FILE *hello);

/* step.c */
void steps_prepare(void);
int run_plan(void);

/* hello.c, record.c */
void send_hello(void);
void send_record(const char *kind, const char *name, const void *payload, size_t size);
void send_text(const char *kind, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
void send_file(const char *step, const char *path);
double next_beat(void);
void beat_if_due(void);

/* http.c: one lab, one request a connection; the status of its answer, 0 if there was none */
const char *http_lab(const char *url);
int http_post(const char *path, const char *data, size_t size);
int http_get(const char *path, int into);
int http_again(int status);

/* report.c */
int report_open(void);

/* next.c */
void next_boot(void);

/* sink.c: where records go; once held they wait for sink_close() */
void sink_open(void);
void sink_hold(void);
int sink_held(void);
void sink_write(const char *data, size_t size);
void sink_close(void);

#endif
