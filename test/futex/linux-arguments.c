// Makes single futex calls on the kernel, one a line, with arguments that may be wrong in every way, and answers each with what the call returned (an
// error negated) and the first three words afterwards.
//
//   op value sec nsec val2 offset offset2 val3 word0 word1 word2
//
// sec -2: no timeout, val2 in its place. An offset of -1 is a null pointer. OWN in a word stands for the TID of the caller.
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define OWN 0x1abcdefu
#define TID 0x3fffffffu

static uint32_t swap(uint32_t word, uint32_t from, uint32_t to) {
  return (word & TID) == from ? (word & ~TID) | to : word;
}

int main(void) {
  char line[256];
  char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  uint32_t *words = (uint32_t *)memory;
  uint32_t tid = (uint32_t)syscall(SYS_gettid);
  long op, value, sec, nsec, val2, offset, offset2, val3, word[3];
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (sscanf(line, "%ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld", &op, &value, &sec, &nsec, &val2, &offset, &offset2, &val3, word, word + 1, word + 2) != 11) {
      fprintf(stderr, "cannot read: %s", line);
      return 1;
    }
    for (int i = 0; i < 3; i++) words[i] = swap((uint32_t)word[i], OWN, tid);
    struct timespec timeout = {sec, nsec};
    void *fourth = sec == -2 ? (void *)(uintptr_t)(uint32_t)val2 : &timeout;
    long result = syscall(SYS_futex, offset < 0 ? NULL : memory + offset, (int)op, (uint32_t)value, fourth, offset2 < 0 ? NULL : memory + offset2, (uint32_t)val3);
    if (result < 0) result = -errno;
    printf("%ld", result);
    for (int i = 0; i < 3; i++) printf(" %u", swap(words[i], tid, OWN));
    printf("\n");
  }
  return 0;
}
