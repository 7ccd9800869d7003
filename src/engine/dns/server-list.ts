import { type Clock, SECOND } from '../../platform/clock.ts'

/** The DNS servers to query; recently unresponsive ones come last. */
export class DnsFailover {
  readonly #clock: Clock
  readonly #configured: readonly string[]
  readonly #readSystem: () => readonly string[]
  readonly #silentUntil = new Map<string, number>()
  #system: readonly string[] = []
  #systemCachedUntil = Number.NEGATIVE_INFINITY

  /** Uses the `configured` servers; without any, those of `system`, which is read periodically. */
  constructor(options: {
    clock: Clock
    configured: readonly string[]
    system: () => readonly string[]
  }) {
    this.#clock = options.clock
    this.#configured = options.configured
    this.#readSystem = options.system
  }

  ordered(): readonly string[] {
    const servers = this.#configured.length > 0 ? this.#configured : this.#systemNow()
    if (this.#silentUntil.size === 0) return servers
    const isSilent = (server: string) =>
      this.#clock.monotonicNow() < (this.#silentUntil.get(server) ?? 0)
    return [...servers.filter(server => !isSilent(server)), ...servers.filter(isSilent)]
  }

  markUnresponsive(server: string): void {
    this.#silentUntil.set(server, this.#clock.monotonicNow() + SILENT_MS)
  }

  markResponsive(server: string): void {
    this.#silentUntil.delete(server)
  }

  #systemNow(): readonly string[] {
    if (this.#clock.monotonicNow() >= this.#systemCachedUntil) {
      this.#system = this.#readSystem()
      this.#systemCachedUntil = this.#clock.monotonicNow() + SYSTEM_TTL_MS
    }
    return this.#system
  }
}

/** How long an unresponsive server comes last; then one query tests it again. */
const SILENT_MS = 30 * SECOND
/** A changed resolv.conf takes effect within this time; reading it takes about 40 µs. */
const SYSTEM_TTL_MS = 2 * SECOND
