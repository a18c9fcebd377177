import { bundlerCells } from './bundlercells.ts'
import type { Cell } from './cell.ts'
import { nodeCells } from './nodecells.ts'
import { runtimeCells } from './runtimecells.ts'
import { viteCells } from './vitecells.ts'

export const cells: readonly Cell[] = [...nodeCells, ...runtimeCells, ...viteCells, ...bundlerCells]
