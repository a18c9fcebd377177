/**
 * `node --import heddle/checker/register --test ring.test.ts`: checks in the files that are loaded are
 * instrumented.
 */
import { instrumentChecks } from './loader.ts'

instrumentChecks()
