/* Loaded into a process whose name is BENCH_SLOW_PROCESS, it makes each fsync and fdatasync last BENCH_SLOW_MICROSECONDS
   longer, as on a disk that is slower; other processes that inherit it are left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct timespec delay;

__attribute__((constructor)) static void read_delay(void) {
  const char *process = getenv("BENCH_SLOW_PROCESS"), *microseconds = getenv("BENCH_SLOW_MICROSECONDS");
  if (!process || !microseconds || strcmp(program_invocation_short_name, process) != 0) return;
  delay.tv_sec = atol(microseconds) / 1000000;
  delay.tv_nsec = atol(microseconds) % 1000000 * 1000;
}

static int slowly(const char *name, int file) {
  int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  if (delay.tv_sec || delay.tv_nsec) nanosleep(&delay, NULL);
  return sync(file);
}

int fsync(int file) { return slowly("fsync", file); }
int fdatasync(int file) { return slowly("fdatasync", file); }
