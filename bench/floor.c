/* What one TCP stream on loopback can do at all: nothing but send and receive calls, no protocol, no report.
 *
 *   cc -O2 -o floor bench/floor.c && ./floor [COPIES [NAP_US [READ_KIB [SEND_OFFSET [RECEIVE_OFFSET]]]]]
 *
 * The sender, on CPU 0, hands COPIES blocks of 128 KiB to the kernel per call. The receiver, on CPU 1, reads up to
 * READ_KIB per call and sleeps NAP_US microseconds when it has emptied the queue; 0 waits for every segment. The buffers
 * begin SEND_OFFSET and RECEIVE_OFFSET bytes behind a page boundary: on some CPUs `rep movs` is several times slower
 * when the destination lies slightly ahead of the source modulo the page size. Prints Gbit/s and CPU seconds per GiB of
 * both ends. A tool that moves the same bytes with the same calls cannot be faster.
 */
#define _GNU_SOURCE
#include <err.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 128 * 1024, COPIES_MAX = 64, PAGE = 4096, SECONDS = 2 };

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static double cpu_seconds(int who)
{
	struct rusage use;
	getrusage(who, &use);
	return use.ru_utime.tv_sec + use.ru_stime.tv_sec + (use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static void pin(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		warn("CPU %d", cpu);
}

/* Memory that begins `offset` bytes behind a page boundary. */
static char *allocate(size_t size, size_t offset)
{
	char *pages = aligned_alloc(PAGE, (size + offset + PAGE - 1) / PAGE * PAGE);
	if (!pages)
		err(1, "allocate");
	return pages + offset;
}

static void receive(int listener, size_t room, long nap_us, size_t offset)
{
	struct timespec nap = { 0, nap_us * 1000 };
	char *buffer = allocate(room, offset);
	int fd = accept(listener, NULL, NULL);

	pin(1);
	prctl(PR_SET_TIMERSLACK, 1);
	memset(buffer, 1, room);
	for (;;) {
		ssize_t n = recv(fd, buffer, room, nap_us ? MSG_DONTWAIT : 0);
		if (n == 0)
			exit(0);
		if (nap_us && n < (ssize_t)room)
			nanosleep(&nap, NULL);
	}
}

int main(int argc, char **argv)
{
	int copies = argc > 1 ? atoi(argv[1]) : 8;
	long nap_us = argc > 2 ? atol(argv[2]) : 30;
	size_t room = (argc > 3 ? atol(argv[3]) : 256) * 1024;
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof address;
	struct iovec vector[COPIES_MAX];
	struct msghdr message = { .msg_iov = vector, .msg_iovlen = copies };
	size_t send_offset = argc > 4 ? atol(argv[4]) : 0;
	size_t receive_offset = argc > 5 ? atol(argv[5]) : 0;
	char *block;
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd;
	double total = 0, begin, seconds;

	if (copies < 1 || copies > COPIES_MAX || nap_us < 0 || room == 0 || send_offset >= PAGE || receive_offset >= PAGE)
		errx(1, "COPIES is 1 to %d, NAP_US at least 0, READ_KIB at least 1, offsets below %d", COPIES_MAX, PAGE);
	block = allocate(BLOCK, send_offset);
	if (bind(listener, (void *)&address, sizeof address) || listen(listener, 1))
		err(1, "listen");
	getsockname(listener, (void *)&address, &length);
	if (fork() == 0)
		receive(listener, room, nap_us, receive_offset);
	pin(0);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
	if (connect(fd, (void *)&address, sizeof address))
		err(1, "connect");
	memset(block, 7, BLOCK);
	for (int i = 0; i < copies; i++)
		vector[i] = (struct iovec){ block, BLOCK };
	begin = now();
	while ((seconds = now() - begin) < SECONDS) {
		ssize_t n = sendmsg(fd, &message, 0);
		if (n < 0)
			err(1, "send");
		total += n;
	}
	close(fd);
	wait(NULL);
	printf("%.1f Gbit/s, %.3f CPU s/GiB\n", total * 8 / seconds / 1e9,
	       (cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN)) / (total / (1 << 30)));
	return 0;
}
