/** The Web Worker of a kernel's CPU. */
import { runWebCpu } from '../../machine/web/web-cpu.ts'
import kernelCpu from './cpu.ts'

runWebCpu(kernelCpu)
