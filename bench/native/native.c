/*
 * What the operating system's own primitives cost on this machine. Reads lines of "<name> <turns>", answers each with
 * nanoseconds a turn.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static long futex(_Atomic int *word, int op, int value) {
  return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static double mutex_pairs(long turns, int protocol, int robustness) {
  pthread_mutexattr_t attr;
  pthread_mutex_t mutex;
  pthread_mutexattr_init(&attr);
  pthread_mutexattr_setprotocol(&attr, protocol);
  pthread_mutexattr_setrobust(&attr, robustness);
  pthread_mutex_init(&mutex, &attr);
  double start = now();
  for (long i = 0; i < turns; i++) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
  }
  double took = now() - start;
  pthread_mutex_destroy(&mutex);
  return took / turns;
}

static double wait_mismatch(long turns) {
  _Atomic int word = 0;
  double start = now();
  for (long i = 0; i < turns; i++) futex(&word, FUTEX_WAIT, 1);
  return (now() - start) / turns;
}

static double wake_none(long turns) {
  _Atomic int word = 0;
  double start = now();
  for (long i = 0; i < turns; i++) futex(&word, FUTEX_WAKE, 1);
  return (now() - start) / turns;
}

struct pair {
  _Atomic int turn;
  long turns;
  int pinned;
};

static void pin(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(0, &set);
  sched_setaffinity(0, sizeof set, &set);
}

static void *yields(void *argument) {
  struct pair *pair = argument;
  if (pair->pinned) pin();
  for (long i = 0; i < pair->turns; i++) sched_yield();
  return NULL;
}

/* Two threads on one core that give way to each other. */
static double yield_pair(long turns) {
  struct pair pair = {.turns = turns / 2, .pinned = 1};
  pthread_t threads[2];
  double start = now();
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, yields, &pair);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  return (now() - start) / turns;
}

static void *answers(void *argument) {
  struct pair *pair = argument;
  for (long i = 0; i < pair->turns; i++) {
    while (atomic_load(&pair->turn) == 0) futex(&pair->turn, FUTEX_WAIT, 0);
    atomic_store(&pair->turn, 0);
    futex(&pair->turn, FUTEX_WAKE, 1);
  }
  return NULL;
}

/* A thread wakes another and sleeps until it is woken back: two wakeups a turn. */
static double ping_pong(long turns) {
  struct pair pair = {.turns = turns};
  pthread_t thread;
  pthread_create(&thread, NULL, answers, &pair);
  double start = now();
  for (long i = 0; i < turns; i++) {
    atomic_store(&pair.turn, 1);
    futex(&pair.turn, FUTEX_WAKE, 1);
    while (atomic_load(&pair.turn) == 1) futex(&pair.turn, FUTEX_WAIT, 1);
  }
  double took = now() - start;
  pthread_join(thread, NULL);
  return took / turns / 2;
}

static void *nothing(void *argument) {
  return argument;
}

static double spawn_join(long turns) {
  double start = now();
  for (long i = 0; i < turns; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, nothing, NULL);
    pthread_join(thread, NULL);
  }
  return (now() - start) / turns;
}

static double measure(const char *name, long turns) {
  if (!strcmp(name, "mutex")) return mutex_pairs(turns, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED);
  if (!strcmp(name, "mutex-pi")) return mutex_pairs(turns, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED);
  if (!strcmp(name, "mutex-robust")) return mutex_pairs(turns, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST);
  if (!strcmp(name, "futex-wait-mismatch")) return wait_mismatch(turns);
  if (!strcmp(name, "futex-wake-none")) return wake_none(turns);
  if (!strcmp(name, "yield")) return yield_pair(turns);
  if (!strcmp(name, "ping-pong")) return ping_pong(turns);
  if (!strcmp(name, "spawn-join")) return spawn_join(turns);
  return -1;
}

int main(void) {
  char name[64];
  long turns;
  while (scanf("%63s %ld", name, &turns) == 2) {
    printf("%.3f\n", measure(name, turns));
    fflush(stdout);
  }
  return 0;
}
