/** The last part of a path or file URL. */
export function basename(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

/** A path relative to the current folder, if it is inside. */
export function shorten(path: string): string {
  const folder = typeof process === 'object' ? `${process.cwd()}/` : ''
  return folder !== '' && path.startsWith(folder) ? path.slice(folder.length) : path
}
