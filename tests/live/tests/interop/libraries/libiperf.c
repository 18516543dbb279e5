/* Runs one thing over libiperf.so.0 and prints its outcome on standard error; reports of tests are on standard output.
 *
 *   libiperf defaults
 *   libiperf arguments WORD...
 *   libiperf client PORT [SETTING=VALUE]...
 *   libiperf server PORT TESTS [SETTING=VALUE]...
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct iperf_test;
extern int i_errno;
extern char version[];

char *iperf_strerror(int number);
char *iperf_get_iperf_version(void);
struct iperf_test *iperf_new_test(void);
int iperf_defaults(struct iperf_test *test);
void iperf_free_test(struct iperf_test *test);
void iperf_reset_test(struct iperf_test *test);
int iperf_client_end(struct iperf_test *test);
int iperf_run_client(struct iperf_test *test);
int iperf_run_server(struct iperf_test *test);
int iperf_parse_arguments(struct iperf_test *test, int count, char **words);
char *iperf_get_test_json_output_string(struct iperf_test *test);
FILE *iperf_get_test_outfile(struct iperf_test *test);
void iperf_err(struct iperf_test *test, const char *format, ...);
int set_protocol(struct iperf_test *test, int protocol);
char iperf_get_test_role(struct iperf_test *test);
void iperf_set_test_role(struct iperf_test *test, char role);
char iperf_get_test_unit_format(struct iperf_test *test);
void iperf_set_test_server_hostname(struct iperf_test *test, const char *name);
char *iperf_get_test_server_hostname(struct iperf_test *test);
void iperf_set_test_bind_address(struct iperf_test *test, const char *address);
char *iperf_get_test_bind_address(struct iperf_test *test);
char *iperf_get_test_congestion_control(struct iperf_test *test);
void iperf_set_test_congestion_control(struct iperf_test *test, char *name);
void iperf_set_test_logfile(struct iperf_test *test, const char *path);
int iperf_open_logfile(struct iperf_test *test);
void iperf_set_test_reporter_interval(struct iperf_test *test, double seconds);
void iperf_set_test_stats_interval(struct iperf_test *test, double seconds);
double iperf_get_test_reporter_interval(struct iperf_test *test);
double iperf_get_test_stats_interval(struct iperf_test *test);

/* Settings that are one number. */
#define NUMBERS(number)                                                                                                      \
    number(int, verbose, iperf_get_verbose, iperf_set_verbose)                                                               \
    number(int, omit, iperf_get_test_omit, iperf_set_test_omit)                                                              \
    number(int, time, iperf_get_test_duration, iperf_set_test_duration)                                                      \
    number(int, reverse, iperf_get_test_reverse, iperf_set_test_reverse)                                                     \
    number(int, length, iperf_get_test_blksize, iperf_set_test_blksize)                                                      \
    number(uint64_t, rate, iperf_get_test_rate, iperf_set_test_rate)                                                         \
    number(uint64_t, bytes, iperf_get_test_bytes, iperf_set_test_bytes)                                                      \
    number(uint64_t, blocks, iperf_get_test_blocks, iperf_set_test_blocks)                                                   \
    number(int, burst, iperf_get_test_burst, iperf_set_test_burst)                                                           \
    number(int, window, iperf_get_test_socket_bufsize, iperf_set_test_socket_bufsize)                                        \
    number(int, pacing_timer, iperf_get_test_pacing_timer, iperf_set_test_pacing_timer)                                      \
    number(int, parallel, iperf_get_test_num_streams, iperf_set_test_num_streams)                                            \
    number(int, repeating, iperf_get_test_repeating_payload, iperf_set_test_repeating_payload)                               \
    number(int, timestamps, iperf_get_test_timestamps, iperf_set_test_timestamps)                                            \
    number(int, cport, iperf_get_test_bind_port, iperf_set_test_bind_port)                                                   \
    number(int, port, iperf_get_test_server_port, iperf_set_test_server_port)                                                \
    number(int, json, iperf_get_test_json_output, iperf_set_test_json_output)                                                \
    number(int, zerocopy, iperf_get_test_zerocopy, iperf_set_test_zerocopy)                                                  \
    number(int, get_server_output, iperf_get_test_get_server_output, iperf_set_test_get_server_output)                       \
    number(int, udp_64bit, iperf_get_test_udp_counters_64bit, iperf_set_test_udp_counters_64bit)                             \
    number(int, one_off, iperf_get_test_one_off, iperf_set_test_one_off)                                                     \
    number(int, tos, iperf_get_test_tos, iperf_set_test_tos)                                                                 \
    number(int, no_delay, iperf_get_test_no_delay, iperf_set_test_no_delay)                                                  \
    number(int, connect_timeout, iperf_get_test_connect_timeout, iperf_set_test_connect_timeout)                             \
    number(int, mss, iperf_get_test_mss, iperf_set_test_mss)                                                                 \
    number(int, protocol, iperf_get_test_protocol_id, set_protocol_of)

static void set_protocol_of(struct iperf_test *test, int protocol)
{
    int result = set_protocol(test, protocol);

    if (result != 0)
        fprintf(stderr, "set_protocol %d errno %d\n", result, i_errno);
}

#define DECLARE(type, name, getter, setter)                                                                                  \
    type getter(struct iperf_test *test);                                                                                    \
    void setter(struct iperf_test *test, type value);
#define set_protocol_of set_protocol_of_unused
NUMBERS(DECLARE)
#undef set_protocol_of

static void print_settings(struct iperf_test *test)
{
#define PRINT(type, name, getter, setter) fprintf(stderr, #name " %lld\n", (long long)getter(test));
    NUMBERS(PRINT)
    fprintf(stderr, "role %d unit %d\n", iperf_get_test_role(test), iperf_get_test_unit_format(test));
    fprintf(stderr, "intervals %g %g\n", iperf_get_test_reporter_interval(test), iperf_get_test_stats_interval(test));
#define STRING(text) ((text) ? (text) : "(null)")
    fprintf(stderr, "host %s\n", STRING(iperf_get_test_server_hostname(test)));
    fprintf(stderr, "bind %s\n", STRING(iperf_get_test_bind_address(test)));
    fprintf(stderr, "congestion %s\n", STRING(iperf_get_test_congestion_control(test)));
    fprintf(stderr, "report %s\n", STRING(iperf_get_test_json_output_string(test)));
}

static void set(struct iperf_test *test, char *word)
{
    char *value = strchr(word, '=');

    if (!value)
        exit(2);
    *value++ = '\0';
#define SET(type, name, getter, setter)                                                                                      \
    if (strcmp(word, #name) == 0) {                                                                                          \
        setter(test, (type)strtoll(value, NULL, 0));                                                                         \
        return;                                                                                                              \
    }
    NUMBERS(SET)
    if (strcmp(word, "host") == 0)
        iperf_set_test_server_hostname(test, value);
    else if (strcmp(word, "bind") == 0)
        iperf_set_test_bind_address(test, value);
    else if (strcmp(word, "congestion") == 0)
        iperf_set_test_congestion_control(test, value);
    else if (strcmp(word, "interval") == 0) {
        iperf_set_test_reporter_interval(test, atof(value));
        iperf_set_test_stats_interval(test, atof(value));
    } else if (strcmp(word, "logfile") == 0) {
        iperf_set_test_logfile(test, value);
        if (iperf_open_logfile(test) != 0)
            exit(3);
    } else
        exit(2);
}

static struct iperf_test *new_test(char role, const char *port, char **settings)
{
    struct iperf_test *test = iperf_new_test();

    if (!test || iperf_defaults(test) != 0)
        exit(3);
    iperf_set_test_role(test, role);
    iperf_set_test_server_hostname(test, "127.0.0.1");
    iperf_set_test_server_port(test, atoi(port));
    for (; *settings; settings++)
        set(test, *settings);
    return test;
}

static void print_outcome(int result)
{
    fprintf(stderr, "result %d errno %d\n", result, i_errno);
    if (i_errno != 0)
        fprintf(stderr, "text %s\n", iperf_strerror(i_errno));
}

/* Ends the client at the end of standard input. */
static void *end_with_input(void *test)
{
    while (getchar() != EOF)
        continue;
    iperf_client_end(test);
    return NULL;
}

int main(int argc, char **argv)
{
    struct iperf_test *test;
    pthread_t thread;
    int left, result;

    if (argc >= 2 && strcmp(argv[1], "defaults") == 0) {
        char *none[] = { NULL };

        test = new_test('c', "5201", none);
        print_settings(test);
        iperf_reset_test(test);
        fprintf(stderr, "\n");
        print_settings(test);
        set_protocol_of(test, 99);
        fprintf(stderr, "release %s\nversion %s\n", iperf_get_iperf_version(), version);
        iperf_free_test(test);
    } else if (argc >= 2 && strcmp(argv[1], "arguments") == 0) {
        test = iperf_new_test();
        iperf_defaults(test);
        print_outcome(iperf_parse_arguments(test, argc - 1, argv + 1));
        print_settings(test);
        iperf_free_test(test);
    } else if (argc >= 3 && (strcmp(argv[1], "client") == 0 || strcmp(argv[1], "ended") == 0)) {
        test = new_test('c', argv[2], argv + 3);
        printf("before\n");
        if (strcmp(argv[1], "ended") == 0 && pthread_create(&thread, NULL, end_with_input, test) != 0)
            exit(3);
        print_outcome(iperf_run_client(test));
        if (strcmp(argv[1], "ended") == 0)
            pthread_join(thread, NULL);
        fprintf(iperf_get_test_outfile(test), "\nafter\n");
        if (iperf_get_test_json_output_string(test))
            fprintf(stderr, "report %zu\n", strlen(iperf_get_test_json_output_string(test)));
        iperf_err(test, "%s %d %.1f", "values", 7, 2.5);
        iperf_free_test(test);
    } else if (argc >= 4 && strcmp(argv[1], "server") == 0) {
        test = new_test('s', argv[2], argv + 4);
        for (left = atoi(argv[3]); left > 0; left--) {
            result = iperf_run_server(test);
            print_outcome(result);
            iperf_reset_test(test);
        }
        iperf_free_test(test);
    } else {
        return 2;
    }
    return 0;
}
