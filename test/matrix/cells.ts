import { bundlerCells } from './bundlercells.ts'
import type { Cell } from './cell.ts'
import { hostCells } from './hostcells.ts'
import { nodeCells } from './nodecells.ts'
import { runtimeCells } from './runtimecells.ts'
import { firefox } from '../../testing/browser/browser.ts'
import { firefoxCells, viteCells } from './vitecells.ts'

export const cells: readonly Cell[] = [
  ...nodeCells,
  ...hostCells,
  ...runtimeCells,
  ...viteCells,
  ...bundlerCells,
  ...(firefox === undefined ? [] : firefoxCells),
]
