/* liblinerate: network throughput tests with the options and reports of iperf3.
 *
 * A test is an object with options. It is set up, run, and freed; it may run again. No function ends the process, installs a
 * handler of a signal, or leaves a thread behind. Functions take a null pointer for a test and then do nothing or fail.
 * Strings are UTF-8 and end in a NUL.
 */

#ifndef LINERATE_H
#define LINERATE_H

/**
 * The test has ended by itself.
 */
#define LINERATE_DONE 0

/**
 * linerate_stop() ended the test.
 */
#define LINERATE_STOPPED 1

/**
 * The test has failed, or an argument was not accepted; linerate_error() has the reason.
 */
#define LINERATE_FAILED -1

/**
 * A test: options, and the result of its last run. Several threads may use it.
 */
typedef struct linerate_test linerate_test;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * A test without options; null when there is no memory.
 */
struct linerate_test *linerate_new(void);

/**
 * Frees a test, which must not run.
 */
void linerate_free(struct linerate_test *test);

/**
 * Adds an option: a long name of `linerate iperf3` without the dashes, and its value, or null for an option without one.
 * `client` with the name of a host makes the test a client, `server` makes it a server.
 *
 * Options act in the order in which they are added; linerate_run() checks them. Options about the output have no effect.
 * Returns LINERATE_DONE, or LINERATE_FAILED for a name that is null or empty.
 */
int linerate_set(const struct linerate_test *test,
                 const char * option,
                 const char * value);

/**
 * Registers the function that receives each event of the test as a JSON object with the members `event` and `data`, and the
 * pointer it is called with; null for no function. Events are those of `--json-stream`: `start`, `interval`, `end`, `error`;
 * and `listening` with the address of a server, and `warning`.
 *
 * linerate_run() calls the function in another thread, one event at a time. The function must not free the test.
 */
void linerate_on_event(const struct linerate_test *test,
                       void (*function)(const char *event, void *user),
                       void *user);

/**
 * Runs the test and waits for its end: a client for one test, a server until linerate_stop() or as its options state.
 * Returns LINERATE_DONE, LINERATE_STOPPED or LINERATE_FAILED.
 */
int linerate_run(const struct linerate_test *test);

/**
 * Ends the test that linerate_run() runs in another thread; the report has what was measured until then. Without a test that
 * runs, the next one ends at once.
 */
void linerate_stop(const struct linerate_test *test);

/**
 * The report of the last test as a JSON document in the form of iperf3; null before there is one. The string is valid until
 * the test runs again or is freed.
 */
const char *linerate_result(const struct linerate_test *test);

/**
 * Why the last run did not end with LINERATE_DONE; null after one that did. The string is valid until the test runs again or is
 * freed.
 */
const char *linerate_error(const struct linerate_test *test);

/**
 * The number that iperf3 has for that reason (`i_errno` of its library), 0 for none.
 */
int linerate_error_number(const struct linerate_test *test);

/**
 * The version of the library; a string that is always valid.
 */
const char *linerate_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LINERATE_H */
