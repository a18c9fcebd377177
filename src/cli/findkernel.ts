import { runningKernels } from '../trace/node-control.ts'
import { CommandError, EXIT_USAGE } from './failure.ts'

/** The socket of the kernel that `heddle top` or `heddle view` attaches to. */
export function findKernel(command: 'top' | 'view', pid: string | undefined): string {
  if (pid !== undefined && !/^[0-9]+$/.test(pid)) {
    throw new CommandError(`${pid} is no process id`, {
      exitCode: EXIT_USAGE,
      hint: 'give a number, as ps prints it',
    })
  }
  const kernels = runningKernels()
  const programs = [...new Set(kernels.map(kernel => kernel.pid))]
  if (pid === undefined && programs.length > 1) {
    throw new CommandError(`${programs.length} programs of yours run a heddle kernel`, {
      exitCode: EXIT_USAGE,
      hint: `name one: heddle ${command} ${programs.join(`, or heddle ${command} `)}`,
    })
  }
  const found = pid === undefined ? kernels.at(-1) : kernels.findLast(kernel => kernel.pid === Number(pid))
  if (found !== undefined) return found.path
  if (pid === undefined) {
    throw new CommandError('no program of yours runs a heddle kernel', {
      hint: 'start one, as in heddle run program.ts, and try again',
    })
  }
  const others = kernels.map(kernel => kernel.pid).join(', ')
  throw new CommandError(`process ${pid} runs no heddle kernel`, {
    hint: others === '' ? 'no other process of yours does either' : `these do: ${others}`,
  })
}
