/** The folders of the checker and the compiler: they are loaded as they are, since they do the checking. */
export const ownFolders: readonly string[] = ['../', '../../compiler/'].map(
  path => new URL(path, import.meta.url).href,
)

/** Whether a module belongs to the checker or the compiler. A check that stands there does not. */
export function isOwn(url: string): boolean {
  const bare = url.replace(/[?#].*$/, '')
  return !/\.check\.[cm]?[jt]sx?$/.test(bare) && ownFolders.some(folder => bare.startsWith(folder))
}
