import { type Cell, programFiles, type Tools } from './cell.ts'

const esm = { 'package.json': '{ "private": true, "type": "module" }' }

/** A program of one module that boots a kernel without a loader, in a folder whose name a URL must encode. */
const odd = 'a #1 %20 ü'
const small = {
  [`${odd}/work.js`]: "export function twice(n) { 'use task'; return 2 * n }",
  [`${odd}/main.js`]: `import { Kernel } from 'heddle'
const kernel = await Kernel.boot({ cpus: 1 })
const work = await kernel.import(new URL('./work.js', import.meta.url))
console.log(JSON.stringify({ said: await kernel.spawn(work.twice, [21]), expected: 42 }))
await kernel.close()`,
}

/** Builds with esbuild without the plugin; the program's error must name the remedy. */
async function bareBundle(format: 'cjs' | 'esm', project: string, tools: Tools): Promise<string> {
  const file = `dist/main.${format === 'cjs' ? 'cjs' : 'mjs'}`
  const entry =
    format === 'cjs'
      ? "require('heddle').Kernel.boot()"
      : "import { Kernel } from 'heddle'; await Kernel.boot()"
  await tools.command(project, tools.node(26), [
    '-e',
    `require('esbuild').buildSync({ stdin: { contents: ${JSON.stringify(entry)}, resolveDir: '.' }, bundle: true, platform: 'node', format: '${format}', outfile: '${file}' })`,
  ])
  const said = await tools.command(project, tools.node(26), [file]).catch((error: Error) => error.message)
  return JSON.stringify({
    said: /was built without its plugin.*heddle\/esbuild.*--external:heddle/.test(said) || said,
    expected: true,
  })
}

/**
 * The surroundings of a program: flags of Node, the name of its folder, threads and processes of other code.
 */
export const hostCells: readonly Cell[] = [
  ...[20, 26].flatMap(version => [
    {
      name: `node ${version}, --frozen-intrinsics`,
      files: () => ({ ...esm, ...small }),
      run: (project: string, tools: Tools) =>
        tools.command(project, tools.node(version), ['--frozen-intrinsics', `${odd}/main.js`]),
    },
    {
      name: `node ${version}, a folder with # and % in its name`,
      files: () => ({ ...esm, ...small }),
      run: (project: string, tools: Tools) => tools.command(project, tools.node(version), [`${odd}/main.js`]),
    },
    {
      name: `node ${version}, inside of a worker thread`,
      files: () => ({
        ...esm,
        ...small,
        'main.js': `import { Worker } from 'node:worker_threads'\nnew Worker(new URL('./${encodeURIComponent(odd)}/main.js', import.meta.url))`,
      }),
      run: (project: string, tools: Tools) => tools.command(project, tools.node(version), ['main.js']),
    },
    {
      name: `node ${version}, in a process of a cluster`,
      files: () => ({
        ...esm,
        ...small,
        'main.js': `import cluster from 'node:cluster'
if (cluster.isPrimary) cluster.fork()
else {
  await import('./${encodeURIComponent(odd)}/main.js')
  process.disconnect()
}`,
      }),
      run: (project: string, tools: Tools) => tools.command(project, tools.node(version), ['main.js']),
    },
  ]),
  {
    name: 'node 26, --permission',
    files: () => ({ ...esm, ...small }),
    run: (project, tools) =>
      tools.command(project, tools.node(26), [
        '--permission',
        '--allow-fs-read=*',
        '--allow-worker',
        '--allow-addons',
        `${odd}/main.js`,
      ]),
  },
  {
    name: 'esbuild, node, CommonJS',
    files: () => ({
      ...esm,
      ...programFiles('typescript'),
      'build.mjs': `
import { build } from 'esbuild'
import heddle from 'heddle/esbuild'
await build({
  entryPoints: { main: 'src/main.ts' },
  outdir: 'dist', bundle: true, format: 'cjs', platform: 'node', outExtension: { '.js': '.cjs' },
  logOverride: { 'empty-import-meta': 'silent' },
  plugins: [heddle()],
})
`,
    }),
    run: async (project, tools) => {
      await tools.command(project, tools.node(26), ['build.mjs'])
      return await tools.command(project, tools.node(20), ['dist/main.cjs'])
    },
  },
  ...(['cjs', 'esm'] as const).map(format => ({
    name: `esbuild without the plugin, ${format}`,
    files: () => esm,
    run: (project: string, tools: Tools) => bareBundle(format, project, tools),
  })),
]
