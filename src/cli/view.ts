/** `heddle view`: serves a page that shows a running kernel, or a recorded trace. */
import { existsSync } from 'node:fs'
import { Command } from 'commander'
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
    .summary('show a running program, or a recorded trace, on a page in the browser')
    .description(
      'Serves one page on the loopback address and prints its address. The page shows a program that runs a heddle kernel, or a trace that was recorded. Without an argument: the only such program.',
    )
    .argument(
      '[what]',
      'a process id, or a file: a trace of heddle run --trace, the dump of a flight recorder',
    )
    .option('--port <n>', 'the port of the page; any free one without it', wholeNumber)
    .option('--json', 'print one JSON object with the address')
    .addHelpText('after', '\nExamples:\n  heddle view\n  heddle view 4711\n  heddle view out.pftrace')
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
    return new FileSource(file)
  } catch (error) {
    throw fileError(file, error, 'read')
  }
}

/** Serves the source, prints the address, and waits for Ctrl-C. */
export async function serveUntilInterrupted(source: ViewSource, flags: ViewFlags): Promise<void> {
  const server = await serveView(source, { ...(flags.port !== undefined && { port: flags.port }) })
  process.stdout.write(flags.json ? `${JSON.stringify({ url: server.url })}\n` : addressLine(server.url))
  await interrupted()
  await server.close()
  process.exit()
}
