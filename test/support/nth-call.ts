import type { Duplex } from 'node:stream'
import type { Resolver } from '../../src/engine/dns/resolver.ts'
import type { Dial } from '../../src/engine/smtp/dial.ts'
import { type Clock, DAY, MINUTE } from '../../src/platform/clock.ts'
import type { WebhookTransport } from '../../src/webhooks/transport.ts'
import type { FakeClock } from './clock.ts'
import { drainEventLoop } from './wait.ts'

// Failure at every n-th call, as SQLite is tested ("I/O Error Testing", sqlite.org/testing.html): a
// run is repeated, and in the n-th repetition the n-th call of one kind fails, until a run makes
// fewer calls.

/**
 * Kinds of calls, and the ways in which one of them fails:
 *
 * | kind | a call | it fails |
 * |---|---|---|
 * | `statement` | an SQL statement | before it is executed |
 * | `commit` | a COMMIT, or a statement that writes outside a transaction | after it, so that only the answer is lost |
 * | `file` | open, read, write, sync, close, rename or removal of a file | before or after it |
 * | `dns` | a question | with SERVFAIL, without an answer, with an exception |
 * | `connect` | a connection to a mail server | refused |
 * | `read` | bytes from a mail server | the connection is reset, or ends |
 * | `write` | bytes to a mail server | the connection is reset |
 * | `timer` | a timer | it is minutes late, or fires at once |
 * | `request` | a webhook request | it is not sent, its response is lost, an exception |
 */
export const WAYS = {
  statement: ['refused'],
  commit: ['lost'],
  file: ['refused', 'lost'],
  dns: ['servfail', 'timeout', 'thrown'],
  connect: ['refused'],
  read: ['reset', 'ended'],
  write: ['reset'],
  timer: ['late', 'early'],
  request: ['refused', 'lost', 'thrown'],
} as const

export type CallKind = keyof typeof WAYS
export type Fault = {
  readonly kind: CallKind
  readonly way: string
  /** Number of the call, from 1. */
  readonly n: number
}

/** Counts the calls of a run, and chooses the one that fails. */
export class Calls {
  /** Number of calls by kind. */
  readonly made = new Map<CallKind, number>()
  /** Calls whose real input or output has not ended. */
  inFlight = 0
  /** The call that failed; null until then. */
  failed: string | null = null
  readonly #fault: Fault | null
  #hasEnded = false

  constructor(fault: Fault | null) {
    this.#fault = fault
  }

  /** Counts a call. Returns the way in which it fails; null if it does not. */
  take(kind: CallKind, what: string): string | null {
    if (this.#hasEnded) return null
    const n = (this.made.get(kind) ?? 0) + 1
    this.made.set(kind, n)
    if (this.#fault?.kind !== kind || this.#fault.n !== n) return null
    this.failed = `${kind} ${n} ${this.#fault.way}: ${what.replace(/\s+/g, ' ').slice(0, 200)}`
    return this.#fault.way
  }

  /** No further call fails or counts. */
  end(): void {
    this.#hasEnded = true
  }
}

/** A run with the calls that it makes. Returns what is wrong after it. */
type RunCase = (calls: Calls) => Promise<readonly string[]>

export type Tried = { readonly calls: number; readonly violations: readonly string[] }

type EachCall = Omit<Fault, 'n'> & {
  /** Default: each call. */
  readonly every?: number
  /** Number of runs at the same time. Default: 1. */
  readonly parallel?: number
}

/**
 * Repeats a run with one call that fails: each `every`-th one, until the run makes fewer calls. A
 * run that throws is a violation.
 */
export async function failEachCall(
  run: RunCase,
  { kind, way, every = 1, parallel = 1 }: EachCall,
): Promise<Tried> {
  const violations: string[] = []
  let calls = 0
  let n = 1
  let isOver = false
  const runAll = async () => {
    while (!isOver) {
      const one = new Calls({ kind, way, n })
      n += every
      const found = await run(one).catch((error: unknown) => [describeError(error)])
      if (one.failed === null) isOver = true
      else calls++
      violations.push(...found.map(text => `${one.failed ?? `no ${kind} failed`}\n    ${text}`))
    }
  }
  await Promise.all(Array.from({ length: parallel }, runAll))
  return { calls, violations }
}

const describeError = (error: unknown) =>
  error instanceof Error ? (error.stack ?? error.message) : String(error)

const ioError = (code: string, message: string) => Object.assign(new Error(message), { code })

/** Longer than any timeout of a session. */
const LATE_MS = 5 * MINUTE

/** The clock of a run. */
export function failingClock(clock: Clock, calls: Calls): Clock {
  const { uptimeMs } = clock
  return {
    now: () => clock.now(),
    monotonicNow: () => clock.monotonicNow(),
    ...(uptimeMs === undefined ? {} : { uptimeMs: () => uptimeMs.call(clock) }),
    after(delayMs, callback) {
      const way = calls.take('timer', `${delayMs} ms`)
      if (way === 'late') return clock.after(delayMs + LATE_MS, callback)
      return clock.after(way === 'early' ? 0 : delayMs, callback)
    },
  }
}

export const failingResolver = (resolver: Resolver, calls: Calls): Resolver => ({
  async resolve(name, type, signal) {
    const way = calls.take('dns', `${type} ${name}`)
    if (way === 'thrown') throw ioError('EMFILE', 'the DNS question cannot be sent')
    if (way !== null) return { fault: way === 'timeout' ? 'timeout' : 'server' }
    return resolver.resolve(name, type, signal)
  },
})

const reset = () => ioError('ECONNRESET', 'read ECONNRESET')

export const failingDial = (dial: Dial, calls: Calls): Dial => ({
  async connect(to, signal) {
    if (calls.take('connect', to.host) !== null)
      throw ioError('ECONNREFUSED', `connect ECONNREFUSED ${to.ip}:${to.port}`)
    return failingSocket(await dial.connect(to, signal), calls)
  },
  secure: dial.secure,
})

/** Intercepts the events and the writes of a connection. */
function failingSocket(socket: Duplex, calls: Calls): Duplex {
  const { emit, write } = socket
  const intercepted = {
    emit(event: string, ...args: unknown[]): boolean {
      if (event !== 'data') return emit.call(socket, event, ...args)
      const way = calls.take('read', String(args[0]))
      if (way === null) return emit.call(socket, event, ...args)
      socket.destroy(way === 'reset' ? reset() : undefined)
      return true
    },
    write(...args: Parameters<Duplex['write']>): boolean {
      if (calls.take('write', String(args[0])) === null) return write.apply(socket, args)
      socket.destroy(reset())
      return false
    },
  }
  return Object.assign(socket, intercepted)
}

export const failingTransport = (transport: WebhookTransport, calls: Calls): WebhookTransport => ({
  ...transport,
  async send(request) {
    const way = calls.take('request', request.url)
    if (way === 'thrown') throw ioError('EMFILE', 'the request cannot be sent')
    const sent = way === 'refused' ? null : await transport.send(request)
    if (way === null && sent !== null) return sent
    return { answer: null, fault: 'No response.', faultCode: 'timeout', durationMs: 30_000 }
  },
})

/** Most that a run may take by its own clock: longer than the last retry of an address. */
const RUN_MAX_MS = 2 * DAY
/** Only ends a run that waits for nothing. */
const IDLE_MAX_MS = 20_000

/**
 * Advances the clock to one timer after the other until the promise settles. It stands still while
 * a call has real input or output in flight.
 */
export async function runToEnd<T>(clock: FakeClock, calls: Calls, work: Promise<T>): Promise<T> {
  let isSettled = false
  const settle = () => {
    isSettled = true
  }
  work.then(settle, settle)
  const endAt = clock.monotonicNow() + RUN_MAX_MS
  let activeAt = performance.now()
  for (;;) {
    await drainEventLoop()
    if (isSettled) return work
    if (performance.now() - activeAt > IDLE_MAX_MS) throw new Error('the run waits for nothing')
    if (calls.inFlight > 0 || !Number.isFinite(clock.untilNextMs)) continue
    activeAt = performance.now()
    if (clock.monotonicNow() > endAt) throw new Error('the run does not end')
    await clock.advance(clock.untilNextMs)
  }
}
