/**
 * `node --import heddle/checker/register --test ring.test.ts`: instruments the checks in the files that Node
 * loads.
 */
import { instrumentChecks } from './loader.ts'

instrumentChecks()
