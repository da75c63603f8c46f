/* Loaded before libc: the time of day, moved by as many seconds as the file OFFSET_FILE says. Nothing else is touched. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static const volatile long *offset(void) {
  static const volatile long *shared;
  static const long none;
  if (shared == NULL) {
    const char *file = getenv("OFFSET_FILE");
    int fd = file == NULL ? -1 : open(file, O_RDONLY);
    void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, fd, 0);
    shared = at == MAP_FAILED ? &none : at;
  }
  return shared;
}

int clock_gettime(clockid_t id, struct timespec *told) {
  int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(id, told);
  if (failed == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) told->tv_sec += *offset();
  return failed;
}

int gettimeofday(struct timeval *restrict told, void *restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  told->tv_sec = now.tv_sec;
  told->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *told) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (told != NULL) *told = now.tv_sec;
  return now.tv_sec;
}
