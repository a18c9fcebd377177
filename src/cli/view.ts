/** `heddle view`: serves a page that shows a running kernel, or a recorded trace. */
import { existsSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { Command } from 'commander'
import { parseSavedCheck } from '../checker/report/checkview.ts'
import { OpenedCheck } from '../checker/run/savedcheck.ts'
import { CheckSource } from '../view/node-checksource.ts'
import { ControlSource } from '../view/node-controlsource.ts'
import { FileSource } from '../view/node-filesource.ts'
import { serveView } from '../view/node-server.ts'
import type { ViewSource } from '../view/source.ts'
import { CommandError, fileError, guarded } from './failure.ts'
import { findKernel } from './findkernel.ts'
import { wholeNumber } from './numbers.ts'
import { addressLine, interrupted } from './servedpage.ts'

interface ViewFlags {
  port?: number
  json?: boolean
}

export function viewCommand(): Command {
  return new Command('view')
    .summary('show a running program, a recorded trace, or a failing check on a page in the browser')
    .description(
      'Serves one page on the loopback address and prints its address. The page shows a program that runs a heddle kernel, a trace that was recorded, or a failing execution of a check. Without an argument: the only such program.',
    )
    .argument(
      '[what]',
      'a process id, or a file: a trace of heddle run --trace, the dump of a flight recorder, the failure of heddle check --view-file',
    )
    .option('--port <n>', 'the port of the page; any free one without it', wholeNumber)
    .option('--json', 'print one JSON object with the address')
    .addHelpText(
      'after',
      '\nExamples:\n  heddle view\n  heddle view 4711\n  heddle view out.pftrace\n  heddle view failure.json',
    )
    .action(async (what: string | undefined, flags: ViewFlags) =>
      guarded('view', flags, async () => {
        await serveUntilInterrupted(await sourceOf(what), flags)
      }),
    )
}

async function sourceOf(what: string | undefined): Promise<ViewSource> {
  if (what === undefined || (/^[0-9]+$/.test(what) && !existsSync(what))) {
    const path = findKernel('view', what)
    return await ControlSource.connect(path).catch(() => {
      throw new CommandError('the program has ended', { hint: 'it left its socket behind' })
    })
  }
  return openFile(what)
}

function openFile(file: string): ViewSource {
  try {
    return savedCheck(file) ?? new FileSource(file)
  } catch (error) {
    if (error instanceof SyntaxError) throw new CommandError(`${file}: ${error.message}`)
    throw fileError(file, error, 'read')
  }
}

/** A failing execution that `heddle check --view-file` wrote; undefined for any other file. */
function savedCheck(file: string): ViewSource | undefined {
  const bytes = readFileSync(file)
  // Traces can be large, and begin in another way.
  if (!bytes.subarray(0, SAVED_START.length).equals(SAVED_START)) return undefined
  const saved = parseSavedCheck(bytes.toString('utf8'))
  return saved && new CheckSource(new OpenedCheck(saved), basename(file))
}

const SAVED_START = Buffer.from('{"format":"heddle check"')

/** Serves the source, prints the address, and waits for Ctrl-C. */
export async function serveUntilInterrupted(source: ViewSource, flags: ViewFlags): Promise<void> {
  const server = await serveView(source, { ...(flags.port !== undefined && { port: flags.port }) })
  process.stdout.write(flags.json ? `${JSON.stringify({ url: server.url })}\n` : addressLine(server.url))
  await interrupted()
  await server.close()
  process.exit()
}
