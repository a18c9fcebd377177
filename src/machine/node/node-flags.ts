/** Flags that say how code is loaded, and that a worker may have; the value of some is the next word. */
const kept =
  /^(?:--(?:import|require|conditions|loader|experimental-[\w-]+|enable-source-maps|no-[\w-]+|preserve-symlinks|stack-trace-limit)(?:=|$)|-[rC]$)/
const takesValue = /^(?:--(?:import|require|conditions|loader|experimental-loader)|-[rC])$/

/**
 * The flags of this process that its workers are to have; undefined: all, as Node itself gives them. After
 * `node --input-type=module -e` Node gives them that flag too, with which a worker refuses its file.
 */
export function flagsOfWorkers(flags: readonly string[]): string[] | undefined {
  if (!flags.some(flag => flag.startsWith('--input-type'))) return undefined
  return flags.flatMap((flag, at) => {
    if (!kept.test(flag)) return []
    return takesValue.test(flag) ? [flag, flags[at + 1]!] : [flag]
  })
}
