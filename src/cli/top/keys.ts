import type { ControlRequest } from '../../trace/control.ts'
import { cursor, listed, sortKeys, type TopModel } from './model.ts'

/** The effect of a key beyond its change of the model: the end of the display, or a request to the kernel. */
export type KeyAction = 'quit' | ControlRequest | null

const named: Readonly<Record<string, string>> = {
  '\u001b[A': 'up',
  '\u001bOA': 'up',
  '\u001b[B': 'down',
  '\u001bOB': 'down',
  '\u001b[5~': 'page up',
  '\u001b[6~': 'page down',
  '\u001b': 'escape',
  '\r': 'enter',
  '\n': 'enter',
  '\u007f': 'backspace',
  '\b': 'backspace',
  '\u0003': 'ctrl c',
}

/** Splits the input of a terminal into keys: one chunk may have several. */
export function keysOf(text: string): string[] {
  const keys: string[] = []
  for (let at = 0; at < text.length; ) {
    // oxlint-disable-next-line no-control-regex
    const sequence = /^\u001b(?:\[[0-9;]*[A-Za-z~]|O[A-Z])/.exec(text.slice(at))?.[0] ?? text[at]
    keys.push(named[sequence] ?? sequence)
    at += sequence.length
  }
  return keys
}

const PAGE = 10

/** Applies one key to the model. Returns the action that the caller must perform. */
export function press(model: TopModel, key: string): KeyAction {
  if (key === 'ctrl c') return 'quit'
  if (model.mode === 'filter' || model.mode === 'priority') return typed(model, key)
  if (model.mode === 'help') {
    model.mode = 'list'
    return null
  }
  model.message = ''
  const rows = listed(model)
  const move = (by: number): null => {
    const at = Math.min(rows.length - 1, Math.max(0, cursor(model, rows) + by))
    model.selected = rows[at]?.id ?? 0
    return null
  }
  const task = rows[cursor(model, rows)]
  switch (key) {
    case 'q':
      return 'quit'
    case 'h':
    case '?':
      model.mode = 'help'
      return null
    case 'up':
      return move(-1)
    case 'down':
      return move(1)
    case 'page up':
      return move(-PAGE)
    case 'page down':
      return move(PAGE)
    case 'o':
      model.sort = sortKeys[(sortKeys.indexOf(model.sort) + 1) % sortKeys.length]
      return null
    case 'r':
      model.reverse = !model.reverse
      return null
    case '/':
      model.mode = 'filter'
      model.input = model.filter
      return null
    case 'escape':
      model.filter = ''
      return null
    case ' ':
      model.paused = !model.paused
      return null
  }
  if (task === undefined) return null
  switch (key) {
    case 's':
      return { op: 'stop', task: task.id }
    case 'c':
      return { op: 'continue', task: task.id }
    case 'k':
      return { op: 'kill', task: task.id }
    case 'p':
      model.mode = 'priority'
      model.input = ''
      model.selected = task.id
      return null
    default:
      return null
  }
}

/** A key of a line of input: the filter, which applies to each letter, or a priority. */
function typed(model: TopModel, key: string): KeyAction {
  if (key === 'escape') {
    model.mode = 'list'
    return null
  }
  if (key === 'backspace') model.input = model.input.slice(0, -1)
  else if (key.length === 1 && key >= ' ') model.input += key
  if (model.mode === 'filter') model.filter = model.input
  if (key !== 'enter') return null
  const { mode, input, selected } = model
  model.mode = 'list'
  if (mode === 'filter' || input === '') return null
  const number = Number(input)
  return { op: 'priority', task: selected, priority: Number.isInteger(number) ? number : (input as 'high') }
}
