/** Sessions of everybody, or of one client. */
export type SessionCounters = {
  readonly connections: number
  readonly sessionsNow: number
  readonly sessionsPeak: number
}

/** Counts who is there and who was, client by client. */
export class Attendance {
  #all = new Count()
  #byClient = new Map<string, Count>()

  get sessionsNow(): number {
    return this.#all.sessionsNow
  }

  opened(client: string): void {
    this.#all.opened()
    const count = this.#byClient.get(client) ?? new Count()
    this.#byClient.set(client, count)
    count.opened()
  }

  closed(client: string): void {
    this.#all.sessionsNow -= 1
    const count = this.#byClient.get(client)
    if (count !== undefined) count.sessionsNow -= 1
  }

  /** Begins again; sessions that are open stay counted. */
  reset(): void {
    this.#all = this.#all.fromNowOn()
    const present = [...this.#byClient].filter(([, count]) => count.sessionsNow > 0)
    this.#byClient = new Map(present.map(([client, count]) => [client, count.fromNowOn()]))
  }

  /** What was counted so far, apart from what will be. */
  counters(): SessionCounters & { readonly clients: Readonly<Record<string, SessionCounters>> } {
    const clients = [...this.#byClient].map(([client, count]) => [client, { ...count }] as const)
    return { ...this.#all, clients: Object.fromEntries(clients) }
  }
}

class Count implements SessionCounters {
  connections = 0
  sessionsNow = 0
  sessionsPeak = 0

  opened(): void {
    this.connections += 1
    this.sessionsNow += 1
    this.sessionsPeak = Math.max(this.sessionsPeak, this.sessionsNow)
  }

  fromNowOn(): Count {
    const { sessionsNow } = this
    return Object.assign(new Count(), { sessionsNow, sessionsPeak: sessionsNow })
  }
}
