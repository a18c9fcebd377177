interface FileSystem {
  existsSync(path: URL): boolean
}

interface Host {
  readonly process?: { getBuiltinModule?(name: string): FileSystem | undefined }
}

/** The endings that people confuse: of compiled JavaScript and of its source, and none. */
const endings = ['.ts', '.js', '.mts', '.mjs', '.cts', '.cjs', '/index.ts', '/index.js']

/** If the file of this URL does not exist: says so, and names a file with another ending that does. */
export function missingFile(url: string): string | undefined {
  const { process } = globalThis as unknown as Host
  const files = process?.getBuiltinModule?.('node:fs')
  if (files === undefined || !url.startsWith('file:') || files.existsSync(new URL(url))) return undefined
  const [path] = url.split(/[?#]/)
  const stem = path.replace(/\.[cm]?[jt]s$/, '')
  const near = endings.map(ending => stem + ending).find(other => files.existsSync(new URL(other)))
  const hint =
    near === undefined
      ? 'check the path'
      : `did you mean ${near.slice(near.lastIndexOf('/', stem.length - 1) + 1)}?`
  return `there is no such file; ${hint}`
}
