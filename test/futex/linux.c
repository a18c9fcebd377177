// Runs a script of futex operations on the kernel's own system call, one command a line, and answers each with a line:
// what the call returned (an error negated), then the waiters that have returned since, as id:result.
//
//   S word value                           sets a word
//   W id word op value val3 timeout        a new thread waits; timeout 0 is one that has passed, -1 none
//   K word op value val2 word2 val3        this thread calls
//
// and of futex2, where the kernel has it:
//
//   w id word flags value mask             a new thread waits
//   k word flags mask count                wakes
//   r word flags value word2 flags2 all wake move    futex_requeue; `all`: the flags of the call itself
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_futex_wake
#define SYS_futex_wake 454
#define SYS_futex_wait 455
#define SYS_futex_requeue 456
#endif
#define FUTEX2 -2

// A struct futex_waitv, which older headers lack.
struct entry {
  uint64_t value, address;
  uint32_t flags, reserved;
};

#define WORDS 8
#define WAITERS 64

static uint32_t *words;

struct waiter {
  atomic_int tid, entering, finished, told;
  int word, op, timeout;
  uint32_t value, val3;
  long result;
  pthread_t thread;
} waiters[WAITERS];

static long call(uint32_t *word, int op, uint32_t value, void *timeout, uint32_t *word2, uint32_t val3) {
  long result = syscall(SYS_futex, word, op, value, timeout, word2, val3);
  return result < 0 ? -errno : result;
}

static void *run(void *of) {
  struct waiter *w = of;
  struct timespec past = {0, 0};
  atomic_store(&w->tid, (int)syscall(SYS_gettid));
  atomic_store(&w->entering, 1);
  if (w->op == FUTEX2) {
    long result = syscall(SYS_futex_wait, words + w->word, (unsigned long)w->value, (unsigned long)w->val3, w->timeout, NULL, 1);
    w->result = result < 0 ? -errno : result;
  } else w->result = call(words + w->word, w->op, w->value, w->timeout == 0 ? &past : NULL, NULL, w->val3);
  atomic_store(&w->finished, 1);
  return NULL;
}

static int is_asleep(struct waiter *w) {
  char path[64], text[512];
  if (!atomic_load(&w->entering)) return 0;
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", atomic_load(&w->tid));
  FILE *file = fopen(path, "r");
  if (file == NULL) return 0;
  size_t got = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[got] = 0;
  char *end = strrchr(text, ')');
  return end != NULL && end[2] == 'S';
}

// Until every waiter has returned or sleeps, several looks in a row.
static void settle(int count) {
  for (int calm = 0; calm < 3;) {
    int moving = 0;
    for (int i = 0; i < count; i++) {
      if (waiters[i].thread == 0 || atomic_load(&waiters[i].finished)) continue;
      if (!is_asleep(&waiters[i])) moving = 1;
    }
    calm = moving ? 0 : calm + 1;
    usleep(200);
  }
}

int main(void) {
  char line[256];
  words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  setvbuf(stdout, NULL, _IOLBF, 0);
  while (fgets(line, sizeof line, stdin) != NULL) {
    long result = 0;
    int a, b, e, f, g, h, i;
    unsigned c, d;
    if (sscanf(line, "S %d %u", &a, &c) == 2) {
      __atomic_store_n(words + a, c, __ATOMIC_SEQ_CST);
    } else if (sscanf(line, "W %d %d %d %u %u %d", &a, &b, &e, &c, &d, &f) == 6 && a < WAITERS) {
      struct waiter *w = waiters + a;
      memset(w, 0, sizeof *w);
      w->word = b;
      w->op = e;
      w->value = c;
      w->val3 = d;
      w->timeout = f;
      pthread_create(&w->thread, NULL, run, w);
    } else if (sscanf(line, "K %d %d %u %u %d %u", &a, &b, &c, &d, &e, (unsigned *)&f) == 6) {
      result = call(words + a, b, c, (void *)(uintptr_t)d, words + e, (uint32_t)f);
    } else if (sscanf(line, "w %d %d %d %u %u", &a, &b, &e, &c, &d) == 5 && a < WAITERS) {
      struct waiter *w = waiters + a;
      memset(w, 0, sizeof *w);
      w->word = b;
      w->op = FUTEX2;
      w->timeout = e;
      w->value = c;
      w->val3 = d;
      pthread_create(&w->thread, NULL, run, w);
    } else if (sscanf(line, "k %d %d %u %d", &a, &b, &c, &e) == 4) {
      result = syscall(SYS_futex_wake, words + a, (unsigned long)c, e, b);
      if (result < 0) result = -errno;
    } else if (sscanf(line, "r %d %d %u %d %d %d %d %d", &a, &b, &c, &e, &f, &g, &h, &i) == 8) {
      struct entry both[2] = {{c, (uintptr_t)(words + a), b, 0}, {0, (uintptr_t)(words + e), f, 0}};
      result = syscall(SYS_futex_requeue, both, g, h, i);
      if (result < 0) result = -errno;
    } else {
      fprintf(stderr, "cannot read: %s", line);
      return 1;
    }
    settle(WAITERS);
    printf("%ld", result);
    for (int i = 0; i < WAITERS; i++) {
      if (waiters[i].thread == 0 || !atomic_load(&waiters[i].finished) || waiters[i].told) continue;
      waiters[i].told = 1;
      printf(" %d:%ld", i, waiters[i].result);
    }
    printf(" | %u %u %u %u\n", words[0], words[1], words[2], words[3]);
  }
  _exit(0);
}
