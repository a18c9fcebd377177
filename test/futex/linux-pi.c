// Runs a script of futex calls about locks on the kernel's own system call. Each actor is a thread that makes the calls it is
// told to, one after the other. One command a line, answered with a line: what came of it ("-" while the call sleeps, "busy" for
// an actor that sleeps in a call, "dead" for one that has ended), then the actors whose calls have returned since, as id:result, then
// the words: W for WAITERS, D for OWNER_DIED, and the number of the actor whose TID it is, from 1.
//
//   P id priority                                 the actor's SCHED_FIFO priority
//   T id op word value timeout val2 word2 val3    a call; timeout 0 is one that has passed, -1 none
//   F id word / G id word                         the fast path: 0 to TID, TID to 0; 1 if it succeeds
//   O word id flags                               the word is an actor's TID with flags: 1 WAITERS, 2 OWNER_DIED; id -1: nobody's
//   R id word pi                                  the lock is put first on the actor's robust list
//   X id                                          the actor ends
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WORDS 4
#define ACTORS 6
enum { IDLE, GIVEN, RUNNING, RETURNED, DEAD };

struct lock {
  struct robust_list entry;
  uint32_t word;
} *locks;

struct actor {
  atomic_int state, tid;
  int op, word, word2, timeout;
  uint32_t value, val2, val3;
  long result;
  int ends;
  pthread_t thread;
  struct robust_list_head head;
} actors[ACTORS];

static long call(struct actor *a) {
  struct timespec past = {0, 0};
  void *timeout = a->timeout == 0 ? (void *)&past : NULL;
  if (a->op % 128 == FUTEX_CMP_REQUEUE_PI || a->op % 128 == FUTEX_REQUEUE) timeout = (void *)(uintptr_t)a->val2;
  long result = syscall(SYS_futex, &locks[a->word].word, a->op, a->value, timeout, &locks[a->word2].word, a->val3);
  return result < 0 ? -errno : result;
}

static void *run(void *of) {
  struct actor *a = of;
  a->head.list.next = &a->head.list;
  a->head.futex_offset = offsetof(struct lock, word);
  a->head.list_op_pending = NULL;
  syscall(SYS_set_robust_list, &a->head, sizeof a->head);
  atomic_store(&a->tid, (int)syscall(SYS_gettid));
  for (;;) {
    syscall(SYS_futex, &a->state, FUTEX_WAIT, IDLE, NULL, NULL, 0);
    if (atomic_load(&a->state) != GIVEN) continue;
    if (a->ends) {
      atomic_store(&a->state, RUNNING);
      syscall(SYS_exit, 0);
    }
    atomic_store(&a->state, RUNNING);
    a->result = call(a);
    atomic_store(&a->state, RETURNED);
    while (atomic_load(&a->state) == RETURNED) syscall(SYS_futex, &a->state, FUTEX_WAIT, RETURNED, NULL, NULL, 0);
  }
  return NULL;
}

static int is_asleep(struct actor *a) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", atomic_load(&a->tid));
  FILE *file = fopen(path, "r");
  if (file == NULL) return a->ends;
  size_t got = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[got] = 0;
  char *end = strrchr(text, ')');
  return !a->ends && end != NULL && end[2] == 'S';
}

static void settle(void) {
  for (int calm = 0; calm < 3;) {
    int moving = 0;
    for (int i = 0; i < ACTORS; i++) {
      int state = atomic_load(&actors[i].state);
      if (state == DEAD) continue;
      if (state == GIVEN || (state == RUNNING && !is_asleep(actors + i))) moving = 1;
      if (state == RUNNING && actors[i].ends && !moving) atomic_store(&actors[i].state, DEAD);
    }
    calm = moving ? 0 : calm + 1;
    usleep(150);
  }
}

static void give(struct actor *a) {
  atomic_store(&a->state, GIVEN);
  syscall(SYS_futex, &a->state, FUTEX_WAKE, 1, NULL, NULL, 0);
  settle();
}

static int holder(uint32_t word) {
  int tid = word & FUTEX_TID_MASK;
  if (tid == 0) return 0;
  for (int i = 0; i < ACTORS; i++)
    if (atomic_load(&actors[i].tid) == tid) return i + 1;
  return 99;
}

static const char *ready(struct actor *a) {
  int state = atomic_load(&a->state);
  return state == DEAD ? "dead" : state == IDLE ? NULL : "busy";
}

int main(void) {
  char line[256];
  locks = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (int i = 0; i < ACTORS; i++) pthread_create(&actors[i].thread, NULL, run, actors + i);
  for (int i = 0; i < ACTORS; i++)
    while (!atomic_load(&actors[i].tid)) usleep(100);
  usleep(1000);
  while (fgets(line, sizeof line, stdin) != NULL) {
    const char *said = "0";
    char number[32];
    int a, b, e, f, g, h, before = -1;
    unsigned c, d;
    if (sscanf(line, "P %d %d", &a, &b) == 2) {
      struct sched_param param = {.sched_priority = b};
      if (pthread_setschedparam(actors[a].thread, SCHED_FIFO, &param) != 0) {
        fprintf(stderr, "no real-time priorities here\n");
        return 2;
      }
    } else if (sscanf(line, "T %d %d %d %u %d %d %d %u", &a, &b, &e, &c, &f, &g, &h, &d) == 8) {
      struct actor *it = actors + a;
      if ((said = ready(it)) == NULL) {
        it->op = b, it->word = e, it->value = c, it->timeout = f, it->val2 = g, it->word2 = h, it->val3 = d;
        give(it);
        said = "-";
        if (atomic_load(&it->state) == RETURNED) {
          snprintf(number, sizeof number, "%ld", it->result);
          said = number;
          before = a;
        }
      }
    } else if (sscanf(line, "F %d %d", &a, &b) == 2 || sscanf(line, "G %d %d", &a, &b) == 2) {
      if ((said = ready(actors + a)) == NULL) {
        uint32_t tid = atomic_load(&actors[a].tid), from = line[0] == 'F' ? 0 : tid, to = line[0] == 'F' ? tid : 0;
        said = __atomic_compare_exchange_n(&locks[b].word, &from, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ? "1" : "0";
      }
    } else if (sscanf(line, "O %d %d %d", &a, &b, &e) == 3) {
      uint32_t value = b < 0 ? 0 : atomic_load(&actors[b].tid);
      if (e & 1) value |= FUTEX_WAITERS;
      if (e & 2) value |= FUTEX_OWNER_DIED;
      __atomic_store_n(&locks[a].word, value, __ATOMIC_SEQ_CST);
    } else if (sscanf(line, "R %d %d %d", &a, &b, &e) == 3) {
      if ((said = ready(actors + a)) == NULL) {
        struct robust_list_head *head = &actors[a].head;
        locks[b].entry.next = head->list.next;
        head->list.next = (void *)((uintptr_t)&locks[b].entry | e);
        said = "0";
      }
    } else if (sscanf(line, "X %d", &a) == 1) {
      if ((said = ready(actors + a)) == NULL) {
        actors[a].ends = 1;
        give(actors + a);
        said = "0";
      }
    } else {
      fprintf(stderr, "cannot read: %s", line);
      return 1;
    }
    settle();
    printf("%s", said);
    for (int i = 0; i < ACTORS; i++) {
      if (atomic_load(&actors[i].state) != RETURNED) continue;
      if (i != before) printf(" %d:%ld", i, actors[i].result);
      atomic_store(&actors[i].state, IDLE);
      syscall(SYS_futex, &actors[i].state, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
    printf(" |");
    for (int i = 0; i < WORDS; i++) {
      uint32_t word = locks[i].word;
      printf(" %s%s%d", word & FUTEX_WAITERS ? "W" : "", word & FUTEX_OWNER_DIED ? "D" : "", holder(word));
    }
    printf("\n");
  }
  _exit(0);
}
