// SPDX-License-Identifier: Apache-2.0
// instructions TID COUNT: single-steps a thread and writes the addresses of COUNT instructions that
// it ran, as native 64-bit words, to standard output.
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  pid_t thread = atoi(argv[1]);
  long count = atol(argv[2]);
  int status;
  if (ptrace(PTRACE_SEIZE, thread, 0, 0) || ptrace(PTRACE_INTERRUPT, thread, 0, 0) ||
      waitpid(thread, &status, __WALL) < 0) {
    perror("ptrace");
    return 1;
  }
  while (count-- > 0) {
    struct user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, thread, 0, &registers)) break;
    fwrite(&registers.rip, sizeof registers.rip, 1, stdout);
    if (ptrace(PTRACE_SINGLESTEP, thread, 0, 0) || waitpid(thread, &status, __WALL) < 0 ||
        !WIFSTOPPED(status))
      break;
  }
  ptrace(PTRACE_DETACH, thread, 0, 0);
  return 0;
}
