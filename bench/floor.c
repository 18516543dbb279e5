/* What streams on loopback can do at all: nothing but send and receive calls, no protocol, no report.
 *
 *   cc -O2 -o floor bench/floor.c && ./floor [-c COPIES] [-p PAUSE_US] [-r READ_KIB] [-P STREAMS] [-t SECONDS]
 *       [-s SEND_OFFSET] [-d RECEIVE_OFFSET] [-C CPU,CPU] [-u DATAGRAM_BYTES] [-T] [-H] [-Z]
 *
 * One thread sends, on the first CPU, COPIES blocks of 128 KiB per call; another process receives, on the second one, up
 * to READ_KIB per call, and sleeps PAUSE_US microseconds when it has emptied the queues; 0 waits for every segment. The
 * buffers begin SEND_OFFSET and RECEIVE_OFFSET bytes after a page boundary: on some CPUs `rep movs` is several times
 * slower when the destination lies slightly ahead of the source modulo the page size. With -u it is UDP instead: as many
 * datagrams per call as fit into 64 KiB, segmented and coalesced by the kernel (UDP_SEGMENT and UDP_GRO, udp(7)). With -T
 * the receiver discards what arrives without a copy (MSG_TRUNC, tcp(7)). With -H the block lies in a huge page (MAP_HUGETLB,
 * of which vm.nr_hugepages has to allow some), with -Z the sender asks the kernel not to copy it (MSG_ZEROCOPY). Prints
 * Gbit/s and CPU seconds per GiB of both ends. A tool that moves the same bytes with the same calls cannot be faster.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 128 * 1024, COPIES_MAX = 64, STREAMS_MAX = 1024, PAGE = 4096, HUGE_PAGE = 2 << 20, SEGMENTS_MAX = 64, PAYLOAD_MAX = 65507 };

static int copies = 8, streams = 1, cpus[2] = { 0, 1 };
static long pause_us, seconds_to_run = 2;
static size_t room = 256 * 1024, send_offset, receive_offset;
static int datagram_bytes, receive_flags, send_flags, map_flags;
static int sockets[STREAMS_MAX];

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
	if (cpu >= 0 && sched_setaffinity(0, sizeof set, &set))
		warn("CPU %d", cpu);
}

/* Memory that begins `offset` bytes after a page boundary. */
static char *allocate(size_t size, size_t offset)
{
	char *pages = aligned_alloc(PAGE, (size + offset + PAGE - 1) / PAGE * PAGE);
	if (!pages)
		err(1, "allocate");
	memset(pages + offset, 7, size);
	return pages + offset;
}

static void pause_between_reads(void)
{
	struct timespec pause = { 0, pause_us * 1000 };
	if (pause_us)
		nanosleep(&pause, NULL);
}

/* The block that is sent, over and over. */
static char *block_to_send(void)
{
	char *block;

	if (!map_flags)
		return allocate(BLOCK, send_offset);
	block = mmap(NULL, HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | map_flags, -1, 0);
	if (block == MAP_FAILED)
		err(1, "huge page");
	memset(block, 7, HUGE_PAGE);
	return block + send_offset;
}

/* Takes the notices about blocks that the kernel needs no longer; without that it refuses further ones. */
static void take_notices(int fd)
{
	char control[128];
	struct msghdr notice = { .msg_control = control, .msg_controllen = sizeof control };

	while (send_flags && recvmsg(fd, &notice, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0)
		notice.msg_controllen = sizeof control;
}

/* One stream: a call waits by itself unless there are pauses. */
static void receive_one(int fd, char *buffer)
{
	for (;;) {
		ssize_t n = recv(fd, buffer, room, receive_flags | (pause_us ? MSG_DONTWAIT : 0));
		if (n == 0)
			return;
		if (n < (ssize_t)room)
			pause_between_reads();
	}
}

static void receive_many(int listener, char *buffer)
{
	struct epoll_event events[64], event = { .events = EPOLLIN };
	int epoll = epoll_create1(0), open = streams;

	for (int i = 0; i < streams; i++) {
		event.data.fd = accept(listener, NULL, NULL);
		epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
	}
	while (open > 0) {
		int ready = epoll_wait(epoll, events, 64, -1);
		for (int i = 0; i < ready; i++)
			if (recv(events[i].data.fd, buffer, room, receive_flags | MSG_DONTWAIT) == 0) {
				close(events[i].data.fd);
				open--;
			}
		pause_between_reads();
	}
}

/* Adds up datagrams in `total` until something shorter than a datagram marks the end. */
static void receive_datagrams(int fd, volatile double *total)
{
	char *buffer;

	pin(cpus[1]);
	prctl(PR_SET_TIMERSLACK, 1);
	buffer = allocate(65536, receive_offset);
	for (;;) {
		ssize_t n = recv(fd, buffer, 65536, pause_us ? MSG_DONTWAIT : 0);
		if (n >= 0 && n < datagram_bytes)
			exit(0);
		if (n > 0)
			*total += n;
		else
			pause_between_reads();
	}
}

static void send_datagrams(int fd, double until)
{
	int segments = PAYLOAD_MAX / datagram_bytes < SEGMENTS_MAX ? PAYLOAD_MAX / datagram_bytes : SEGMENTS_MAX;
	size_t length = (size_t)segments * datagram_bytes;
	char *buffer = allocate(length, send_offset);

	while (now() < until)
		if (send(fd, buffer, length, 0) < 0)
			err(1, "send");
}

/* One flow of datagrams; returns the bytes that arrived. */
static double transfer_datagrams(int seconds)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof address;
	int receiver = socket(AF_INET, SOCK_DGRAM, 0), sender = socket(AF_INET, SOCK_DGRAM, 0), on = 1;
	volatile double *total = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (bind(receiver, (void *)&address, sizeof address) || getsockname(receiver, (void *)&address, &length) ||
	    connect(sender, (void *)&address, sizeof address) || total == MAP_FAILED ||
	    setsockopt(receiver, IPPROTO_UDP, UDP_GRO, &on, sizeof on) ||
	    setsockopt(sender, IPPROTO_UDP, UDP_SEGMENT, &datagram_bytes, sizeof datagram_bytes))
		err(1, "UDP");
	if (fork() == 0)
		receive_datagrams(receiver, total);
	pin(cpus[0]);
	send_datagrams(sender, now() + seconds);
	/* The queue may be full; what follows the end is of no interest. */
	for (int i = 0; i < 10; i++) {
		usleep(10000);
		send(sender, "", 0, 0);
	}
	wait(NULL);
	return *total;
}

static void print(double total, double seconds)
{
	printf("%.1f Gbit/s, %.3f CPU s/GiB\n", total * 8 / seconds / 1e9,
	       (cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN)) / (total / (1 << 30)));
}

static void receive(int listener)
{
	char *buffer;

	pin(cpus[1]);
	prctl(PR_SET_TIMERSLACK, 1);
	buffer = allocate(room, receive_offset);
	if (streams == 1)
		receive_one(accept(listener, NULL, NULL), buffer);
	else
		receive_many(listener, buffer);
	exit(0);
}

/* Sends on every stream in turn until the time has passed; returns the bytes. */
static double transmit(double until)
{
	char *block = block_to_send();
	struct iovec vector[COPIES_MAX];
	struct msghdr message = { .msg_iov = vector, .msg_iovlen = copies };
	struct pollfd waiting[STREAMS_MAX];
	double total = 0;

	for (int i = 0; i < copies; i++)
		vector[i] = (struct iovec){ block, BLOCK };
	for (int i = 0; i < streams; i++)
		waiting[i] = (struct pollfd){ sockets[i], POLLOUT, 0 };
	while (now() < until) {
		int blocked = 0;
		for (int i = 0; i < streams; i++) {
			ssize_t n = sendmsg(sockets[i], &message, send_flags | (streams > 1 ? MSG_DONTWAIT : 0));
			take_notices(sockets[i]);
			if (n < 0 && errno != EAGAIN && errno != ENOBUFS)
				err(1, "send");
			blocked += n < 0;
			total += n < 0 ? 0 : n;
		}
		if (blocked == streams)
			poll(waiting, streams, 100);
	}
	return total;
}

static void read_options(int argc, char **argv)
{
	for (int option; (option = getopt(argc, argv, "c:p:r:P:t:s:d:C:u:THZ")) != -1;)
		switch (option) {
		case 'c': copies = atoi(optarg); break;
		case 'p': pause_us = atol(optarg); break;
		case 'r': room = atol(optarg) * 1024; break;
		case 'P': streams = atoi(optarg); break;
		case 't': seconds_to_run = atol(optarg); break;
		case 's': send_offset = atol(optarg); break;
		case 'd': receive_offset = atol(optarg); break;
		case 'u': datagram_bytes = atoi(optarg); break;
		case 'T': receive_flags = MSG_TRUNC; break;
		case 'H': map_flags = MAP_HUGETLB; break;
		case 'Z': send_flags = MSG_ZEROCOPY; break;
		case 'C':
			if (sscanf(optarg, "%d,%d", &cpus[0], &cpus[1]) != 2)
				errx(1, "-C takes two CPUs, such as 0,1; -1 is any");
			break;
		default: exit(1);
		}
	if (copies < 1 || copies > COPIES_MAX || streams < 1 || streams > STREAMS_MAX || pause_us < 0 || pause_us > 999999 ||
	    room == 0 || datagram_bytes < 0 || datagram_bytes > PAYLOAD_MAX || seconds_to_run < 1 || send_offset >= PAGE || receive_offset >= PAGE)
		errx(1, "COPIES is 1 to %d, STREAMS 1 to %d, offsets are below %d", COPIES_MAX, STREAMS_MAX, PAGE);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	double total, begin, seconds;

	read_options(argc, argv);
	if (datagram_bytes) {
		print(transfer_datagrams(seconds_to_run), seconds_to_run);
		return 0;
	}
	if (bind(listener, (void *)&address, sizeof address) || listen(listener, STREAMS_MAX))
		err(1, "listen");
	getsockname(listener, (void *)&address, &length);
	if (fork() == 0)
		receive(listener);
	pin(cpus[0]);
	for (int i = 0; i < streams; i++) {
		sockets[i] = socket(AF_INET, SOCK_STREAM, 0);
		setsockopt(sockets[i], IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
		setsockopt(sockets[i], SOL_SOCKET, SO_ZEROCOPY, &(int){ send_flags != 0 }, sizeof(int));
		if (connect(sockets[i], (void *)&address, sizeof address))
			err(1, "connect");
	}
	begin = now();
	total = transmit(begin + seconds_to_run);
	seconds = now() - begin;
	for (int i = 0; i < streams; i++)
		close(sockets[i]);
	wait(NULL);
	print(total, seconds);
	return 0;
}
