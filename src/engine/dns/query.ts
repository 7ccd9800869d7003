import { type Clock, SECOND } from '../../platform/clock.ts'
import type { DnsAnswer, DnsFault, HostAddresses, RecordOf, RecordType } from './resolver.ts'
import type { DnsFailover } from './server-list.ts'

/** Sends the question to one server, once. `said` never rejects. */
export type DnsTransport = (server: string) => {
  readonly said: Promise<DnsReply>
  hangUp(): unknown
}
/** Records, or a code of c-ares such as `ENOTFOUND`. */
export type DnsReply =
  | {
      readonly records: readonly RecordOf<RecordType>[]
      readonly additional?: readonly HostAddresses[]
    }
  | { readonly code: string }

/**
 * One question, asked server after server: after a fault at once, after silence a little later while the ones before
 * may still answer. The first answer counts; what comes later falls on deaf ears.
 */
export class DnsQuery {
  readonly answer: Promise<DnsAnswer<RecordType>>
  readonly #options: DnsQueryOptions
  readonly #open = new Set<PendingCall>()
  readonly #resolve: (answer: DnsAnswer<RecordType>) => void
  #turns: string[] = []
  #last: PendingCall | null = null
  #fault: DnsFault = 'timeout'
  #over = false
  #stopTimeout = () => {}
  #endDeadline = () => {}

  constructor(options: DnsQueryOptions) {
    this.#options = options
    const { promise, resolve } = Promise.withResolvers<DnsAnswer<RecordType>>()
    this.answer = promise
    this.#resolve = resolve
  }

  /** Begins to ask, unless given up before. Resolves when all is over. */
  async ask(): Promise<void> {
    if (!this.#over) {
      const { clock, servers, timeoutMs } = this.#options
      this.#endDeadline = clock.after(timeoutMs, () => this.#end({ fault: this.#fault }))
      this.#turns = turnsOver(servers.inOrder())
      this.#next()
    }
    await this.answer
  }

  giveUp(): void {
    this.#end({ fault: 'timeout' })
  }

  #next(): void {
    this.#stopTimeout()
    const server = this.#turns.shift()
    if (server === undefined) {
      this.#endIfNothingIsLeft()
      return
    }
    const { clock, servers, timeoutMs, wire } = this.#options
    const { said, hangUp } = wire(server)
    const call: PendingCall = { server, hangUp }
    this.#last = call
    this.#open.add(call)
    said.then(received => this.#handle(call, received))
    // A short deadline too leaves the other tries their share.
    this.#stopTimeout = clock.after(Math.min(TIMEOUT_MS, timeoutMs / TRIES_MAX), () => {
      if (this.#open.has(call)) servers.unresponsive(server)
      this.#next()
    })
  }

  #handle(call: PendingCall, said: DnsReply): void {
    this.#open.delete(call)
    if (this.#over) return
    const answer = 'records' in said ? said : { fault: faultFrom(said.code) }
    if ('records' in answer || answer.fault === 'no-name' || answer.fault === 'no-data') {
      this.#options.servers.answered(call.server)
      this.#end(answer)
    } else if ('code' in said) {
      if (answer.fault === 'server') this.#fault = 'server'
      this.#goOnAfter(call, said.code)
    }
  }

  #goOnAfter(call: PendingCall, code: string): void {
    const { servers } = this.#options
    const { server } = call
    if (UNREACHED.has(code)) servers.unresponsive(server)
    else servers.answered(server)
    if (!PASSING.has(code)) this.#turns = this.#turns.filter(other => other !== server)
    // A server that just restarts refuses at once: before the same one is asked again, patience runs out.
    const mustWait = code === 'ECONNREFUSED' && this.#turns[0] === server
    if (call === this.#last && !mustWait) this.#next()
    else this.#endIfNothingIsLeft()
  }

  #endIfNothingIsLeft(): void {
    if (this.#open.size === 0 && this.#turns.length === 0) this.#end({ fault: this.#fault })
  }

  #end(answer: DnsAnswer<RecordType>): void {
    if (this.#over) return
    this.#over = true
    this.#stopTimeout()
    this.#endDeadline()
    for (const call of this.#open) call.hangUp()
    this.#resolve(answer)
  }
}

type DnsQueryOptions = {
  readonly wire: DnsTransport
  readonly servers: DnsFailover
  readonly clock: Clock
  readonly timeoutMs: number
}
type PendingCall = { readonly server: string; hangUp(): unknown }

/** After so long a silence the next server is asked too. Below 2 s, so that a dead first server hardly shows. */
const TIMEOUT_MS = 1.5 * SECOND
/** Tries of one question over all servers, or one each where there are more servers. */
const TRIES_MAX = 3

/** Each server in turn, and again from the first while tries are left. */
const turnsOver = (servers: readonly string[]) =>
  Array.from(
    { length: Math.max(TRIES_MAX, servers.length) },
    (_, i) => servers[i % servers.length],
  ).filter(server => server !== undefined)

/** Nothing came back. */
const UNREACHED: ReadonlySet<string> = new Set(['ETIMEOUT', 'ECONNREFUSED', 'ECANCELLED'])
/** What the same server may not say again. Any other fault (REFUSED, FORMERR, NOTIMP, garbage) it would only repeat. */
const PASSING: ReadonlySet<string> = new Set(['ESERVFAIL', 'ETIMEOUT', 'ECONNREFUSED'])

function faultFrom(code: string): DnsFault {
  if (code === 'ENOTFOUND') return 'no-name'
  if (code === 'ENODATA') return 'no-data'
  return code === 'ETIMEOUT' || code === 'ECANCELLED' ? 'timeout' : 'server'
}
