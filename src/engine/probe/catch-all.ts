import { orOnAbort } from '../../platform/abort.ts'
import { type Clock, DAY, HOUR, SECOND } from '../../platform/clock.ts'
import { withResolvers } from '../../platform/es2024.ts'
import type { Random } from '../../platform/random.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import { catchAllKey, hostsAt, type ProbeTarget } from './mx-groups.ts'
import { type CatchAllStore, SharedCatchAllLoader } from './shared-catch-all.ts'

/** A catch-all domain may stop being one; the opposite change is rare. */
export const CATCH_ALL_TTL_MS = { yes: 24 * HOUR, no: 7 * DAY } as const
/** The domains of a large list; about 200 bytes each, 10 MB. */
const DOMAINS_MAX = 50_000
/**
 * How long an undecided domain is tested with the same random name. Greylists store recipients, so
 * a new name each time would be deferred forever. Four hours is the longest wait of a list for a
 * retry.
 */
const NAME_TTL_MS = 4 * HOUR
/** How long to wait before a domain without a shared result is loaded again. */
const RECHECK_MS = 10 * SECOND

/** A first letter and 19 letters or digits: with 36^19 names, no mailbox has one by accident. */
const NAME_LENGTH = 20

/** Returns a local part that no mailbox has and that cannot be guessed. */
export function randomLocalPart(random: Random): string {
  return `${'abcdefghijklmnopqrstuvwxyz'[random.below(26)]}${random.token(NAME_LENGTH - 1)}`
}

export type CatchAllLock = KnownCatchAllResult | AcquiredLock

/** A result from the cache or from another session; `known` is null if it is undecided. */
export type KnownCatchAllResult = {
  readonly known: boolean | null
  /** Whether the replies of the session that ran the test are in step; null if they are. */
  readonly inStep: Promise<boolean> | null
}

/** The right to run the test. Only the first call of either method has an effect. */
export type AcquiredLock = {
  /**
   * Sets the result: null for no evidence. It is cached once the replies are known to be in step.
   */
  readonly resolve: (catchAll: boolean | null, inStep?: Promise<boolean>) => void
  /** Releases the lock without a result, so that a waiting session can run the test. */
  readonly drop: () => void
}

/** Caches which domains are catch-alls, and makes sure that each is tested once at a time. */
export class CatchAllCache {
  readonly #known: TtlMap<{ catchAll: boolean }>
  /** Random names used in the tests of undecided domains. */
  readonly #names: TtlMap<RandomName>
  readonly #pendingTests = new Map<string, PendingTest>()
  readonly #store: CatchAllStore | null
  readonly #loader: SharedCatchAllLoader | null
  /** Domains for which the shared store was read recently. */
  readonly #loaded: TtlMap<object>

  /** `store` holds the results of all processes; null if there is no other process. */
  constructor(clock: Clock, store: CatchAllStore | null = null) {
    this.#known = new TtlMap({ sizeMax: DOMAINS_MAX, clock })
    this.#names = new TtlMap({ sizeMax: DOMAINS_MAX, clock })
    this.#loaded = new TtlMap({ sizeMax: DOMAINS_MAX, clock })
    this.#store = store
    this.#loader =
      store &&
      new SharedCatchAllLoader(clock, store, (domain, { catchAll, keepMs }) =>
        this.#known.set(domain, { catchAll }, keepMs),
      )
  }

  /** Returns whether the domain is a catch-all, or null if that is unknown. */
  get(domain: string): boolean | null {
    return this.#known.get(domain)?.catchAll ?? null
  }

  /**
   * Whether `acquire` returns a result at once, perhaps one from replies that are not yet known to
   * be in step.
   */
  isResolved(domain: string, single: boolean): boolean {
    return (
      this.get(domain) !== null || (!single && this.#pendingTests.get(domain)?.isResolved === true)
    )
  }

  set(domain: string, catchAll: boolean): void {
    const keepMs = CATCH_ALL_TTL_MS[catchAll ? 'yes' : 'no']
    this.#known.set(domain, { catchAll }, keepMs)
    this.#names.delete(domain)
    try {
      this.#store?.set(domain, { catchAll, keepMs })
    } catch {
      // Other processes test the domain again.
    }
  }

  /** Returns the random local part for the test of a domain: the same one until it is decided. */
  nameFor(domain: string, random: Random): string {
    return this.#randomName(domain, random).text
  }

  /**
   * Locks the domain to send the random name to a server that greylists. Returns null if this
   * egress has sent it already, or if the domain is decided or being tested.
   */
  claimIntroduction(domain: string, egress: string, random: Random): AcquiredLock | null {
    const { introducedBy } = this.#randomName(domain, random)
    if (introducedBy.has(egress)) return null
    const lock = this.lock(domain)
    if (lock !== null) introducedBy.add(egress)
    return lock
  }

  #randomName(domain: string, random: Random): RandomName {
    const create = () => ({ text: randomLocalPart(random), introducedBy: new Set<string>() })
    return this.#names.getOrCreate(domain, create, NAME_TTL_MS)
  }

  /** Calls `load` for the domains of the targets that need a test at an operator. */
  loadFor(targets: readonly ProbeTarget[], operator: string): Promise<void> | null {
    if (this.#loader === null) return null
    const untested = targets.filter(target => hostsAt(target, operator).catchAll === null)
    return this.load(untested.map(target => catchAllKey(target, operator)))
  }

  /** Loads the results of other processes for domains unknown here; null if none needs loading. */
  load(domains: readonly string[]): Promise<void> | null {
    if (this.#loader === null) return null
    const isNew = (domain: string) => this.get(domain) === null && !this.#loaded.get(domain)
    const missing = [...new Set(domains)].filter(isNew)
    for (const domain of missing) this.#loaded.set(domain, LOADED, RECHECK_MS)
    return missing.length === 0 ? null : this.#loader.load(missing)
  }

  /** Waits for the test of a domain in another session, if there is one, or until `signal` aborts. */
  async settled(domain: string, signal: AbortSignal): Promise<void> {
    const pending = this.#pendingTests.get(domain)
    if (pending !== undefined) await orOnAbort(pending.result, signal, null)
  }

  /**
   * Waits for a test of this domain in another session, until `signal` aborts, or returns a lock if
   * no test is running. A `single` request does not wait for another connection to end: it also
   * gets a lock if the domain was tested but the replies are not yet known to be in step.
   */
  async acquire(domain: string, signal?: AbortSignal, single = false): Promise<CatchAllLock> {
    for (;;) {
      const known = this.get(domain)
      if (known !== null) return { known, inStep: null }
      const pending = this.#pendingTests.get(domain)
      if (isFree(pending, single)) return this.#createLock(domain)
      const result = await orOnAbort(pending.result, signal, null)
      if (result === null) return { known: null, inStep: null }
      if (result !== 'dropped' && !(single && result.inStep !== null)) return result
    }
  }

  /**
   * Returns a lock at once, or null if the domain is known or being tested. `single` works as in
   * `acquire`.
   */
  lock(domain: string, single = false): AcquiredLock | null {
    const mayAsk = this.get(domain) === null && isFree(this.#pendingTests.get(domain), single)
    return mayAsk ? this.#createLock(domain) : null
  }

  #createLock(domain: string): AcquiredLock {
    const { promise, resolve } = withResolvers<KnownCatchAllResult | 'dropped'>()
    const pending: PendingTest = { result: promise, isResolved: false }
    this.#pendingTests.set(domain, pending)
    const remove = () =>
      this.#pendingTests.get(domain) === pending && this.#pendingTests.delete(domain)
    const finish = (result: KnownCatchAllResult | 'dropped') => {
      pending.isResolved = true
      resolve(result)
    }
    return {
      resolve: (known, inStep) => {
        if (pending.isResolved) return
        finish({ known, inStep: (known !== null && inStep) || null })
        const conclude = (isInStep: boolean) => {
          remove()
          if (isInStep && known !== null) this.set(domain, known)
        }
        if (known === null || inStep === undefined) conclude(true)
        // A result that cannot be kept is found again by the next test.
        else inStep.then(conclude).catch(() => {})
      },
      drop: () => {
        if (pending.isResolved) return
        remove()
        finish('dropped')
      },
    }
  }
}

type PendingTest = {
  readonly result: Promise<KnownCatchAllResult | 'dropped'>
  isResolved: boolean
}

const isFree = (pending: PendingTest | undefined, single: boolean): pending is undefined =>
  pending === undefined || (single && pending.isResolved)

const LOADED = {}

/** Greylists store sender and recipient together, so each egress introduces the name separately. */
type RandomName = { readonly text: string; readonly introducedBy: Set<string> }
