/*
 * TLS for connections to Redis, with OpenSSL, which is loaded at first use (os/late.h). Certificates are always
 * verified: against the system's authorities or those of ca=FILE, and for the host in the address.
 */
#define _GNU_SOURCE
#include "redis_line.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#ifdef TAMIS_HAVE_OPENSSL
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "os/late.h"

/* The functions of OpenSSL that are used. */
#define FUNCTIONS(X)                                       \
    X(client_method, TLS_client_method)                    \
    X(ctx_new, SSL_CTX_new)                                \
    X(ctx_free, SSL_CTX_free)                              \
    X(ctx_set_verify, SSL_CTX_set_verify)                  \
    X(ctx_ctrl, SSL_CTX_ctrl)                              \
    X(ctx_default_paths, SSL_CTX_set_default_verify_paths) \
    X(ctx_load_paths, SSL_CTX_load_verify_locations)       \
    X(ctx_use_cert, SSL_CTX_use_certificate_chain_file)    \
    X(ctx_use_key, SSL_CTX_use_PrivateKey_file)            \
    X(new, SSL_new)                                        \
    X(free, SSL_free)                                      \
    X(ctrl, SSL_ctrl)                                      \
    X(set_host, SSL_set1_host)                             \
    X(get_param, SSL_get0_param)                           \
    X(set_ip, X509_VERIFY_PARAM_set1_ip_asc)               \
    X(set_bio, SSL_set_bio)                                \
    X(connect, SSL_connect)                                \
    X(read, SSL_read)                                      \
    X(write, SSL_write)                                    \
    X(verify_result, SSL_get_verify_result)                \
    X(verify_text, X509_verify_cert_error_string)          \
    X(error, ERR_get_error)                                \
    X(error_text, ERR_reason_error_string)                 \
    X(error_clear, ERR_clear_error)                        \
    X(meth_new, BIO_meth_new)                              \
    X(meth_set_write, BIO_meth_set_write)                  \
    X(meth_set_read, BIO_meth_set_read)                    \
    X(meth_set_ctrl, BIO_meth_set_ctrl)                    \
    X(bio_new, BIO_new)                                    \
    X(bio_set_data, BIO_set_data)                          \
    X(bio_get_data, BIO_get_data)                          \
    X(bio_set_init, BIO_set_init)
LATE_TABLE(FUNCTIONS);
/* Like the sockets of OpenSSL, but without SIGPIPE if the peer has closed the connection. */
static BIO_METHOD *quiet;

struct tls {
    SSL_CTX *context;
    SSL *ssl;
    int fd;
};

static int quiet_write(BIO *bio, const char *data, int len)
{
    const struct tls *t = lib.bio_get_data(bio);
    ssize_t n;
    do /* OpenSSL takes an interrupted call for the end of the connection */
        n = send(t->fd, data, (size_t)len, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return (int)n;
}

static int quiet_read(BIO *bio, char *to, int room)
{
    const struct tls *t = lib.bio_get_data(bio);
    ssize_t n;
    do
        n = recv(t->fd, to, (size_t)room, 0);
    while (n < 0 && errno == EINTR);
    return (int)n;
}

static long quiet_ctrl(BIO *bio, int command, long number, void *pointer)
{
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static bool make_quiet(void)
{
    quiet = lib.meth_new(BIO_TYPE_SOURCE_SINK, "tamis");
    return quiet && lib.meth_set_write(quiet, quiet_write) &&
           lib.meth_set_read(quiet, quiet_read) && lib.meth_set_ctrl(quiet, quiet_ctrl);
}

/* The first error of OpenSSL, or that of the system. */
static const char *why(void)
{
    unsigned long error = lib.error();
    const char *text = error ? lib.error_text(error) : NULL;
    return text              ? text
           : errno == EAGAIN ? "no answer in time"
           : errno           ? strerror(errno)
                             : "it was closed";
}

static bool load_files(struct tls *t, const struct redis_address *a, char error[160])
{
    const char *wrong = NULL;
    if (a->ca ? lib.ctx_load_paths(t->context, a->ca, NULL) != 1
              : lib.ctx_default_paths(t->context) != 1)
        wrong = a->ca ? a->ca : "the system's authorities";
    else if (a->cert && lib.ctx_use_cert(t->context, a->cert) != 1)
        wrong = a->cert;
    else if (a->key && lib.ctx_use_key(t->context, a->key, SSL_FILETYPE_PEM) != 1)
        wrong = a->key;
    if (wrong)
        snprintf(error, 160, "%.80s: %.70s", wrong, why());
    return !wrong;
}

static bool shake_hands(struct tls *t, const char *host, char error[160])
{
    bool named = lib.set_ip(lib.get_param(t->ssl), host) == 1 ||
                 (lib.set_host(t->ssl, host) == 1 &&
                  lib.ctrl(t->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                           (void *)(uintptr_t)host) == 1);
    errno = 0;
    if (named && lib.connect(t->ssl) == 1)
        return true;
    long verified = lib.verify_result(t->ssl);
    snprintf(error, 160, "TLS: %.140s", verified != X509_V_OK ? lib.verify_text(verified) : why());
    return false;
}

static bool begin(struct tls *t, const struct redis_address *a, const char *host, char error[160])
{
    BIO *bio = NULL;
    lib.error_clear();
    snprintf(error, 160, "out of memory");
    if (!(t->context = lib.ctx_new(lib.client_method())))
        return false;
    lib.ctx_set_verify(t->context, SSL_VERIFY_PEER, NULL);
    lib.ctx_ctrl(t->context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
    if (!load_files(t, a, error))
        return false;
    snprintf(error, 160, "out of memory");
    if (!(t->ssl = lib.new(t->context)) || !(bio = lib.bio_new(quiet)))
        return false;
    lib.bio_set_data(bio, t);
    lib.bio_set_init(bio, 1);
    lib.set_bio(t->ssl, bio, bio); /* owns it */
    return shake_hands(t, host, error);
}

struct tls *tls_open(int fd, const struct redis_address *a, const char *host, char error[160])
{
    char missing[256] = "out of memory";
    struct tls *t = LATE_LOAD("libssl.so.3", make_quiet, missing) ? calloc(1, sizeof *t) : NULL;
    if (!t)
        return snprintf(error, 160, "%.150s", missing), NULL;
    t->fd = fd;
    if (begin(t, a, host, error))
        return t;
    tls_close(t);
    return NULL;
}

ssize_t tls_receive(struct tls *t, void *to, size_t room)
{
    errno = 0;
    int n = lib.read(t->ssl, to, room < INT_MAX ? (int)room : INT_MAX);
    return n > 0 ? n : errno ? -1 : 0;
}

ssize_t tls_send(struct tls *t, const void *data, size_t len)
{
    errno = 0;
    int n = lib.write(t->ssl, data, len < INT_MAX ? (int)len : INT_MAX);
    errno = n > 0 || errno ? errno : EPIPE;
    return n > 0 ? n : -1;
}

void tls_close(struct tls *t)
{
    if (t && t->ssl)
        lib.free(t->ssl);
    if (t && t->context)
        lib.ctx_free(t->context);
    free(t);
}

#else

struct tls *tls_open(int fd, const struct redis_address *a, const char *host, char error[160])
{
    (void)fd, (void)a, (void)host;
    snprintf(error, 160, "built without OpenSSL, which rediss:// needs");
    return NULL;
}

ssize_t tls_receive(struct tls *t, void *to, size_t room)
{
    (void)t, (void)to, (void)room;
    return -1;
}

ssize_t tls_send(struct tls *t, const void *data, size_t len)
{
    (void)t, (void)data, (void)len;
    return -1;
}

void tls_close(struct tls *t)
{
    (void)t;
}

#endif
