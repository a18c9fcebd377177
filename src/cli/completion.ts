/** `heddle completion bash|zsh|fish`: a completion script for a shell, generated from the commands. */
import { Argument, Command, type Option } from 'commander'
import { CommandError, EXIT_USAGE } from './failure.ts'

export type Shell = 'bash' | 'zsh' | 'fish'

export function completionCommand(): Command {
  return new Command('completion')
    .summary('print a completion script for a shell')
    .description('Prints a script that completes heddle commands and options.')
    .addArgument(new Argument('[shell]', 'for which shell').choices(['bash', 'zsh', 'fish']))
    .option('--json', 'print the commands and their options as one JSON object instead')
    .addHelpText(
      'after',
      '\nExamples:\n  heddle completion bash >> ~/.bashrc\n  heddle completion zsh > "${fpath[1]}/_heddle"\n  heddle completion fish > ~/.config/fish/completions/heddle.fish',
    )
    .action((shell: Shell | undefined, { json }: { json?: boolean }, command: Command) => {
      const root = command.parent ?? command
      if (json) process.stdout.write(`${JSON.stringify(described(root), null, 2)}\n`)
      else if (shell !== undefined) process.stdout.write(completionScript(shell, root))
      else {
        new CommandError('no shell is named', {
          exitCode: EXIT_USAGE,
          hint: 'give bash, zsh or fish, or --json',
        }).end('completion')
      }
    })
}

interface Described {
  readonly name: string
  readonly summary: string
  readonly arguments: readonly string[]
  readonly options: readonly { readonly flags: string; readonly description: string }[]
  readonly commands: readonly Described[]
}

function described(command: Command): Described {
  return {
    name: command.name(),
    summary: command.summary() || command.description(),
    arguments: command.registeredArguments.map(argument => argument.name()),
    options: command.options.map(({ flags, description }) => ({ flags, description })),
    commands: command.commands.map(described),
  }
}

interface Entry {
  /** The names of the command and its parents: `trace convert`. */
  readonly path: readonly string[]
  readonly summary: string
  readonly options: readonly Option[]
  readonly commands: readonly string[]
  /** Whether it takes a file. */
  readonly files: boolean
}

function entriesOf(command: Command, path: readonly string[] = []): Entry[] {
  const own: Entry = {
    path,
    summary: command.summary() || command.description(),
    options: command.options,
    commands: command.commands.flatMap(one => [one.name(), ...one.aliases()]),
    files: command.registeredArguments.some(argument => /file|path|output/.test(argument.name())),
  }
  return [own, ...command.commands.flatMap(one => entriesOf(one, [...path, one.name()]))]
}

function completionScript(shell: Shell, root: Command): string {
  const entries = entriesOf(root)
  if (shell === 'fish') return fish(entries)
  return shell === 'bash' ? bash(entries) : zsh(entries)
}

const words = ({ commands, options }: Entry): string =>
  [...commands, ...options.flatMap(option => option.long ?? [])].join(' ')

function bash(entries: readonly Entry[]): string {
  const cases = entries.map(
    entry => `    "${entry.path.join(' ')}") words="${words(entry)}"; files=${entry.files ? 1 : 0} ;;`,
  )
  return `# heddle completion for bash
_heddle() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" word words files
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in
      -*) ;;
      *) case " ${commandPaths(entries).join(' | ')} " in *" $path\${path:+ }$word "*) path="$path\${path:+ }$word" ;; esac ;;
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [ "$files" = 1 ]; then COMPREPLY+=($(compgen -f -- "$current")); fi
}
complete -o filenames -F _heddle heddle
`
}

function commandPaths(entries: readonly Entry[]): string[] {
  return entries.filter(({ path }) => path.length > 0).map(({ path }) => path.join(' '))
}

function zsh(entries: readonly Entry[]): string {
  const cases = entries.map(entry => {
    const described = [
      ...entries
        .filter(
          ({ path }) =>
            path.length === entry.path.length + 1 && path.slice(0, -1).join(' ') === entry.path.join(' '),
        )
        .map(({ path, summary }) => `${path.at(-1)}:${quoteZsh(summary)}`),
      ...entry.options.flatMap(option =>
        option.long ? [`${option.long}:${quoteZsh(option.description)}`] : [],
      ),
    ]
    const list = described.map(one => `'${one}'`).join(' ')
    return `    "${entry.path.join(' ')}") choices=(${list}); files=${entry.files ? 1 : 0} ;;`
  })
  return `#compdef heddle
# heddle completion for zsh
_heddle() {
  local -a choices
  local at="" word files=0
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$word" in
      -*) ;;
      *) case " ${commandPaths(entries).join(' | ')} " in *" $at\${at:+ }$word "*) at="$at\${at:+ }$word" ;; esac ;;
    esac
  done
  case "$at" in
${cases.join('\n')}
  esac
  _describe 'heddle' choices
  if [ "$files" = 1 ]; then _files; fi
}
_heddle "$@"
`
}

const quoteZsh = (text: string): string => text.replaceAll("'", "'\\''").replaceAll(':', '\\:')

function fish(entries: readonly Entry[]): string {
  const lines = ['# heddle completion for fish', 'complete -c heddle -f']
  for (const entry of entries) {
    const seen = entry.path.map(word => `__fish_seen_subcommand_from ${word}`)
    const here = [
      ...seen,
      ...(entry.commands.length > 0 ? [`not __fish_seen_subcommand_from ${entry.commands.join(' ')}`] : []),
    ]
    const condition = here.length > 0 ? ` -n '${here.join('; and ')}'` : ''
    for (const child of entries) {
      if (
        child.path.length !== entry.path.length + 1 ||
        child.path.slice(0, -1).join(' ') !== entry.path.join(' ')
      )
        continue
      lines.push(`complete -c heddle${condition} -a ${child.path.at(-1)} -d ${quoteFish(child.summary)}`)
    }
    for (const option of entry.options) {
      if (option.long === undefined || option.long === null) continue
      const value = option.required ? ' -r' : ''
      lines.push(
        `complete -c heddle${condition} -l ${option.long.slice(2)}${value} -d ${quoteFish(option.description)}`,
      )
    }
    if (entry.files) lines.push(`complete -c heddle${condition} -F`)
  }
  return `${lines.join('\n')}\n`
}

const quoteFish = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
