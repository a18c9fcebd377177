/** The folder above the one that a module is in, for comparing; of a bundle in CommonJS, which has no import.meta, a name that no file has. */
export function folderAbove(url: string | undefined): string {
  return url === undefined ? '\0' : url.replace(/[^/]*\/[^/]*$/, '')
}
