import { join } from 'node:path'
import { type Cell, programFiles, type Tools } from './cell.ts'

const versions = [
  { name: 'vite 8', package: 'vite' },
  { name: 'vite 7', package: 'vite7' },
  { name: 'vite 6', package: 'vite6' },
]

const project: Record<string, string> = {
  'package.json': '{ "private": true, "type": "module" }',
  'vite.config.js': "import heddle from 'heddle/vite'\nexport default { plugins: [heddle()] }\n",
  'inside.config.js':
    "import heddle from 'heddle/vite'\nexport default { plugins: [heddle()], ssr: { noExternal: ['heddle'] } }\n",
  'index.html':
    '<!doctype html><link rel="icon" href="data:,"><body></body><script type="module" src="/src/page.ts"></script>',
}

/** A server of Vite in its own process: prints its address, and ends when its input closes. */
const server = (vite: string): string => `
import { createServer } from '${vite}'
const server = await createServer({ server: { port: 0 }, logLevel: 'error' })
await server.listen()
console.log(server.resolvedUrls.local[0])
process.stdin.on('end', () => process.exit(0)).resume()
`

const ssrLoad = (vite: string): string => `
import { createServer } from '${vite}'
const server = await createServer({ server: { middlewareMode: true }, appType: 'custom', logLevel: 'error' })
await server.ssrLoadModule('/src/main.ts')
`

export const viteCells: readonly Cell[] = versions.flatMap(({ name, package: vite }): Cell[] => [
  {
    name: `${name}, browser, production`,
    quick: name === 'vite 8',
    files: () => ({ ...project, ...programFiles('typescript') }),
    run: async (folder, tools) => {
      await tools.command(folder, tools.node(26), [tools.bin(vite), 'build', '--logLevel', 'warn'])
      return await tools.page({ folder: join(folder, 'dist') })
    },
  },
  {
    name: `${name}, browser, production below a path`,
    files: () => ({ ...project, ...programFiles('typescript') }),
    run: async (folder, tools) => {
      await tools.command(folder, tools.node(26), [
        tools.bin(vite),
        'build',
        '--logLevel',
        'warn',
        '--base',
        './',
        '--outDir',
        'dist/below/path',
      ])
      return await tools.page({ folder: join(folder, 'dist'), path: '/below/path/' })
    },
  },
  {
    name: `${name}, browser, development`,
    files: () => ({ ...project, ...programFiles('typescript'), 'serve.mjs': server(vite) }),
    run: async (folder, tools) => await tools.page({ server: ['serve.mjs'], project: folder }),
  },
  ...([true, false] as const).map(
    (inside): Cell => ({
      name: `${name}, node, production, heddle ${inside ? 'in the bundle' : 'beside it'}`,
      files: () => ({ ...project, ...programFiles('typescript') }),
      run: async (folder: string, tools: Tools) => {
        await tools.command(folder, tools.node(26), [
          tools.bin(vite),
          'build',
          '--logLevel',
          'warn',
          '--ssr',
          'src/main.ts',
          ...(inside ? ['--config', 'inside.config.js'] : []),
        ])
        return await tools.command(folder, tools.node(26), ['dist/main.js'])
      },
    }),
  ),
  {
    name: `${name}, node, development`,
    files: () => ({ ...project, ...programFiles('typescript'), 'load.mjs': ssrLoad(vite) }),
    run: (folder, tools) => tools.command(folder, tools.node(26), ['load.mjs']),
  },
])

/** A browser that no package contains: tested if the machine has one. */
export const firefoxCells: readonly Cell[] = [
  {
    name: 'vite 8, Firefox, production',
    files: () => ({ ...project, ...programFiles('typescript') }),
    run: async (folder, tools) => {
      await tools.command(folder, tools.node(26), [tools.bin('vite'), 'build', '--logLevel', 'warn'])
      const said = await tools.page({ folder: join(folder, 'dist') }, 'firefox')
      // A browser that is too old must report it.
      return said.includes('this browser has no Atomics.waitAsync')
        ? '{"said":"too old","expected":"too old"}'
        : said
    },
  },
]
