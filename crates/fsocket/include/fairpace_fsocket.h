/* fairpace_fsocket.h: a socket whose flow goes by TCP now and by UDP then, at the rate that TCP found fair.
 *
 * The calls are those of Tobe, Tamura, Nishino, Tokuda, "TCP-Rate-Probing-Based Adaptation for Continuous Media
 * Communications", section 5. Link with -lfairpace_fsocket. Rules, parameters and measured numbers:
 * docs/net/flow-socket.md.
 *
 * All calls return -1 and set errno if they fail; f_strerror says more. A socket is one thread's at a time (another thread's
 * call waits until the first has returned, but for f_close: with it a call that waits in another thread fails with ECANCELED,
 * and a unit that it was to send does not leave); different sockets may be used by different threads. The library's own threads
 * take no signals, and a signal does not end a call that waits. A socket whose f_dst or first f_recv has failed can only be
 * closed.
 */
#ifndef FAIRPACE_FSOCKET_H
#define FAIRPACE_FSOCKET_H

#include <netinet/in.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Opens a socket, UDP and TCP, on this address; port 0 takes one that is free for both, and NULL any address and port.
 * The address that was taken is written to *local_addr. Returns a descriptor for the calls below and for poll and
 * select, where it is readable when f_recv would not wait; read, write and close are not for it.
 * errno: EADDRINUSE, EADDRNOTAVAIL, EACCES, EAFNOSUPPORT, EMFILE. */
int f_socket(struct sockaddr_in *local_addr);

/* As f_socket, over IPv6 alone. */
int f_socket6(struct sockaddr_in6 *local_addr);

/* Sets a parameter, before f_dst or the first f_recv: one of tpba's ("t_running", "10s"; `fairpace list tpba` shows
 * all), "max_rate", "min_rate", "packet_size", "algorithm" (of TCP), "linger" (see f_close), or "directions": with "2" f_dst makes a
 * socket that sends and receives. Each direction is a flow of its own, so that both ends set this, name each other's address by f_dst,
 * and do so within 7 s of each other; f_send and f_recv may then be called by two threads at the same time.
 * errno: EINVAL, EFAULT (a null pointer), EISCONN, EBADF. */
int f_option(int fsock_fd, const char *name, const char *value);

/* Registers the remote site and makes this socket the sender. Returns when the other side has answered by UDP and TCP.
 * errno: ETIMEDOUT (no answer within 7 s), ECONNREFUSED (it has no TCP half), EHOSTUNREACH, EISCONN, EBADF. */
int f_dst(int fsock_fd, const struct sockaddr_in *remote_addr);
int f_dst6(int fsock_fd, const struct sockaddr_in6 *remote_addr);

/* Sends len bytes: part of an application data unit, or its last part if adu_ind is not 0. A unit begins to leave when its
 * end was given. Waits while the queue of 64 KiB is full. Returns len.
 * errno: EMSGSIZE (the unit is longer than the queue: all that was given of it is dropped), ENOTCONN, EFAULT, EPIPE or what
 * ended the flow: ECONNRESET (the peer is gone), ECONNABORTED (the circuit breaker), EPROTO (the peer lies). */
ssize_t f_send(int fsock_fd, const void *buf, size_t len, int adu_ind);

/* Receives at most len bytes of one application data unit; the first call waits for a sender. Returns how many, 0 when the
 * sender has closed. f_recv_adu tells the end of a unit too: *adu_ind is 1 with its last byte, else 0.
 * errno: EISCONN (this socket sends), ECONNRESET (the sender is gone), EINVAL (no buffer, or len 0), EBADF. */
ssize_t f_recv(int fsock_fd, void *buf, size_t len);
ssize_t f_recv_adu(int fsock_fd, void *buf, size_t len, int *adu_ind);

/* Ends the flow and frees the descriptor: a sender when all has left and TCP has delivered its part, at most 10 s later
 * (f_option "linger"). Part of a unit whose end was not given never leaves.
 * errno: what ended the flow before, ETIMEDOUT (something was left behind), EBADF; but for EBADF the descriptor is free all
 * the same. */
int f_close(int fsock_fd);

/* What the last failed call of this thread found, and what to do about it. Valid until the thread's next call. */
const char *f_strerror(void);

#ifdef __cplusplus
}
#endif

#endif
