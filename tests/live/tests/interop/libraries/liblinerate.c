/* Serves tests, runs one, prints events and results, and ends a test from another thread.
 *
 *   liblinerate pair PORT      server and client in this process
 *   liblinerate stop PORT      a client that is ended while it runs
 *   liblinerate fail PORT      what fails, and why
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "linerate.h"

/* What a function of events counts. */
struct seen {
    int events, intervals, ends;
    sem_t listening;
    linerate_test *stopped_at_first_interval;
};

static void on_event(const char *event, void *user)
{
    struct seen *seen = user;

    seen->events++;
    if (strstr(event, "{\"event\":\"listening\""))
        sem_post(&seen->listening);
    if (strstr(event, "{\"event\":\"interval\"")) {
        seen->intervals++;
        if (seen->stopped_at_first_interval)
            linerate_stop(seen->stopped_at_first_interval);
    }
    if (strstr(event, "{\"event\":\"end\""))
        seen->ends++;
}

static void need(int is_true, const char *what)
{
    if (!is_true) {
        fprintf(stderr, "not so: %s\n", what);
        exit(1);
    }
}

static linerate_test *server(const char *port, struct seen *seen)
{
    linerate_test *test = linerate_new();

    need(test != NULL, "a test");
    need(linerate_set(test, "server", NULL) == LINERATE_DONE, "server");
    linerate_set(test, "bind", "127.0.0.1");
    linerate_set(test, "port", port);
    linerate_on_event(test, on_event, seen);
    return test;
}

static linerate_test *client(const char *port)
{
    linerate_test *test = linerate_new();

    linerate_set(test, "client", "127.0.0.1");
    linerate_set(test, "port", port);
    return test;
}

static void *run(void *test)
{
    return (void *)(long)linerate_run(test);
}

static pthread_t start(linerate_test *test, struct seen *seen)
{
    pthread_t thread;
    struct timespec deadline;
    int result;

    need(sem_init(&seen->listening, 0, 0) == 0, "a semaphore");
    need(pthread_create(&thread, NULL, run, test) == 0, "a thread");
    need(clock_gettime(CLOCK_REALTIME, &deadline) == 0, "a time");
    deadline.tv_sec += 20;
    do
        result = sem_timedwait(&seen->listening, &deadline);
    while (result != 0 && errno == EINTR);
    need(result == 0, "the server listens within 20 s");
    return thread;
}

static void print(linerate_test *test, struct seen *seen, int result)
{
    const char *text = linerate_result(test), *error = linerate_error(test);

    printf("%d %d %d %d %d\n", result, linerate_error_number(test), seen->events, seen->intervals, seen->ends);
    printf("%s\n", error ? error : "");
    printf("%s\n", text ? text : "null");
}

int main(int argc, char **argv)
{
    struct seen served = { .events = 0 }, seen = { .events = 0 };
    linerate_test *of_server, *test;
    pthread_t thread;
    void *result;

    if (argc != 3)
        return 2;
    test = client(argv[2]);
    linerate_on_event(test, on_event, &seen);
    if (strcmp(argv[1], "fail") == 0) {
        print(test, &seen, linerate_run(test));
        linerate_set(test, "parallel", "1000");
        result = (void *)(long)linerate_run(test);
        printf("%d %s\n", (int)(long)result, linerate_error(test));
        need(linerate_set(test, NULL, NULL) == LINERATE_FAILED, "no name");
        need(linerate_run(NULL) == LINERATE_FAILED && linerate_result(NULL) == NULL, "no test");
        linerate_free(NULL);
        linerate_free(test);
        return 0;
    }
    of_server = server(argv[2], &served);
    thread = start(of_server, &served);
    if (strcmp(argv[1], "stop") == 0) {
        seen.stopped_at_first_interval = test;
        linerate_set(test, "time", "60");
        linerate_set(test, "interval", "0.1");
    } else {
        linerate_set(test, "time", "1");
        linerate_set(test, "interval", "0.5");
        linerate_set(test, "reverse", NULL);
    }
    print(test, &seen, linerate_run(test));
    linerate_stop(of_server);
    need(pthread_join(thread, &result) == 0, "its end");
    print(of_server, &served, (int)(long)result);
    linerate_free(test);
    linerate_free(of_server);
    return 0;
}
