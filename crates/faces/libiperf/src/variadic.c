/* Functions with a variable number of arguments. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct iperf_test;

static void report_error(const char *format, va_list arguments)
{
    fflush(stdout);
    fputs("iperf3: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

void linerate_iperf_err(struct iperf_test *test, const char *format, ...)
{
    va_list arguments;

    (void)test;
    va_start(arguments, format);
    report_error(format, arguments);
    va_end(arguments);
}

/* Ends the process because that is what its caller requests; nothing in this library calls it. */
void linerate_iperf_errexit(struct iperf_test *test, const char *format, ...)
{
    va_list arguments;

    (void)test;
    va_start(arguments, format);
    report_error(format, arguments);
    va_end(arguments);
    exit(1);
}

int linerate_iperf_printf(struct iperf_test *test, const char *format, ...)
{
    va_list arguments;
    int written;

    (void)test;
    va_start(arguments, format);
    written = vprintf(format, arguments);
    va_end(arguments);
    return written;
}

/* As above; handlers of signals call it. */
void linerate_iperf_got_sigend(struct iperf_test *test)
{
    linerate_iperf_errexit(test, "interrupt - the process received a signal");
}
