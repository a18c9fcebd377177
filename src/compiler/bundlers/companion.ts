/**
 * Module references in esbuild, which supports neither `new URL(…)` nor emitted chunks. Before each build,
 * the program is read once to find the modules that it names by URL. A second build writes all of these, with
 * shared chunks, into a folder beside the program, whose name is a hash of its content. Then the program
 * itself is built, with the addresses there.
 *
 *   out/main.js                    new URL('./heddle-3f2a/work.js', …)
 *   out/heddle-3f2a/work.js        imported by CPUs
 *   out/heddle-3f2a/web-cpu.js     the worker of a CPU; both import
 *   out/heddle-3f2a/chunk-….js     the one heddle of that worker
 */
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { BuildOptions, BuildResult, OutputFile, PluginBuild } from 'esbuild'
import { MagicString } from 'magic-string'
import type { UnpluginOptions } from 'unplugin'
import { moduleReferences, referenceText } from './references.ts'
import { isOtherPlatform, isLoader, ownModule, pathOf } from './ownmodules.ts'

/** The option that tells which of the three builds this is: all of them share the plugins. */
const phaseKey = '__heddlePhase'
type Phase = 'read' | 'companion' | 'program'

/** The modules that a build found or received. */
interface Found {
  /** Entries of the companion build: name by file. */
  readonly names: Map<string, string>
  /** The companion's folder, once it is known. */
  folder: string
}

const anchor = 'heddle-companion-folder'

export function companion(): UnpluginOptions {
  const found: Found = { names: new Map(), folder: '' }
  return {
    name: 'heddle:modules',
    enforce: 'pre',
    esbuild: { setup: build => setUp(build as unknown as PluginBuild, found) },
    transform: {
      filter: { id: /\.[cm]?[jt]sx?(?:$|\?)/, code: referenceText },
      handler(source, id) {
        const native = this.getNativeBuildContext?.() as { build: { initialOptions: BuildOptions } }
        const options = native.build.initialOptions
        const file = pathOf(id)
        const own = ownModule(file)
        const references = moduleReferences(source, file, own !== null)
        if (references.length === 0) return null
        const text = new MagicString(source)
        let used = false
        for (const { start, end, specifier } of references) {
          if (
            own !== null &&
            (isLoader(specifier) || isOtherPlatform(specifier, options.platform === 'node'))
          ) {
            text.update(start, end, 'null')
            continue
          }
          const target = resolve(dirname(file), specifier)
          const name = nameOf(found, target, own !== null)
          used = true
          const inside = phaseOf(options) === 'companion'
          const address = JSON.stringify(inside ? `./${name}.js` : `${found.folder}/${name}.js`)
          text.update(start, end, `new URL(${address}, ${inside ? 'import.meta.url' : '__heddleBase'})`)
        }
        if (used && phaseOf(options) === 'program') text.prepend(baseOf(options))
        return { code: text.toString(), map: text.generateMap({ source: id, hires: 'boundary' }) as never }
      },
    },
  }
}

function phaseOf(options: BuildOptions): Phase {
  return (options.define?.[phaseKey]?.replaceAll('"', '') as Phase | undefined) ?? 'program'
}

/** A unique name for each file. */
function nameOf({ names }: Found, file: string, own: boolean): string {
  const known = names.get(file)
  if (known !== undefined) return known
  const base = `${own ? 'heddle-' : ''}${basename(file).replace(/\.\w+$/, '')}`
  const taken = new Set(names.values())
  let name = base
  for (let n = 2; taken.has(name); n++) name = `${base}-${n}`
  names.set(file, name)
  return name
}

/**
 * The code by which a module of the program finds the companion's folder: an asset, to which esbuild knows
 * the path from every chunk.
 */
function baseOf({ format, platform }: BuildOptions): string {
  const here =
    format === 'esm'
      ? 'import.meta.url'
      : platform === 'node'
        ? 'require("node:url").pathToFileURL(__filename)'
        : '(typeof document === "undefined" ? location.href : (document.currentScript?.src ?? document.baseURI))'
  return `import __heddleAnchor from "${anchor}"; const __heddleBase = new URL(__heddleAnchor, ${here}); `
}

async function setUp(build: PluginBuild, found: Found): Promise<void> {
  const { initialOptions, esbuild } = build
  if (phaseOf(initialOptions) !== 'program') return
  let files: OutputFile[] = []
  const outdir = resolve(
    initialOptions.absWorkingDir ?? process.cwd(),
    initialOptions.outdir ?? dirname(initialOptions.outfile ?? 'out.js'),
  )
  const toOutdir = '../'.repeat(initialOptions.assetNames?.split('/').slice(0, -1).length ?? 0) || './'

  build.onStart(async () => {
    found.names.clear()
    files = []
    await esbuild.build(readOptions(initialOptions)).catch(() => undefined)
    if (found.names.size === 0) return
    // Modules that are found in the companion itself become entries of it too.
    let count: number
    let result: BuildResult<{ write: false; metafile: true }>
    do {
      count = found.names.size
      result = await esbuild.build(companionOptions(initialOptions, found))
    } while (found.names.size > count)
    const hash = createHash('sha256')
    for (const { path, contents } of result.outputFiles) hash.update(basename(path)).update(contents)
    const folder = `heddle-${hash.digest('hex').slice(0, 8)}`
    found.folder = `${toOutdir}${folder}`
    files = result.outputFiles.map(file => ({ ...file, path: join(outdir, folder, basename(file.path)) }))
  })
  build.onResolve({ filter: new RegExp(`^${anchor}$`) }, () => ({ path: anchor, namespace: anchor }))
  build.onLoad({ filter: /./, namespace: anchor }, () => ({
    contents: `The modules of heddle's workers are in ${found.folder}.\n`,
    loader: 'file',
  }))
  build.onEnd(result => {
    if (initialOptions.write === false) result.outputFiles?.push(...files)
    else {
      for (const { path, contents } of files) {
        mkdirSync(dirname(path), { recursive: true })
        writeFileSync(path, contents)
      }
    }
  })
}

/** The options for reading the program. Nothing is written; the real build reports errors. */
function readOptions(options: BuildOptions): BuildOptions {
  return {
    ...options,
    define: { ...options.define, [phaseKey]: '"read"' },
    write: false,
    minify: false,
    sourcemap: false,
    metafile: false,
    logLevel: 'silent',
    outdir: options.outdir ?? 'out',
    ...forOutdir,
  }
}

const forOutdir = { outfile: undefined } as unknown as BuildOptions

function companionOptions(
  options: BuildOptions,
  { names }: Found,
): BuildOptions & { write: false; metafile: true } {
  const { banner: _banner, footer: _footer, globalName: _name, ...rest } = options
  return {
    ...rest,
    ...forOutdir,
    entryPoints: [...names].map(([file, name]) => ({ in: file, out: name })),
    define: { ...options.define, [phaseKey]: '"companion"' },
    outdir: 'heddle-companion',
    entryNames: '[name]',
    chunkNames: 'chunk-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    outExtension: { '.js': '.js' },
    write: false,
    metafile: true,
  }
}
