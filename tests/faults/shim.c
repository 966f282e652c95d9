/* What a test does to one program's machine: sets its wall clock, lets its resolver hang. Preloaded (LD_PRELOAD).
 *
 * OOMWATCH_SHIM names a file of two words, read again at each call: by how many seconds the wall clock is ahead, and 1
 * where names are not to be looked up any more. agents.py writes it. A file beside it, with "-hung" at its end, says that
 * somebody is looking one up in vain.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void orders(double *ahead, int *hangs) {
  const char *path = getenv("OOMWATCH_SHIM");
  FILE *file = path ? fopen(path, "r") : NULL;
  *ahead = 0;
  *hangs = 0;
  if (!file) return;
  if (fscanf(file, "%lf %d", ahead, hangs) < 1) *ahead = 0;
  fclose(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  double ahead;
  int hangs, code;
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  code = real(clock, now);
  if (clock != CLOCK_REALTIME || code) return code;
  orders(&ahead, &hangs);
  now->tv_sec += (time_t)ahead;
  return 0;
}

static void tell_of_hanging(void) {
  const char *path = getenv("OOMWATCH_SHIM");
  char told[4096];
  FILE *file;
  if (!path || snprintf(told, sizeof told, "%s-hung", path) >= (int)sizeof told) return;
  file = fopen(told, "w");
  if (file) fclose(file);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
  static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
  double ahead;
  int hangs;
  if (!real) real = dlsym(RTLD_NEXT, "getaddrinfo");
  orders(&ahead, &hangs);
  if (hangs) tell_of_hanging();
  for (; hangs; orders(&ahead, &hangs)) usleep(10000);
  return real(node, service, hints, found);
}
