// Runs beside an installed heddle (packed.ts): how long a program takes to import it, boot a kernel and
// import a module on its CPUs, and the same number of bare workers.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

const cpus = Number(process.argv[2])

async function elapsed(run) {
  const start = performance.now()
  const value = await run()
  return [performance.now() - start, value]
}

const [importPackage, { Kernel }] = await elapsed(() => import('heddle'))
const workers = []
const [bare] = await elapsed(() => {
  for (let i = 0; i < cpus; i++) workers.push(new Worker('', { eval: true }))
  return Promise.all(workers.map(worker => once(worker, 'online')))
})
await Promise.all(workers.map(worker => worker.terminate()))
const [boot, kernel] = await elapsed(() => Kernel.boot({ cpus }))
const [importModule, work] = await elapsed(() => kernel.import(new URL('./startwork.mjs', import.meta.url)))
const sum = await kernel.spawn(work.sum, [10])
if (sum !== 45) throw new Error(`the task returned ${sum}, not 45`)
await kernel.close()
process.send({ importPackage, bare, boot, importModule })
