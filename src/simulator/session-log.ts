import { type Clock, SECOND, systemClock } from '../platform/clock.ts'

/** Session counts in total, of one client, or with recipients of one domain. */
export type SessionCounters = {
  readonly connections: number
  /** Maximum number of connections opened within one second. */
  readonly connectionsPerSecondPeak: number
  readonly sessionsNow: number
  readonly sessionsPeak: number
}

/** Counts open and past sessions, in total and by key (client address or domain). */
export class SessionLog {
  readonly #clock: Clock
  #all: Count
  #byClient = new Map<string, Count>()

  constructor(clock: Clock = systemClock) {
    this.#clock = clock
    this.#all = new Count(clock)
  }

  get sessionsNow(): number {
    return this.#all.sessionsNow
  }

  opened(client: string): void {
    this.#all.opened()
    const count = this.#byClient.get(client) ?? new Count(this.#clock)
    this.#byClient.set(client, count)
    count.opened()
  }

  closed(client: string): void {
    this.#all.sessionsNow -= 1
    const count = this.#byClient.get(client)
    if (count !== undefined) count.sessionsNow -= 1
  }

  /** Resets all counts except open sessions. */
  reset(): void {
    this.#all = this.#all.restarted()
    const open = [...this.#byClient].filter(([, count]) => count.sessionsNow > 0)
    this.#byClient = new Map(open.map(([client, count]) => [client, count.restarted()]))
  }

  /** Returns a snapshot. */
  counters(): SessionCounters & { readonly clients: Readonly<Record<string, SessionCounters>> } {
    const clients = [...this.#byClient].map(([client, count]) => [client, { ...count }] as const)
    return { ...this.#all, clients: Object.fromEntries(clients) }
  }
}

class Count implements SessionCounters {
  connections = 0
  connectionsPerSecondPeak = 0
  sessionsNow = 0
  sessionsPeak = 0
  readonly #clock: Clock
  /** Times of opened sessions; those of the last second start at index `#recent`. */
  #openedAt: number[] = []
  #recent = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  opened(): void {
    const now = this.#clock.monotonicNow()
    this.#openedAt.push(now)
    while (now - (this.#openedAt[this.#recent] as number) >= SECOND) this.#recent += 1
    const inLastSecond = this.#openedAt.length - this.#recent
    this.connectionsPerSecondPeak = Math.max(this.connectionsPerSecondPeak, inLastSecond)
    if (this.#recent > inLastSecond) {
      this.#openedAt = this.#openedAt.slice(this.#recent)
      this.#recent = 0
    }
    this.connections += 1
    this.sessionsNow += 1
    this.sessionsPeak = Math.max(this.sessionsPeak, this.sessionsNow)
  }

  restarted(): Count {
    const { sessionsNow } = this
    return Object.assign(new Count(this.#clock), { sessionsNow, sessionsPeak: sessionsNow })
  }
}
