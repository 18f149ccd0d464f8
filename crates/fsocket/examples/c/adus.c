/* Sends or receives application data units of ten 512-byte pieces over an fsocket, and says what it saw.
 *
 *   adus receive [ADDRESS] PORT    prints the port it took, then receives until the sender closes; on 127.0.0.1 if no address is given
 *   adus send ADDRESS PORT N       sends N units
 *
 * ADDRESS is of IPv4 or IPv6. Build: cc adus.c $(pkg-config --cflags --libs fairpace_fsocket) -o adus
 */
#include <arpa/inet.h>
#include <fairpace_fsocket.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 10, PIECE = 512 };

static int fail(const char *what)
{
    int error = errno;
    fprintf(stderr, "%s: %s (%s)\n", what, strerror(error), f_strerror());
    return 1;
}

/* Short periods, so that even a short run changes its transport. */
static int set_up(int fd)
{
    static const char *const options[][2] = {
        {"t_running", "200ms"}, {"t_tcp", "20ms"}, {"epsilon", "1Gbps"}, {"max_rate", "20Mbps"},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (f_option(fd, options[i][0], options[i][1]) < 0)
            return -1;
    return 0;
}

/* An address of either family. */
struct address {
    int v6;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

static int parse(const char *text, int port, struct address *to)
{
    memset(to, 0, sizeof *to);
    to->in.sin_family = AF_INET;
    to->in6.sin6_family = AF_INET6;
    to->in.sin_port = to->in6.sin6_port = htons((uint16_t)port);
    to->v6 = strchr(text, ':') != NULL;
    if (inet_pton(to->v6 ? AF_INET6 : AF_INET, text, to->v6 ? (void *)&to->in6.sin6_addr : (void *)&to->in.sin_addr) == 1)
        return 0;
    fprintf(stderr, "%s is not an IP address\n", text);
    return -1;
}

static int send_adus(const char *address, int port, unsigned adus)
{
    struct address remote;
    if (parse(address, port, &remote) < 0)
        return 2;
    int fd = remote.v6 ? f_socket6(NULL) : f_socket(NULL);
    if (fd < 0 || set_up(fd) < 0)
        return fail("f_socket");
    if ((remote.v6 ? f_dst6(fd, &remote.in6) : f_dst(fd, &remote.in)) < 0)
        return fail("f_dst");
    for (unsigned n = 0; n < adus; n++)
        for (int i = 0; i < PIECES; i++) {
            unsigned char piece[PIECE];
            memset(piece, (int)((n + (unsigned)i) & 0xff), sizeof piece);
            if (f_send(fd, piece, sizeof piece, i == PIECES - 1) != PIECE)
                return fail("f_send");
        }
    if (f_close(fd) < 0)
        return fail("f_close");
    printf("sent %u units\n", adus);
    return 0;
}

static int receive_adus(const char *address, int port)
{
    struct address local;
    if (parse(address, port, &local) < 0)
        return 2;
    int fd = local.v6 ? f_socket6(&local.in6) : f_socket(&local.in);
    if (fd < 0)
        return fail("f_socket");
    printf("port %d\n", ntohs(local.v6 ? local.in6.sin6_port : local.in.sin_port));
    fflush(stdout);
    unsigned adus = 0, wrong = 0;
    size_t in_adu = 0;
    for (;;) {
        unsigned char buffer[700];
        int end = 0;
        ssize_t got = f_recv_adu(fd, buffer, sizeof buffer, &end);
        if (got < 0)
            return fail("f_recv");
        if (got == 0)
            break;
        for (ssize_t i = 0; i < got; i++, in_adu++)
            if (buffer[i] != ((adus + in_adu / PIECE) & 0xff))
                wrong++;
        if (end) {
            if (in_adu != PIECES * PIECE)
                wrong++;
            in_adu = 0;
            adus++;
        }
    }
    if (f_close(fd) < 0)
        return fail("f_close");
    printf("received %u units, %u wrong\n", adus, wrong);
    return wrong > 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "receive") == 0)
        return receive_adus("127.0.0.1", atoi(argv[2]));
    if (argc == 4 && strcmp(argv[1], "receive") == 0)
        return receive_adus(argv[2], atoi(argv[3]));
    if (argc == 5 && strcmp(argv[1], "send") == 0)
        return send_adus(argv[2], atoi(argv[3]), (unsigned)atoi(argv[4]));
    fprintf(stderr, "usage: adus receive [ADDRESS] PORT | adus send ADDRESS PORT N\n");
    return 2;
}
