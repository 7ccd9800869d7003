import { type Clock, SECOND } from '../platform/clock.ts'
import { TtlMap } from '../platform/ttl-map.ts'
import { limitByAccount } from './account-share.ts'
import { ApiError } from './errors/api-error.ts'
import { requestError } from './errors/request-errors.ts'
import type { Metrics } from './metrics.ts'
import { AdmissionQueue } from './middleware/admission-queue.ts'

/** Verifications at the same time. More are refused at once: their clients would time out. */
export const VERIFYING_MAX = 1_000
/** Those of one account: a quarter is left for the others, which is enough for hundreds a second. */
export const VERIFYING_ACCOUNT_MAX = 750

/** Few accounts use up their shares at the same time, each with a few keys. */
const CROWDED_KEYS_MAX = 1_000
/**
 * For this long after a refusal, requests with the same key are refused while the share of its
 * account is full, without looking the key up. A change of a key reaches other servers within the
 * same time.
 */
const CROWDED_MS = SECOND

/** A delay of the sandbox holds a connection and some KB, nothing else. */
const DELAYS_MAX = 1_000
/** More than the tests of one client wait for at the same time. */
export const DELAYS_ACCOUNT_MAX = 100

const VERIFYING = 'verifications are in flight'

/**
 * Limits the verifications in flight, of the process and of each account. Functions that start
 * something return the function that ends it, which may be called twice.
 */
export class Capacity {
  readonly admissions: AdmissionQueue
  readonly #metrics: Pick<Metrics, 'refused'>
  readonly #startShare = limitByAccount({
    max: VERIFYING_MAX,
    accountMax: VERIFYING_ACCOUNT_MAX,
    what: VERIFYING,
    retryAfterS: 1,
  })
  /** The account of each Authorization header that was refused because its share is full. */
  readonly #crowdedKeys: TtlMap<{ readonly accountId: string }>
  #verifying = 0

  /** Starts a delay of the sandbox of an account. Throws ApiError if too many are in progress. */
  readonly startDelay = limitByAccount({
    max: DELAYS_MAX,
    accountMax: DELAYS_ACCOUNT_MAX,
    what: 'simulated delays are in progress',
    retryAfterS: 1,
  })

  constructor(deps: { readonly clock: Clock; readonly metrics: Pick<Metrics, 'refused'> }) {
    this.#metrics = deps.metrics
    this.admissions = new AdmissionQueue(deps.clock)
    this.#crowdedKeys = new TtlMap({ sizeMax: CROWDED_KEYS_MAX, clock: deps.clock })
  }

  /** Verification requests in flight. */
  get verifying(): number {
    return this.#verifying
  }

  /** Returns the error of a request that does not fit; null if it does. */
  findRefusal(authorization: string): ApiError | null {
    // Requests that wait for their start are not counted as verifying yet.
    if (this.#verifying + this.admissions.waiting >= VERIFYING_MAX) return this.#refuse()
    // An account has its share for all of its keys, so that of one key is no larger.
    const count = this.admissions.countOf(authorization)
    if (count >= VERIFYING_ACCOUNT_MAX) {
      this.#metrics.refused('crowd')
      return requestError('account_share_exceeded', { count, what: VERIFYING, retryAfterS: 1 })
    }
    return this.#findShareRefusal(authorization)
  }

  /** Counts a verification. Throws ApiError if there is no room. */
  startVerifying(): () => void {
    if (this.#verifying >= VERIFYING_MAX) throw this.#refuse()
    return this.countVerifying()
  }

  /** Counts a verification that has been admitted. */
  countVerifying(): () => void {
    this.#verifying++
    let isCounted = true
    return () => {
      if (isCounted) this.#verifying--
      isCounted = false
    }
  }

  /** Starts a verification of an account. Throws ApiError if its share is full. */
  startOfAccount(accountId: string, authorization?: string): () => void {
    try {
      return this.#startShare(accountId)
    } catch (error) {
      if (authorization !== undefined)
        this.#crowdedKeys.set(authorization, { accountId }, CROWDED_MS)
      throw error
    }
  }

  #findShareRefusal(authorization: string): ApiError | null {
    const crowded = this.#crowdedKeys.get(authorization)
    if (crowded === undefined) return null
    try {
      const end = this.#startShare(crowded.accountId)
      end()
      return null
    } catch (error) {
      if (error instanceof ApiError) return error
      throw error
    }
  }

  #refuse(): ApiError {
    this.#metrics.refused('crowd')
    return requestError('share_exceeded', { count: VERIFYING_MAX, what: VERIFYING, retryAfterS: 1 })
  }
}
