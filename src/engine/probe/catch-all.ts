import { type Clock, DAY, HOUR, SECOND } from '../../platform/clock.ts'
import { orOnAbort } from '../../platform/error.ts'
import type { Random } from '../../platform/random.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import { type CatchAllStore, SharedCatchAllLoader } from './shared-catch-all.ts'

/** A domain that takes everything may stop doing so; one that tells seldom begins to take everything. */
export const CATCH_ALL_TTL_MS = { yes: 24 * HOUR, no: 7 * DAY } as const
const DOMAINS_MAX = 50_000
/**
 * How long an undecided domain is asked with the same random name. Greylists know recipients, so a
 * new name each time would be deferred forever; four hours is as long as a list waits for a retry.
 */
const NAME_TTL_MS = 4 * HOUR
/** What others did not know either is not looked for again for so long. */
const RECHECK_MS = 10 * SECOND

/** Letters and digits after the first letter: 36^19 names, so no mailbox has one by chance. */
const NAME_LENGTH = 20

/** A local part that no mailbox has and that no one can guess. */
export function randomLocalPart(random: Random): string {
  return `${'abcdefghijklmnopqrstuvwxyz'[random.below(26)]}${random.token(NAME_LENGTH - 1)}`
}

export type CatchAllLock = KnownCatchAllResult | AcquiredLock

/** Known already, or told by another conversation just now; null: it could not be told. */
export type KnownCatchAllResult = {
  readonly known: boolean | null
  /** Whether the replies of the connection that asked are in step; null: they are. */
  readonly inStep: Promise<boolean> | null
}

/** It falls to the holder to ask; the first call of either counts. */
export type AcquiredLock = {
  /**
   * Says what came of it: null for no evidence. It is remembered when the replies are known to be
   * in step.
   */
  readonly resolve: (catchAll: boolean | null, inStep?: Promise<boolean>) => void
  /** Hands the turn back without an answer: whoever waits may ask. */
  readonly drop: () => void
}

/** Which domains take mail for everybody: asked once per domain, whoever needs to know it. */
export class CatchAllCache {
  readonly #known: TtlMap<{ catchAll: boolean }>
  /** Random names that undecided domains were asked about. */
  readonly #names: TtlMap<RandomName>
  readonly #asking = new Map<string, Asking>()
  readonly #store: CatchAllStore | null
  readonly #loader: SharedCatchAllLoader | null
  /** What others were asked about. */
  readonly #lookedUp: TtlMap<object>

  /** `store`: what other processes know. */
  constructor(clock: Clock, store: CatchAllStore | null = null) {
    this.#known = new TtlMap({ sizeMax: DOMAINS_MAX, clock })
    this.#names = new TtlMap({ sizeMax: DOMAINS_MAX, clock })
    this.#lookedUp = new TtlMap({ sizeMax: DOMAINS_MAX, clock })
    this.#store = store
    this.#loader =
      store &&
      new SharedCatchAllLoader(clock, store, (domain, { catchAll, keepMs }) =>
        this.#known.set(domain, { catchAll }, keepMs),
      )
  }

  /** What is known of a domain, or null. */
  get(domain: string): boolean | null {
    return this.#known.get(domain)?.catchAll ?? null
  }

  /** Whether `take` gives an answer at once, though perhaps one of replies that are not known to be in step yet. */
  isNotified(domain: string, single: boolean): boolean {
    return this.get(domain) !== null || (!single && this.#asking.get(domain)?.isNotified === true)
  }

  set(domain: string, catchAll: boolean): void {
    const keepMs = CATCH_ALL_TTL_MS[catchAll ? 'yes' : 'no']
    this.#known.set(domain, { catchAll }, keepMs)
    this.#names.delete(domain)
    this.#store?.set(domain, { catchAll, keepMs })
  }

  /** The random local part to ask a domain about: the same one until the domain is decided. */
  nameFor(domain: string, random: Random): string {
    return this.#randomName(domain, random).text
  }

  /**
   * Claims the turn to show the random name to a server that greylists. Null where this egress has
   * shown it already, or where the domain is decided or being asked.
   */
  claimIntroduction(domain: string, egress: string, random: Random): AcquiredLock | null {
    const { introducedBy } = this.#randomName(domain, random)
    if (introducedBy.has(egress)) return null
    const turn = this.lock(domain)
    if (turn !== null) introducedBy.add(egress)
    return turn
  }

  #randomName(domain: string, random: Random): RandomName {
    const name = this.#names.get(domain) ?? {
      text: randomLocalPart(random),
      introducedBy: new Set<string>(),
    }
    this.#names.set(domain, name, NAME_TTL_MS)
    return name
  }

  /** Learns what other processes found, for those of these domains that are not known here; null where there is none. */
  load(domains: readonly string[]): Promise<void> | null {
    if (this.#loader === null) return null
    const isNew = (domain: string) => this.get(domain) === null && !this.#lookedUp.get(domain)
    const sought = [...new Set(domains)].filter(isNew)
    for (const domain of sought) this.#lookedUp.set(domain, LOOKED, RECHECK_MS)
    return sought.length === 0 ? null : this.#loader.learn(sought)
  }

  /**
   * Waits for the conversation that asks about this domain, until `signal` aborts; gives the
   * caller the turn to ask where there is none. `single` does not wait for the end of another
   * connection: it gets the turn too where the domain was asked about, but the replies are not
   * known to be in step yet.
   */
  async take(domain: string, signal?: AbortSignal, single = false): Promise<CatchAllLock> {
    for (;;) {
      const known = this.get(domain)
      if (known !== null) return { known, inStep: null }
      const asking = this.#asking.get(domain)
      if (isFree(asking, single)) return this.#turn(domain)
      const notified = await orOnAbort(asking.notified, signal, null)
      if (notified === null) return { known: null, inStep: null }
      if (notified !== 'dropped' && !(single && notified.inStep !== null)) return notified
    }
  }

  /**
   * The turn to ask, at once; null where it is known or somebody is asking. `single`: as for
   * `take`.
   */
  lock(domain: string, single = false): AcquiredLock | null {
    const mayAsk = this.get(domain) === null && isFree(this.#asking.get(domain), single)
    return mayAsk ? this.#turn(domain) : null
  }

  #turn(domain: string): AcquiredLock {
    const { promise, resolve } = Promise.withResolvers<KnownCatchAllResult | 'dropped'>()
    const asking: Asking = { notified: promise, isNotified: false }
    this.#asking.set(domain, asking)
    const over = () => this.#asking.get(domain) === asking && this.#asking.delete(domain)
    const end = (notified: KnownCatchAllResult | 'dropped') => {
      asking.isNotified = true
      resolve(notified)
    }
    return {
      resolve: (known, inStep) => {
        if (asking.isNotified) return
        end({ known, inStep: (known !== null && inStep) || null })
        const conclude = (isInStep: boolean) => {
          over()
          if (isInStep && known !== null) this.set(domain, known)
        }
        if (known === null || inStep === undefined) conclude(true)
        else void inStep.then(conclude)
      },
      drop: () => {
        if (asking.isNotified) return
        over()
        end('dropped')
      },
    }
  }
}

type Asking = {
  readonly notified: Promise<KnownCatchAllResult | 'dropped'>
  isNotified: boolean
}

const isFree = (asking: Asking | undefined, single: boolean): asking is undefined =>
  asking === undefined || (single && asking.isNotified)

const LOOKED = {}

/** Greylists know sender and recipient together, so each egress introduces the name for itself. */
type RandomName = { readonly text: string; readonly introducedBy: Set<string> }
