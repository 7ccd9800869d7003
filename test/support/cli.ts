import { AsyncLocalStorage } from 'node:async_hooks'
import dgram from 'node:dgram'
import dns from 'node:dns'
import { EventEmitter } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { clearLine, cursorTo, moveCursor } from 'node:readline'
import { PassThrough, Writable } from 'node:stream'
import { COMMAND_NAMES } from '../../src/cli/command-table.ts'
import type { CliContext, CliSignal } from '../../src/cli/context.ts'
import { program } from '../../src/cli/program.ts'
import { run } from '../../src/cli/run.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { onFileFinished } from './cleanup.ts'
import { tempSqlite } from './database.ts'
import type { Ran } from './home.ts'

export { emptyFolder, folderWith, type Ran, simulatorFlags } from './home.ts'

export type CliOptions = {
  /** Working directory of the command, and its home directory. */
  readonly home: string
  readonly stdin?: string | Uint8Array
  /** Keeps stdin open for more input. */
  readonly stdinOpen?: boolean
  readonly environment?: Readonly<Record<string, string>>
  /** Width of the terminal that stdin, stdout and stderr are; none: they are pipes. */
  readonly columns?: number
  /** A DNS lookup or a connection of the command throws, and its exit code is 99. */
  readonly offline?: boolean
  /** Whether the command creates the tables of its database. */
  readonly isFirst?: boolean
  /** Overrides of the context of `memoryContext`, such as the clock. */
  readonly context?: Partial<Omit<CliContext, 'signals'>>
}

/** A command running in this process. */
export type RunningCli = {
  readonly stdin: PassThrough
  readonly ended: Promise<Ran>
  /** Resolves when the output contains the text; rejects when the command ends without it. */
  printed(text: string, on?: 'stdout' | 'stderr'): Promise<void>
  /** The output so far. */
  readonly stdout: string
  readonly stderr: string
  signal(signal: CliSignal): void
}

// In a terminal this variable would add colors to the output in memory.
delete process.env.FORCE_COLOR

/** Runs `ev` to its end in this process, without the settings of this machine. */
export const runEv = (args: readonly string[], options: CliOptions): Promise<Ran> =>
  startEv(args, options).ended

/** Returns the tree of commands with all their options. */
export const wholeProgram = () =>
  program(memoryContext({ home: tmpdir() }).context, {
    setExitCode: () => {},
    runEv: run,
    words: COMMAND_NAMES,
  })

/** Returns the output of a command with paths relative to its folder. */
export function withRelativePaths(ran: Ran, home: string): Ran {
  const strip = (text: string) => text.replaceAll(`${home}/`, '')
  return { ...ran, stdout: strip(ran.stdout), stderr: strip(ran.stderr) }
}

/** Whether a command creates the database of the data directory if there is none. */
function createsData(
  args: readonly string[],
  environment: CliOptions['environment'] = {},
): boolean {
  const [command, action] = args
  // The database is another one.
  if (args.includes('--database') || environment.EV_DATABASE !== undefined) return false
  return (
    command === 'bulk' || command === 'serve' || (command === 'accounts' && action === 'create')
  )
}

const running = new Set<RunningCli>()

/** Stops a service that a failed test left running. */
async function endWithFile(one: RunningCli): Promise<void> {
  if (!running.has(one)) return
  one.signal('SIGTERM')
  await one.ended.catch(() => {})
}

/**
 * Starts `ev` in this process. Unless `isFirst` is set, a command that would create the database of
 * `data` finds one with all tables: creating them takes longer than most lists.
 */
export function startEv(args: readonly string[], options: CliOptions): RunningCli {
  if (options.isFirst !== true && createsData(args, options.environment)) {
    tempSqlite(join(options.home, 'data', 'ev.sqlite'))
  }
  const memory = memoryContext(options)
  const { stdin, stdout, stderr, signals } = memory.context
  const before = listenersOf(memory.context)
  const filesBefore = databasesOpen(options.home)
  const isAlone = ![...runningByHome.keys()].includes(options.home)
  runningByHome.set(options.home, (runningByHome.get(options.home) ?? 0) + 1)
  const networkAccesses: string[] = []
  const execute = () => Promise.race([memory.exited, run(args, memory.context)])
  const ran = async (): Promise<Ran> => {
    try {
      const code =
        options.offline === true ? await network.run(networkAccesses, execute) : await execute()
      const { wasEnded } = memory
      if (!wasEnded()) assertNoLeaks(args, before, listenersOf(memory.context))
      if (isAlone && runningByHome.get(options.home) === 1 && !wasEnded()) {
        assertNoOpenFiles(args, filesBefore, databasesOpen(options.home))
      }
      const report = networkAccesses.map(what => `no-network: ${what}\n`).join('')
      return {
        code: networkAccesses.length > 0 ? 99 : code,
        signal: null,
        stdout: stdout.text,
        stderr: stderr.text + report,
      }
    } finally {
      runningByHome.set(options.home, (runningByHome.get(options.home) ?? 1) - 1)
      if (runningByHome.get(options.home) === 0) runningByHome.delete(options.home)
    }
  }
  const ended = ran().finally(() => running.delete(one))
  ended.catch(() => {}) // The test may await it later.
  const one: RunningCli = {
    stdin,
    ended,
    get stdout() {
      return stdout.text
    },
    get stderr() {
      return stderr.text
    },
    printed: (text, on = 'stdout') => printed(on === 'stdout' ? stdout : stderr, text, ended),
    signal: name => memory.guarded(() => void signals.emit(name, name)),
  }
  running.add(one)
  onFileFinished(() => endWithFile(one))
  return one
}

/** Number of running commands by home directory: their open files cannot be told apart. */
const runningByHome = new Map<string, number>()

/** A stream that stores its input. */
class MemoryOutput extends Writable {
  text = ''
  readonly watchers = new Set<() => void>()

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.text += chunk.toString('utf8')
    for (const check of this.watchers) check()
    done()
  }
}

/** The methods of a terminal that move its cursor. */
const cursorOf = (stream: NodeJS.WritableStream) => ({
  cursorTo: (x: number) => cursorTo(stream, x),
  moveCursor: (x: number, y: number) => moveCursor(stream, x, y),
  clearLine: (direction: -1 | 0 | 1) => clearLine(stream, direction),
})

class MemorySignals extends EventEmitter {
  raise(signal: CliSignal): void {
    this.emit(signal, signal)
  }
}

/** Thrown by `exit`, which must not return. */
class Exited extends Error {}

export type MemoryContext = CliContext & {
  readonly stdin: PassThrough
  readonly stdout: MemoryOutput
  readonly stderr: MemoryOutput
  readonly signals: MemorySignals
  /** Whether the terminal passes on each key at once. */
  isRaw: boolean
}

/** Creates a context with streams in memory and an empty environment. */
export function memoryContext(options: CliOptions) {
  const { home, stdin, stdinOpen, environment, columns, context } = options
  const { promise: exited, resolve } = Promise.withResolvers<number>()
  let hasEnded = false
  const input = new PassThrough()
  if (stdin !== undefined) input.write(stdin)
  if (stdinOpen !== true) input.end()
  const made: MemoryContext = {
    env: { HOME: home, ...environment },
    cwd: home,
    isRaw: false,
    signals: new MemorySignals(),
    terminal: {
      isAttached: () => false,
      isOpen: () => false,
      isForeground: () => columns !== undefined,
      sendSignal: signal => void made.signals.emit(signal, signal),
    },
    console: { ...console },
    clock: systemClock,
    random: systemRandom,
    exit(code) {
      hasEnded = true
      resolve(code)
      throw new Exited(`exit ${code}`)
    },
    isRunning: pid => pid === process.pid,
    ...context,
    stdin: input,
    stdout: new MemoryOutput(),
    stderr: new MemoryOutput(),
  }
  if (columns !== undefined) {
    for (const stream of [input, made.stdout, made.stderr]) {
      Object.assign(stream, { isTTY: true, columns, ...cursorOf(stream) })
    }
    const setRawMode = (mode: boolean) => {
      made.isRaw = mode
    }
    Object.assign(input, { setRawMode })
  }
  const guarded = (work: () => void) => {
    try {
      work()
    } catch (error) {
      if (!(error instanceof Exited)) throw error
    }
  }
  return { context: made, exited, wasEnded: () => hasEnded, guarded }
}

function printed(output: MemoryOutput, text: string, ended: Promise<Ran>): Promise<void> {
  return new Promise((resolve, reject) => {
    const check = () => {
      if (!output.text.includes(text)) return
      output.watchers.delete(check)
      resolve()
    }
    output.watchers.add(check)
    check()
    const onEnded = (ran: Ran) => {
      check()
      reject(new Error(`ev ended without printing ${text}: ${ran.stderr}`))
    }
    ended.then(onEnded, reject)
  })
}

type Listeners = ReadonlyMap<string, number>

function listenersOf({ stdin, stdout, stderr, signals }: MemoryContext): Listeners {
  const counts = new Map<string, number>()
  const all = Object.entries({ stdin, stdout, stderr, signals })
  for (const [name, emitter] of all) {
    for (const event of emitter.eventNames()) {
      counts.set(`${name} ${String(event)}`, emitter.listenerCount(event))
    }
  }
  return counts
}

/** Throws if a command left a listener, which would accumulate with each run in a process. */
function assertNoLeaks(args: readonly string[], before: Listeners, after: Listeners): void {
  const left = [...after].filter(([event, count]) => count > (before.get(event) ?? 0))
  // Listeners on stdin are harmless, as the stream was read to its end or destroyed.
  const leaks = left.filter(([event]) => !event.startsWith('stdin '))
  if (leaks.length === 0) return
  throw new Error(
    `ev ${args.join(' ')} left listeners: ${leaks.map(([event]) => event).join(', ')}`,
  )
}

/**
 * Returns the database files below a folder that this process has open, where the system reports
 * them.
 */
function databasesOpen(folder: string): readonly string[] {
  try {
    return readdirSync('/proc/self/fd')
      .map(targetOf)
      .filter(file => file.startsWith(`${folder}/`) && /\.(sqlite|lock)$/.test(file))
  } catch {
    return []
  }
}

function targetOf(descriptor: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return ''
  }
}

function assertNoOpenFiles(
  args: readonly string[],
  before: readonly string[],
  after: readonly string[],
): void {
  // SQLite keeps a file open while the same process has it open elsewhere.
  if (before.length > 0 || after.length === 0) return
  throw new Error(`ev ${args.join(' ')} left files open: ${after.join(', ')}`)
}

/** The attempted network accesses of an offline command. */
const network = new AsyncLocalStorage<string[]>()

type Callable = (this: unknown, ...args: unknown[]) => unknown

function guard(owner: object, name: string, what: string): void {
  const slots = owner as Record<string, unknown>
  const original = slots[name] as Callable
  slots[name] = function (this: unknown, ...args: unknown[]) {
    const networkAccesses = network.getStore()
    if (networkAccesses === undefined) return original.apply(this, args)
    networkAccesses.push(what)
    throw new Error(`no-network: ${what}`)
  }
}

// Commands run concurrently with servers and simulators of the tests, which may use the network.
guard(net.Socket.prototype, 'connect', 'a socket')
guard(dgram, 'createSocket', 'a datagram')
for (const library of [dns, dns.promises]) {
  for (const name of Object.keys(library)) {
    if (/^(resolve|lookup|reverse)/.test(name)) guard(library, name, name)
  }
  for (const name of Object.getOwnPropertyNames(library.Resolver.prototype)) {
    if (/^(resolve|reverse)/.test(name)) guard(library.Resolver.prototype, name, name)
  }
}
syncBuiltinESMExports()
