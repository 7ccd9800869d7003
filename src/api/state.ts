import { touchKeys } from '../accounts/key-store.ts'
import { writeAsyncCommit } from '../db/database.ts'
import { type Breakdown, countBreakdown } from '../jobs/results/breakdown.ts'
import { type ChangeCount, countChanges } from '../jobs/reverify/changes.ts'
import { Batcher } from '../platform/batcher.ts'
import { SECOND } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import { TtlMap } from '../platform/ttl-map.ts'
import { limitByAccount } from './account-share.ts'
import { ApiError } from './errors/api-error.ts'
import { createStatisticsCache, type StatisticsCache } from './jobs/breakdowns.ts'
import { createOutlooks, type Outlooks } from './jobs/outlook.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { AdmissionQueue } from './middleware/admission-queue.ts'
import type { Service } from './service.ts'

/** Each stream reads the database twice a second; a person has a few pages open. */
export const STREAMS_PER_ACCOUNT_MAX = 20
export const STREAMS_MAX = 1_000

/** Verifications at the same time. More are refused at once: their clients would time out. */
export const VERIFYING_MAX = 1_000
/** Those of one account: a quarter is left for the others, which is enough for hundreds a second. */
export const VERIFYING_ACCOUNT_MAX = 750
/** Few accounts use up their shares at the same time, each with a few keys. */
const CROWDED_KEYS_MAX = 1_000

/** A delay of the sandbox holds a connection and some KB, nothing else. */
const DELAYS_MAX = 1_000
/** More than the tests of one client wait for at the same time. */
export const DELAYS_ACCOUNT_MAX = 100

/** The slot of an open event stream. */
type StreamSlot = {
  /** Aborts when the service stops. */
  readonly stopping: AbortSignal
  /** May be called twice. */
  leave(): void
}

/** Limits the open event streams and closes them at shutdown. */
export class Streams {
  readonly #byAccount = new Map<string, number>()
  readonly #stopping = new AbortController()
  #open = 0

  /** Acquires a slot. Throws ApiError if none is free. */
  enter(accountId: string): StreamSlot {
    const ofAccount = this.#byAccount.get(accountId) ?? 0
    if (ofAccount >= STREAMS_PER_ACCOUNT_MAX) throw tooMany()
    if (this.#open >= STREAMS_MAX) throw tooBusy()
    this.#open++
    this.#byAccount.set(accountId, ofAccount + 1)
    let isHeld = true
    return {
      stopping: this.#stopping.signal,
      leave: () => {
        if (isHeld) this.#leave(accountId)
        isHeld = false
      },
    }
  }

  /** Closes all streams at shutdown; clients reconnect to the next process. */
  end(): void {
    this.#stopping.abort()
  }

  #leave(accountId: string) {
    this.#open--
    const rest = (this.#byAccount.get(accountId) ?? 0) - 1
    if (rest > 0) this.#byAccount.set(accountId, rest)
    else this.#byAccount.delete(accountId)
  }
}

const tooMany = () =>
  new ApiError(
    'rate_limit',
    `${STREAMS_PER_ACCOUNT_MAX} streams of this account are open, which is the maximum. Close one, or poll the job instead.`,
    { retryAfterS: 5 },
  )

const tooBusy = () =>
  new ApiError(
    'service_unavailable',
    `${STREAMS_MAX} streams are open, which is the maximum. Poll the job instead.`,
    { retryAfterS: 5 },
  )

/** State that all routes of a service share. */
export type State = {
  readonly metrics: Metrics
  /** Verification requests in flight. */
  verifying: number
  /** Admits a verification of an account, and returns the function that ends it. */
  readonly verifyingShare: (accountId: string) => () => void
  /** The same for a delay of the sandbox. */
  readonly delayShare: (accountId: string) => () => void
  /** The account of each Authorization header that was refused because its share is full. */
  readonly crowdedKeys: TtlMap<{ readonly accountId: string }>
  readonly admissions: AdmissionQueue
  /** Idempotency-Keys of requests in flight, with the IDs of their API keys. */
  readonly inFlightKeys: Set<string>
  readonly streams: Streams
  readonly lastUsed: LastUsed
  readonly breakdowns: StatisticsCache<Breakdown>
  readonly changes: StatisticsCache<readonly ChangeCount[]>
  readonly outlooks: Outlooks
}

const states = new WeakMap<Service, State>()

export function getState(service: Service): State {
  const existing = states.get(service)
  if (existing !== undefined) return existing
  const state: State = {
    metrics: createMetrics(service, {
      deliveries: service.deliveries,
      verifying: () => state.verifying,
    }),
    verifying: 0,
    verifyingShare: limitByAccount({
      max: VERIFYING_MAX,
      accountMax: VERIFYING_ACCOUNT_MAX,
      what: 'verifications are in flight',
      retryAfterS: 1,
    }),
    delayShare: limitByAccount({
      max: DELAYS_MAX,
      accountMax: DELAYS_ACCOUNT_MAX,
      what: 'simulated delays are in progress',
      retryAfterS: 1,
    }),
    crowdedKeys: new TtlMap({ sizeMax: CROWDED_KEYS_MAX, clock: service.clock }),
    admissions: new AdmissionQueue(service.clock),
    inFlightKeys: new Set(),
    streams: new Streams(),
    lastUsed: createLastUsed(service),
    breakdowns: createStatisticsCache(service, countBreakdown),
    changes: createStatisticsCache(service, countChanges),
    outlooks: createOutlooks(service),
  }
  states.set(service, state)
  return state
}

/** Tracks when keys were last used: recorded at each request, written in batches. */
interface LastUsed {
  note(keyId: string): void
  /** Writes the recorded times at once. A power cut can lose them. */
  close(): Promise<unknown>
}

function createLastUsed({ clock, database, log }: Service): LastUsed {
  const used = new Batcher<KeyUse>({
    clock,
    waitMs: WRITE_MS,
    sizeMax: KEYS_MAX,
    keyOf: ({ keyId }) => keyId,
    async run(uses) {
      const times = new Map(uses.map(({ keyId, at }) => [keyId, at]))
      await writeAsyncCommit(database, db => touchKeys({ db }, times))
    },
    onFailure(error) {
      log.warn('last-used times of keys could not be written', { why: errorMessage(error) })
      return 'reject'
    },
  })
  return {
    note: keyId => void used.add({ keyId, at: clock.now() }),
    close: () => used.close(),
  }
}

type KeyUse = { readonly keyId: string; readonly at: number }

/** Last-used times need no precision of seconds. */
const WRITE_MS = 10 * SECOND
/** Keys that are written by one statement. */
const KEYS_MAX = 10_000
