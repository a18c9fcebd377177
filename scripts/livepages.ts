/** Builds the live pages of the site (site/live): a kernel and the checker, in the reader's browser. */
import { join, resolve } from 'node:path'
import { build } from 'vite'
import heddle from '../src/compiler/bundlers/vite.ts'

const root = resolve(import.meta.dirname, '..')
const live = join(root, 'site/live')

/** The modules of the package, from the sources. */
const own: Readonly<Record<string, string>> = {
  heddle: 'src/index.ts',
  'heddle/view': 'src/view/index.ts',
  'heddle/runtime': 'src/compiler/runtime.ts',
}

export async function buildLivePages(outDir: string): Promise<void> {
  await build({
    root: live,
    base: './',
    configFile: false,
    logLevel: 'warn',
    plugins: [heddle()],
    worker: { format: 'es', plugins: () => [heddle()] },
    resolve: {
      alias: [
        { find: /^oxc-parser$/, replacement: join(live, 'acornparser.ts') },
        // As package.json has it under the condition `browser`.
        {
          find: /^.*\/node-(?:host|thread|control)\.ts$/,
          replacement: join(root, 'src/machine/node/absent.ts'),
        },
        ...Object.entries(own).map(([name, file]) => ({
          find: new RegExp(`^${name}$`),
          replacement: join(root, file),
        })),
      ],
    },
    build: {
      outDir,
      emptyOutDir: true,
      target: 'es2022',
      chunkSizeWarningLimit: 2000,
      rolldownOptions: { input: ['scheduler.html', 'checker.html'].map(page => join(live, page)) },
    },
  })
}

if (import.meta.main) await buildLivePages(resolve(process.argv[2] ?? join(root, 'dist-site/live')))
