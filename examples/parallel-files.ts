/**
 * Runs a function over many files, on every core, with progress.
 *
 *     npm run example parallel-files [folder]
 *
 * Each task reads and counts a file itself. Only a path and three numbers travel between threads.
 */
import { readdirSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { Kernel } from '../src/index.ts'

const folder = resolve(process.argv[2] ?? 'src')
if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
  console.error(`parallel-files: ${folder} is no folder. Usage: npm run example parallel-files [folder]`)
  process.exit(2)
}
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter(file => file.endsWith('.ts'))
  .map(file => resolve(folder, file))
if (files.length === 0) {
  console.error(`parallel-files: there is no .ts file in ${folder}`)
  process.exit(2)
}

await using kernel = await Kernel.boot()
const work = await kernel.import<typeof import('./parallel-files/count.ts')>(
  new URL('./parallel-files/count.ts', import.meta.url),
)

const total = { lines: 0, words: 0, longest: 0, file: '' }
const counts = kernel.map(work.count, files, {
  ordered: false,
  onProgress({ finished, total: all = files.length }) {
    if (process.stderr.isTTY) process.stderr.write(`\r${finished} of ${all} files`)
  },
})
for await (const { file, lines, words, longest } of counts) {
  total.lines += lines
  total.words += words
  if (longest > total.longest) Object.assign(total, { longest, file })
}
if (process.stderr.isTTY) process.stderr.write('\r')
console.log(`${files.length} files, ${total.lines} lines, ${total.words} words on ${kernel.cpus} CPUs`)
console.log(`the longest line has ${total.longest} characters: ${total.file}`)
