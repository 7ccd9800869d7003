import type { EventEmitter } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { isatty } from 'node:tty'
import { systemClock } from '../platform/clock.ts'
import { systemRandom } from '../platform/random.ts'
import type { CliContext, CliSignals, CliTerminal } from './context.ts'
import { run } from './run.ts'

/** Returns the context of the real process. */
function processContext(): CliContext {
  return {
    // Node opens a stream on first access, so a command that does not read never opens stdin.
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
  /** The kernel detaches the controlling terminal from the session on a hangup. */
  isOpen() {
    try {
      closeSync(openSync('/dev/tty', 'r'))
      return true
    } catch {
      return false
    }
  },
  isForeground() {
    try {
      return isInForeground()
    } catch {
      return false
    }
  },
  // The group of this process: a wrapper such as npx gets the signal too.
  sendSignal: signal => void process.kill(0, signal),
}

/** Windows has no signals that a key sends, so keys are not read there. */
function isInForeground(): boolean {
  if (process.platform === 'win32') return false
  if (process.platform === 'linux') {
    // The name of the process, in parentheses, may contain spaces and parentheses.
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? []
    const [, , group, , , foreground] = fields
    return group !== undefined && group === foreground
  }
  // Not imported: a start without it takes 4 ms less.
  const { spawnSync } = process.getBuiltinModule('node:child_process')
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', `${process.pid}`], { encoding: 'utf8' })
  return stdout.includes('+')
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
