/**
 * Modules that a bundler holds, by the address that stands for each. Empty in the package: the plugin for
 * webpack and Rspack puts its own list here, because a chunk of theirs cannot be imported by its URL
 * (compiler/bundlers/registry.ts).
 */
export const bundled: Readonly<Record<string, () => Promise<unknown>>> = {}
