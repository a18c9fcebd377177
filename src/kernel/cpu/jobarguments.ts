import { JOB_ARGS_MAILED, Job } from '../spawn/job.ts'
import type { JobCode } from '../spawn/jobcode.ts'
import type { KernelView } from '../boot/view.ts'
import type { CpuMail } from './cpumail.ts'
import type { MailedArgs } from './mail.ts'

/** The arguments of the jobs that a CPU begins: in the job's payload, or sent as a message (mail.ts). */
export class JobArguments {
  private readonly view: KernelView
  private readonly cpu: number
  private readonly mail: CpuMail
  private readonly code: JobCode

  constructor(view: KernelView, cpu: number, mail: CpuMail, code: JobCode) {
    this.view = view
    this.cpu = cpu
    this.mail = mail
    this.code = code
  }

  /**
   * Null: all that the job needs has arrived. In a browser, objects that it refers to may be on their way.
   */
  missing(job: number): Promise<unknown> | null {
    const { codec, i32 } = this.view
    const missing = codec.missing(i32[job + Job.args]) ?? codec.missing(i32[job + Job.context])
    if (missing !== null || (i32[job + Job.control] & JOB_ARGS_MAILED) === 0) return missing
    const { id, cpu } = codec.decode(i32[job + Job.args]) as MailedArgs
    return cpu === this.cpu ? this.mail.missing(id) : null
  }

  /** Takes the arguments, which have arrived. */
  take(job: number): readonly unknown[] {
    const args = this.code.takeArguments(job)
    if ((this.view.i32[job + Job.control] & JOB_ARGS_MAILED) === 0) return args
    const { id, cpu } = args as unknown as MailedArgs
    if (cpu !== this.cpu)
      throw new Error(`CPU ${cpu} died, and the objects that were transferred to the task were lost with it`)
    return this.mail.takeArgs(id)
  }
}
