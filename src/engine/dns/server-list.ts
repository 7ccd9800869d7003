import { type Clock, SECOND } from '../../platform/clock.ts'

/** The DNS servers to ask, those that lately kept silent last. */
export class DnsFailover {
  readonly #clock: Clock
  readonly #given: readonly string[]
  readonly #readSystem: () => readonly string[]
  readonly #silentUntil = new Map<string, number>()
  #system: readonly string[] = []
  #systemCachedUntil = Number.NEGATIVE_INFINITY

  /** `given` as they are, or where there are none what `system` says from time to time. */
  constructor(options: {
    clock: Clock
    given: readonly string[]
    system: () => readonly string[]
  }) {
    this.#clock = options.clock
    this.#given = options.given
    this.#readSystem = options.system
  }

  inOrder(): string[] {
    const isSilent = (server: string) =>
      this.#clock.monotonicNow() < (this.#silentUntil.get(server) ?? 0)
    const servers = this.#given.length > 0 ? this.#given : this.#systemNow()
    return [...servers.filter(server => !isSilent(server)), ...servers.filter(isSilent)]
  }

  unresponsive(server: string): void {
    this.#silentUntil.set(server, this.#clock.monotonicNow() + SILENT_MS)
  }

  answered(server: string): void {
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

/** How long a silent server is asked last. After it the first question that meets silence pays for all. */
const SILENT_MS = 30 * SECOND
/** A changed resolv.conf is seen within this time, without a restart; reading it costs some 40 µs. */
const SYSTEM_TTL_MS = 2 * SECOND
