import { CommanderError } from 'commander'
import type { CliContext, CliOutput } from './context.ts'
import { EXIT_CODES, reportError, watchOutput } from './exit.ts'
import { program } from './program.ts'

/**
 * Runs one command line and returns the exit code. Removes all listeners that it has added to the
 * context.
 */
export async function run(argv: readonly string[], context: CliContext): Promise<number> {
  const isDebug = argv.includes('--debug')
  const endWatch = watchOutput(context, isDebug)
  try {
    return await runCommand(argv, context, isDebug)
  } finally {
    await settled(context.stdout, context.stderr)
    endWatch()
  }
}

async function runCommand(
  argv: readonly string[],
  context: CliContext,
  isDebug: boolean,
): Promise<number> {
  let code = 0
  const ev = program(context, exitCode => {
    code = exitCode
  })
  try {
    await ev.parseAsync(argv, { from: 'user' })
    return code
  } catch (error) {
    if (!(error instanceof CommanderError)) return reportError(context, error, isDebug)
    // Commander has printed help or the version; help after a missing command ends with 1.
    return error.exitCode === 0 ? 0 : EXIT_CODES.usage
  }
}

/** Waits until all output is flushed or has failed, so that `watchOutput` sees a failure. */
async function settled(...outputs: readonly CliOutput[]): Promise<void> {
  for (const output of outputs) {
    if (output.writableLength === 0) continue
    await new Promise<void>(resolve => void output.write('', () => resolve()))
  }
  // A stream emits its error one turn of the event loop after the failed write.
  await new Promise<void>(resolve => void setImmediate(resolve))
}
