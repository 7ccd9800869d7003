import type { Database } from '../db/database.ts'
import { addressKey, isFault } from '../engine/address/address.ts'
import type { Result } from '../engine/verdict/verdict.ts'
import { MINUTE } from '../platform/clock.ts'
import { newAddressState } from './address-state.ts'
import { adjustResult, CALIBRATED, countedReason } from './adjust-result.ts'
import {
  type BounceModel,
  buildBounceModel,
  buildModel,
  type CalibrationModel,
} from './calibration-model.ts'
import {
  type DomainCount,
  getCatchAllCounts,
  getDomainCounts,
  getVerdictCounts,
} from './feedback-counts.ts'
import {
  type AddressState,
  getAddressStates,
  listEnrolledAccounts,
  putVerdicts,
} from './feedback-store.ts'
import { decidingReply } from './replies.ts'

export type FeedbackSettings = {
  /** Whose feedback verifications use: that of their account, or of all accounts. */
  readonly feedbackScope: 'account' | 'all'
  /** Whether the confidence of results is measured. */
  readonly calibration: boolean
}

/** Feedback of another process is used after this time. */
const REFRESH_MS = MINUTE
/**
 * With new feedback a model is rebuilt when this many times the duration of its building has
 * passed, so that a steady stream of feedback spends 2 % of the time on it. Most take 1 ms.
 */
const KEEP_FACTOR = 50

/** What the counts of an account say. Only projections need the bounces. */
type Models = { readonly calibration: CalibrationModel; readonly getBounces: () => BounceModel }

type CachedModel = {
  readonly at: number
  readonly model: Promise<Models>
  /** Whether there is newer feedback of this process. */
  isStale: boolean
  /** Maximum time for which a stale model is used, in ms. */
  keepMs: number
}

/** The accounts with feedback. */
type EnrolledAccounts = {
  /** When they were read, by the monotonic clock. */
  readonly at: number
  readonly accounts: Promise<ReadonlySet<string>>
  /** The result of `accounts`; null until they are read. */
  known: ReadonlySet<string> | null
}

/** Applies the feedback of accounts to results. Costs nothing for an account without feedback. */
export class FeedbackKnowledge {
  readonly #database: Database
  readonly #settings: FeedbackSettings
  #enrolled: EnrolledAccounts | null = null
  readonly #models = new Map<string, CachedModel>()

  constructor(database: Database, settings: FeedbackSettings) {
    this.#database = database
    this.#settings = settings
  }

  /** Whether feedback of the account, or shared feedback, exists. */
  async isEnrolled(accountId: string): Promise<boolean> {
    return this.#includes(await this.#accounts(), accountId)
  }

  /** Whether it is known, without a read, that neither exists. */
  isKnownWithout(accountId: string): boolean {
    const enrolled = this.#enrolled
    if (enrolled === null || !this.#isCurrent(enrolled)) return false
    return enrolled.known !== null && !this.#includes(enrolled.known, accountId)
  }

  #includes(accounts: ReadonlySet<string>, accountId: string): boolean {
    return this.#settings.feedbackScope === 'all' ? accounts.size > 0 : accounts.has(accountId)
  }

  #isCurrent({ at }: EnrolledAccounts): boolean {
    return this.#database.clock.monotonicNow() - at <= REFRESH_MS
  }

  /** Makes new feedback of this process visible at once, to the confidence as soon as possible. */
  refresh(): void {
    this.#enrolled = null
    for (const cached of this.#models.values()) cached.isStale = true
  }

  /**
   * Applies the feedback to results of an account, and stores their verdicts in the transaction, to
   * be compared with later feedback. Reads once for all results.
   */
  async adjust(
    trx: Database['db'],
    accountId: string,
    results: readonly Result[],
  ): Promise<Result[]> {
    if (results.length === 0 || !(await this.isEnrolled(accountId))) return [...results]
    const owner = this.#settings.feedbackScope === 'all' ? null : accountId
    const keys = results.map(keyOf)
    const known = await this.#readStates(trx, owner, keys)
    const domains = await getDomainCounts(trx, owner, catchAllDomains(results))
    const model = this.#settings.calibration ? (await this.#model(owner)).calibration : null
    const adjusted = results.map((result, index) =>
      adjustResult(result, {
        state: known.get(keys[index] ?? '') ?? null,
        domain: domains.get(result.provider ?? '') ?? null,
        model,
      }),
    )
    await putVerdicts(trx, toVerdicts(accountId, adjusted))
    return adjusted
  }

  /** Returns the reports about addresses of a domain; null without any. */
  async getDomainCount(accountId: string, domain: string): Promise<DomainCount | null> {
    if (!(await this.isEnrolled(accountId))) return null
    const owner = this.#settings.feedbackScope === 'all' ? null : accountId
    const counts = await getDomainCounts(this.#database.reader, owner, [domain])
    return counts.get(domain) ?? null
  }

  /** Returns how often mail of an account bounced; null without feedback. */
  async getBounceModel(accountId: string): Promise<BounceModel | null> {
    if (!(await this.isEnrolled(accountId))) return null
    const owner = this.#settings.feedbackScope === 'all' ? null : accountId
    return (await this.#model(owner)).getBounces()
  }

  /** The newest outcome of each address. */
  async #readStates(
    trx: Database['db'],
    owner: string | null,
    keys: readonly (string | null)[],
  ): Promise<Map<string, AddressState>> {
    const wanted = [...new Set(keys.filter(key => key !== null))]
    const states = new Map<string, AddressState>()
    for (const state of await getAddressStates(trx, owner, wanted)) {
      const other = states.get(state.address_key)
      if ((other?.occurred_at ?? -1) < (state.occurred_at ?? 0))
        states.set(state.address_key, state)
    }
    return states
  }

  #accounts(): Promise<ReadonlySet<string>> {
    if (this.#enrolled !== null && this.#isCurrent(this.#enrolled)) return this.#enrolled.accounts
    const accounts = listEnrolledAccounts(this.#database).then(all => new Set(all))
    const at = this.#database.clock.monotonicNow()
    const enrolled: EnrolledAccounts = { at, accounts, known: null }
    this.#enrolled = enrolled
    accounts.then(
      all => {
        enrolled.known = all
      },
      () => {
        this.#enrolled = null
      },
    )
    return accounts
  }

  #model(owner: string | null): Promise<Models> {
    const { clock } = this.#database
    const now = clock.monotonicNow()
    const name = owner ?? ALL
    const cached = this.#models.get(name)
    const age = cached === undefined ? 0 : now - cached.at
    if (cached !== undefined && age <= REFRESH_MS && (!cached.isStale || age < cached.keepMs)) {
      return cached.model
    }
    const built: CachedModel = {
      at: now,
      isStale: false,
      keepMs: REFRESH_MS,
      model: this.#build(owner).finally(() => {
        built.keepMs = KEEP_FACTOR * (clock.monotonicNow() - now)
      }),
    }
    this.#models.set(name, built)
    built.model.catch(() => this.#models.delete(name))
    return built.model
  }

  async #build(owner: string | null): Promise<Models> {
    const [counts, domains] = await Promise.all([
      getVerdictCounts(this.#database, owner),
      getCatchAllCounts(this.#database, owner),
    ])
    const now = this.#database.clock.now()
    let bounces: BounceModel | null = null
    return {
      calibration: buildModel(counts, domains, now),
      getBounces: () => {
        bounces ??= buildBounceModel(counts, now)
        return bounces
      },
    }
  }
}

/** No account has this ID. */
const ALL = '*'

const keyOf = ({ evidence: { address } }: Result) => (isFault(address) ? null : addressKey(address))

const catchAllDomains = (results: readonly Result[]): string[] => [
  ...new Set(
    results.flatMap(({ verdict, provider }) =>
      verdict.reason === 'catch_all' && provider !== null ? [provider] : [],
    ),
  ),
]

/** The verdicts that feedback can confirm or refute. One that feedback itself decided cannot. */
function toVerdicts(accountId: string, results: readonly Result[]): AddressState[] {
  const states = new Map<string, AddressState>()
  for (const result of results) {
    const { verdict, evidence, checkedAt } = result
    const key = keyOf(result)
    if (key === null || !CALIBRATED.has(verdict.reason) || evidence.feedback?.decides) continue
    states.set(key, {
      ...newAddressState(key, accountId),
      reason: countedReason(result),
      operator: evidence.operator?.name ?? null,
      confidence: verdict.confidence,
      deliverable: Number(verdict.deliverable),
      verified_at: checkedAt,
      reply: decidingReply(result),
    })
  }
  return [...states.values()]
}
