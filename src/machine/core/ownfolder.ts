/**
 * The folder of this package's modules, as a URL that ends in a slash. In a bundle it is a folder near the
 * bundle. A CommonJS bundle has no import.meta: there it is a name that no file has.
 */
export const ownFolder: string =
  import.meta.url === undefined ? '\0' : new URL('../../', import.meta.url).href
