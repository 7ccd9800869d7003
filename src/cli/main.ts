import type { EventEmitter } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { isatty } from 'node:tty'
import { systemClock } from '../platform/clock.ts'
import { systemRandom } from '../platform/random.ts'
import type { CliContext, CliSignals, CliTerminal } from './context.ts'
import { run } from './run.ts'

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
