/**
 * Flags that control how code is loaded and that a worker accepts. The value of some is the next argument.
 */
const loaderFlags =
  /^(?:--(?:import|require|conditions|loader|experimental-[\w-]+|enable-source-maps|no-[\w-]+|preserve-symlinks|stack-trace-limit)(?:=|$)|-[rC]$)/
const takesValue = /^(?:--(?:import|require|conditions|loader|experimental-loader)|-[rC])$/

/**
 * The flags of this process for its workers; undefined: all, which is Node's default. After
 * `node --input-type=module -e` Node would pass that flag too, and a worker with it refuses its file.
 */
export function flagsOfWorkers(flags: readonly string[]): string[] | undefined {
  if (!flags.some(flag => flag.startsWith('--input-type'))) return undefined
  return flags.flatMap((flag, at) => {
    if (!loaderFlags.test(flag)) return []
    return takesValue.test(flag) ? [flag, flags[at + 1]!] : [flag]
  })
}
