import type { EventEmitter } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { isatty } from 'node:tty'
import { CommanderError } from 'commander'
import { systemClock } from '../platform/clock.ts'
import { systemRandom } from '../platform/random.ts'
import type { CliContext, CliOutput, CliSignals, CliTerminal } from './context.ts'
import { EXIT_CODES, reportError, watchOutput } from './exit.ts'
import { program } from './program.ts'

/**
 * Runs one command line and gives the code to exit with. Leaves no listener on what is in the
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
  const ev = program(context, ended => {
    code = ended
  })
  try {
    await ev.parseAsync(argv, { from: 'user' })
    return code
  } catch (error) {
    if (!(error instanceof CommanderError)) return reportError(context, error, isDebug)
    // Commander has printed its message; help and version end with 0.
    return error.exitCode === 0 ? 0 : EXIT_CODES.usage
  }
}

/** Until all that was written has left or has failed, so that `watchOutput` hears of a failure. */
async function settled(...outputs: readonly CliOutput[]): Promise<void> {
  for (const output of outputs) {
    if (output.writableLength === 0) continue
    await new Promise<void>(resolve => void output.write('', () => resolve()))
  }
  // A stream tells its error one turn after the write that failed.
  await new Promise<void>(resolve => void setImmediate(resolve))
}

/** The context of a command line that has the process for itself. */
function processContext(): CliContext {
  return {
    // Node opens a stream when it is first asked for: a command that reads nothing leaves stdin
    // alone.
    get stdin() {
      return process.stdin
    },
    get stdout() {
      return process.stdout
    },
    get stderr() {
      return process.stderr
    },
    env: process.env,
    cwd: '.',
    signals: processSignals(),
    terminal,
    console,
    clock: systemClock,
    random: systemRandom,
    exit: code => process.exit(code),
    isRunning,
  }
}

type Listener = Parameters<EventEmitter['on']>[1]

function processSignals(): CliSignals {
  const emitter: EventEmitter = process
  return {
    on: (event: string, listener: Listener) => emitter.on(event, listener),
    once: (event: string, listener: Listener) => emitter.once(event, listener),
    off: (event: string, listener: Listener) => emitter.off(event, listener),
    raise: signal => void process.kill(process.pid, signal),
  }
}

const terminal: CliTerminal = {
  isAttached: () => [0, 1, 2].some(descriptor => isatty(descriptor)),
  /** The kernel takes the controlling terminal from a whole session when it is hung up. */
  isOpen() {
    try {
      closeSync(openSync('/dev/tty', 'r'))
      return true
    } catch {
      return false
    }
  },
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // The process runs and belongs to another user.
    return (error as { code?: unknown }).code === 'EPERM'
  }
}

process.exitCode = await run(process.argv.slice(2), processContext())
