import { AsyncLocalStorage } from 'node:async_hooks'
import dgram from 'node:dgram'
import dns from 'node:dns'
import { EventEmitter } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import { PassThrough, Writable } from 'node:stream'
import type { CliContext, CliSignal } from '../../src/cli/context.ts'
import { run } from '../../src/cli/run.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { onFileFinished } from './cleanup.ts'
import type { Ran } from './home.ts'

export { emptyFolder, type Ran, towards } from './home.ts'

export type CliOptions = {
  /** Folder that the command runs in; it is its home too. */
  readonly home: string
  readonly stdin?: string | Uint8Array
  /** More may follow on stdin. */
  readonly stdinOpen?: boolean
  readonly environment?: Readonly<Record<string, string>>
  /** A lookup or a connection of the command throws, and its code is 99. */
  readonly offline?: boolean
  /** What differs from the context of `memoryContext`, such as `doors` or a clock. */
  readonly context?: Partial<Omit<CliContext, 'signals'>>
}

/** A command that runs in this process. */
export type RunningCli = {
  readonly stdin: PassThrough
  readonly ended: Promise<Ran>
  /** Resolves when what was printed holds the text; rejects when the command ends before it does. */
  printed(text: string, on?: 'stdout' | 'stderr'): Promise<void>
  /** What was printed up to now. */
  readonly stdout: string
  readonly stderr: string
  signal(signal: CliSignal): void
}

// Set in a terminal, it would colour what goes to a stream in memory.
delete process.env.FORCE_COLOR

/** Runs `ev` to its end in this process, without any settings of this machine. */
export const runEv = (args: readonly string[], options: CliOptions): Promise<Ran> =>
  startEv(args, options).ended

/** What a command printed, with the paths below its folder as a process that runs in it names them. */
export function withRelativePaths(ran: Ran, home: string): Ran {
  const strip = (text: string) => text.replaceAll(`${home}/`, '')
  return { ...ran, stdout: strip(ran.stdout), stderr: strip(ran.stderr) }
}

const running = new Set<RunningCli>()

/** Ends a service that a failed test left running. */
async function endWithFile(one: RunningCli): Promise<void> {
  if (!running.has(one)) return
  one.signal('SIGTERM')
  await one.ended.catch(() => {})
}

/** Starts `ev` in this process. */
export function startEv(args: readonly string[], options: CliOptions): RunningCli {
  const memory = memoryContext(options)
  const { stdin, stdout, stderr, signals } = memory.context
  const before = listenersOf(memory.context)
  const filesBefore = databasesOpen(options.home)
  const isAlone = ![...homes.keys()].includes(options.home)
  homes.set(options.home, (homes.get(options.home) ?? 0) + 1)
  const burglaries: string[] = []
  const go = () => Promise.race([memory.exited, run(args, memory.context)])
  const ran = async (): Promise<Ran> => {
    try {
      const code = options.offline === true ? await network.run(burglaries, go) : await go()
      const { wasEnded } = memory
      if (!wasEnded()) refuseLeaks(args, before, listenersOf(memory.context))
      if (isAlone && homes.get(options.home) === 1 && !wasEnded()) {
        refuseOpen(args, filesBefore, databasesOpen(options.home))
      }
      const told = burglaries.map(what => `no-network: ${what}\n`).join('')
      return {
        code: burglaries.length > 0 ? 99 : code,
        signal: null,
        stdout: stdout.text,
        stderr: stderr.text + told,
      }
    } finally {
      homes.set(options.home, (homes.get(options.home) ?? 1) - 1)
      if (homes.get(options.home) === 0) homes.delete(options.home)
    }
  }
  const ended = ran().finally(() => running.delete(one))
  ended.catch(() => {}) // It is awaited by the test, perhaps later.
  const one: RunningCli = {
    ...{ stdin, ended },
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

/** Commands under way by their home: what they have open cannot be told apart. */
const homes = new Map<string, number>()

/** Keeps what is written to it. */
class MemoryOutput extends Writable {
  text = ''
  readonly watchers = new Set<() => void>()

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.text += chunk.toString('utf8')
    for (const look of this.watchers) look()
    done()
  }
}

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
}

/** A context whose streams are in memory and whose environment is empty. */
export function memoryContext({ home, stdin, stdinOpen, environment, context }: CliOptions) {
  const { promise: exited, resolve } = Promise.withResolvers<number>()
  let hasEnded = false
  const input = new PassThrough()
  if (stdin !== undefined) input.write(stdin)
  if (stdinOpen !== true) input.end()
  const made: MemoryContext = {
    env: { HOME: home, ...environment },
    cwd: home,
    signals: new MemorySignals(),
    terminal: { isAttached: () => false, isOpen: () => false },
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
    const look = () => {
      if (!output.text.includes(text)) return
      output.watchers.delete(look)
      resolve()
    }
    output.watchers.add(look)
    look()
    const late = (ran: Ran) => {
      look()
      reject(new Error(`ev ended without printing ${text}: ${ran.stderr}`))
    }
    ended.then(late, reject)
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

/** A command that left a listener would have it once more with each run in the process. */
function refuseLeaks(args: readonly string[], before: Listeners, after: Listeners): void {
  const left = [...after].filter(([event, count]) => count > (before.get(event) ?? 0))
  // A stream that was read to its end or destroyed is of no use to anything else.
  const leaks = left.filter(([event]) => !event.startsWith('stdin '))
  if (leaks.length === 0) return
  throw new Error(
    `ev ${args.join(' ')} left listeners: ${leaks.map(([event]) => event).join(', ')}`,
  )
}

/** Files of databases below a folder that this process has open; where the system tells. */
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

function refuseOpen(
  args: readonly string[],
  before: readonly string[],
  after: readonly string[],
): void {
  // SQLite keeps a file open for as long as this process has it open elsewhere.
  if (before.length > 0 || after.length === 0) return
  throw new Error(`ev ${args.join(' ')} left files open: ${after.join(', ')}`)
}

/** Set while a command runs that must stay off the network: what it tried. */
const network = new AsyncLocalStorage<string[]>()

type Callable = (this: unknown, ...args: unknown[]) => unknown

function guard(owner: object, name: string, what: string): void {
  const slots = owner as Record<string, unknown>
  const original = slots[name] as Callable
  slots[name] = function (this: unknown, ...args: unknown[]) {
    const burglaries = network.getStore()
    if (burglaries === undefined) return original.apply(this, args)
    burglaries.push(what)
    throw new Error(`no-network: ${what}`)
  }
}

// Commands run side by side with servers and worlds of the tests, which may use the network.
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
