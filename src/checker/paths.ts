/** The last part of a path or file URL. */
export function basename(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}
