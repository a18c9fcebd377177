/** The folders of the checker and the compiler. They are loaded without instrumentation. */
export const ownFolders: readonly string[] = ['checker/', 'compiler/'].map(
  folder => new URL('../../', import.meta.url).href + folder,
)

/** Whether a module belongs to the checker or the compiler. A check file in these folders does not. */
export function isOwn(url: string): boolean {
  const bare = url.replace(/[?#].*$/, '')
  return !/\.check\.[cm]?[jt]sx?$/.test(bare) && ownFolders.some(folder => bare.startsWith(folder))
}
