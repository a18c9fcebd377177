/**
 * Modules inside a bundle, by address. Empty in the package: the plugin for webpack and Rspack inserts its
 * list here, because their chunks cannot be imported by URL (compiler/bundlers/registry.ts).
 */
export const bundled: Readonly<Record<string, () => Promise<unknown>>> = {}
