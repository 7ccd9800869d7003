import { type CliContext, type CliOutput, VERSION_FLAGS, version } from './context.ts'
import { watchOutput } from './exit.ts'

/**
 * Runs one command line and returns the exit code. Removes all listeners that it has added to the
 * context.
 */
export async function run(argv: readonly string[], context: CliContext): Promise<number> {
  const isDebug = argv.includes('--debug')
  const endWatch = watchOutput(context, isDebug)
  try {
    if (isVersion(argv)) {
      context.stdout.write(`${version()}\n`)
      return 0
    }
    const { runCommand } = await import('./program.ts')
    return await runCommand(argv, context, { isDebug, runEv: run })
  } finally {
    await settled(context.stdout, context.stderr)
    endWatch()
  }
}

/** The version alone needs no command: without the definitions it takes a third of the time. */
const isVersion = ([first, ...more]: readonly string[]) =>
  first !== undefined && more.length === 0 && VERSION_FLAGS.split(', ').includes(first)

/** Waits until all output is flushed or has failed, so that `watchOutput` sees a failure. */
async function settled(...outputs: readonly CliOutput[]): Promise<void> {
  for (const output of outputs) {
    if (output.writableLength === 0) continue
    await new Promise<void>(resolve => void output.write('', () => resolve()))
  }
  // A stream emits its error one turn of the event loop after the failed write.
  await new Promise<void>(resolve => void setImmediate(resolve))
}
