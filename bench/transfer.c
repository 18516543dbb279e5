/* What it takes a cache line to get from one CPU to another.
 *
 *   cc -O2 -pthread -o transfer bench/transfer.c && ./transfer CPU,CPU
 *
 * Two threads, one on each CPU, increment a counter in turn for 20 ms. Prints the nanoseconds of one increment. The CPUs of a
 * guest may share an L3 cache in one minute and none in the next, as its host places them, and copies between them are
 * as fast as that.
 */
#define _GNU_SOURCE
#include <err.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { DURATION_NS = 20 * 1000 * 1000, BATCH = 100 };

/* Alone in its line and in the one that is fetched with it. */
static _Alignas(128) atomic_long counter;
static _Alignas(128) atomic_bool is_over;
static int cpus[2];

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "CPU %d", cpu);
}

static long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

/* Makes odd values even. */
static void *answer(void *unused)
{
	pin(cpus[1]);
	while (!is_over)
		if (counter % 2)
			counter++;
	return unused;
}

int main(int count, char **arguments)
{
	pthread_t other;
	long begin_ns, end_ns;

	if (count != 2 || sscanf(arguments[1], "%d,%d", &cpus[0], &cpus[1]) != 2 || cpus[0] == cpus[1])
		errx(1, "usage: transfer CPU,CPU");
	pin(cpus[0]);
	if (pthread_create(&other, NULL, answer, NULL))
		errx(1, "no thread");
	begin_ns = now_ns();
	do {
		for (int i = 0; i < BATCH; i++) {
			counter++;
			while (counter % 2)
				;
		}
		end_ns = now_ns();
	} while (end_ns - begin_ns < DURATION_NS);
	printf("%ld\n", (end_ns - begin_ns) / counter);
	is_over = 1;
	return pthread_join(other, NULL);
}
