/**
 * Where this package's own modules are, as a URL that ends in a slash. In a bundle it is a folder near the
 * bundle; in one of CommonJS, which has no import.meta, a name that no file has.
 */
export const ownFolder: string =
  import.meta.url === undefined ? '\0' : new URL('../../', import.meta.url).href
