import { type Clock, MINUTE, SECOND, sleep } from '../../platform/clock.ts'
import { type Log, writeLog } from '../../platform/log.ts'
import type { Random } from '../../platform/random.ts'
import { ENGINE_LOG } from '../telemetry.ts'
import { type DnsAnswer, isNegative, type RecordType, type Resolver } from './resolver.ts'

/** Validity of a passed check: a change of network is noticed within this time. */
const PASSED_MS = 10 * MINUTE
/**
 * Validity of a failed or unanswered check: short, because lists wait and a check is only four
 * queries.
 */
const FAILED_MS = 30 * SECOND
/** Consecutive domains without mail that expire a passed check. Such a series is rare in lists. */
const ABSENT_IN_A_ROW_MAX = 20
/** Enough for the second server to answer if the first does not reply. */
const TIMEOUT_MS = 3 * SECOND
/**
 * After a lookup failed, a query that is answered within this time shows that only its domain has
 * trouble.
 */
const NEXT_ANSWER_MS = 2 * SECOND

/** Why the answers of a resolver are not trusted. */
export type FalseAnswers = {
  /**
   * `missing`: a name that must exist does not, so negative answers are not trusted.
   * `invented`: a name that cannot exist does, so no answer is trusted.
   */
  readonly kind: 'missing' | 'invented'
  /** An explanation for people. */
  readonly detail: string
}

/** Why a resolver is of no use. `silent`: it answers no query; the next answer ends this state. */
export type CheckFailure = FalseAnswers | { readonly kind: 'silent'; readonly detail: string }

type ResolverCheckOptions = {
  /** The resolver to check. */
  readonly resolver: Resolver
  /** Names that must have MX records. */
  readonly names: readonly string[]
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}

/**
 * Checks whether a resolver is trustworthy: captive portals, filters, VPNs and sandboxes deny names
 * that exist, or invent addresses. The check queries names that must exist and a random one that
 * must not. It runs at most once per 10 minutes and per 20 consecutive domains without mail, and
 * every 30 seconds while it fails. Each run takes one query per name and one more. It also tells a
 * resolver that answers nothing from one domain whose name servers fail.
 */
export class ResolverCheck {
  readonly #options: ResolverCheckOptions
  readonly #listeners = new Set<(failure: CheckFailure | null) => void>()
  #failure: CheckFailure | null = null
  #running: Promise<void> | null = null
  #dueAt = Number.NEGATIVE_INFINITY
  #absentInARow = 0
  #made = 0
  #isClosed = false
  /** Whether the last check had no answer: one of a private network may answer none of its queries. */
  #isUnanswered = false
  #answers = 0
  /** Ends the wait of a search for the next answer. */
  #awaited: AbortController | null = null
  /** The search for the cause of a failed lookup. */
  #search: Promise<void> | null = null
  /** When a check found last that only a domain had trouble, monotonic ms. */
  #clearedAt = Number.NEGATIVE_INFINITY

  constructor(options: ResolverCheckOptions) {
    this.#options = options
  }

  /** Why the last check failed; null if it passed, or before the first check. */
  get failure(): CheckFailure | null {
    return this.#failure
  }

  /** Number of completed checks. */
  get made(): number {
    return this.#made
  }

  get isRunning(): boolean {
    return this.#running !== null
  }

  /** How long the last result remains valid, in ms. */
  get dueInMs(): number {
    return Math.max(0, this.#dueAt - this.#options.clock.monotonicNow())
  }

  /** Starts a check if one is due. */
  startIfDue(): void {
    if (this.#running !== null || this.dueInMs > 0 || this.#isClosed) return
    this.#running = this.#run().finally(() => {
      this.#running = null
    })
  }

  /** Runs a check if one is due, and returns the current result. */
  async result(): Promise<CheckFailure | null> {
    this.startIfDue()
    await this.#running
    return this.#failure
  }

  /** Waits until a check is due, and runs it. An abort returns the last result. */
  async nextResult(signal: AbortSignal): Promise<CheckFailure | null> {
    await sleep(this.#options.clock, this.dueInMs, signal)
    return signal.aborted ? this.#failure : this.result()
  }

  isCheckName(name: string): boolean {
    return this.#options.names.includes(name)
  }

  /** Expires the last result, so that the next lookup starts a check. */
  expire(): void {
    this.#dueAt = Number.NEGATIVE_INFINITY
  }

  noteRecords(): void {
    this.#absentInARow = 0
  }

  noteDomainWithoutMail(): void {
    this.#absentInARow++
    if (this.#absentInARow < ABSENT_IN_A_ROW_MAX) return
    this.#absentInARow = 0
    this.expire()
  }

  /** Records an answer to any query: records, or that there are none. */
  noteAnswer(): void {
    this.#answers++
    this.#awaited?.abort()
    if (this.#failure?.kind !== 'silent') return
    this.#setFailure(null)
    this.expire()
  }

  /**
   * Records a lookup that failed. If no other query is answered for a moment, a check tells whether
   * the resolver answers at all; at most every 30 seconds.
   */
  noteFailedLookup(): void {
    const { clock } = this.#options
    if (this.#search !== null || this.#failure !== null || this.#isClosed) return
    if (clock.monotonicNow() - this.#clearedAt < FAILED_MS) return
    this.#search = this.#findSilence().finally(() => {
      this.#search = null
    })
  }

  /** Whether it is not known yet why a lookup failed. */
  get isInDoubt(): boolean {
    return this.#search !== null
  }

  /** Returns whether the resolver answers nothing, as soon as that is known. */
  async isSilent(): Promise<boolean> {
    await this.#search
    return this.#failure?.kind === 'silent'
  }

  /** Calls back when the result changes; the returned function unsubscribes. */
  onChange(listener: (failure: CheckFailure | null) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Stops all further checks. */
  close(): void {
    this.#isClosed = true
    this.#listeners.clear()
    this.#awaited?.abort()
  }

  async #findSilence(): Promise<void> {
    const { clock } = this.#options
    const answers = this.#answers
    this.#awaited = new AbortController()
    await sleep(clock, NEXT_ANSWER_MS, this.#awaited.signal)
    this.#awaited = null
    // An answer after the start of that check says nothing about the time since.
    await this.#running
    if (this.#answers > answers || this.#isClosed) return
    this.expire()
    this.startIfDue()
    await this.#running
    if (this.#answers > answers) return
    if (this.#isUnanswered) this.#setFailure(SILENT)
    else if (this.#failure === null) this.#clearedAt = clock.monotonicNow()
  }

  async #run(): Promise<void> {
    const { resolver, names, clock, random } = this.#options
    const limit = new AbortController()
    const cancel = clock.after(TIMEOUT_MS, () => limit.abort())
    const result = await sendCheckQueries(resolver, { names, random, signal: limit.signal })
    cancel()
    this.#conclude(result)
  }

  #conclude(result: CheckResult): void {
    const { clock } = this.#options
    this.#made++
    this.#absentInARow = 0
    this.#dueAt = clock.monotonicNow() + (result === 'passed' ? PASSED_MS : FAILED_MS)
    this.#isUnanswered = result === 'silent'
    const isStillSilent = this.#isUnanswered && this.#failure?.kind === 'silent'
    if (typeof result !== 'string') this.#setFailure(result)
    else if (!isStillSilent) this.#setFailure(null)
  }

  #setFailure(failure: CheckFailure | null): void {
    const isNew = failure?.detail !== this.#failure?.detail
    this.#failure = failure
    if (!isNew || this.#isClosed) return
    const { log } = this.#options
    if (failure === null) writeLog(log, ENGINE_LOG.dnsCheckPassed)
    else writeLog(log, ENGINE_LOG.dnsCheckFailed, {}, describeFailure(failure))
    for (const listener of [...this.#listeners]) listener(failure)
  }
}

const SILENT: CheckFailure = { kind: 'silent', detail: 'the DNS server answers no query' }

const describeFailure = ({ detail }: CheckFailure) =>
  `${detail}. To find the cause, run "ev doctor". The check is repeated every ` +
  `${FAILED_MS / SECOND} seconds. Until it succeeds, lists wait, and other addresses get the result unknown (dns_error).`

/**
 * `unanswered`: no name that must exist was answered, as by a server of a closed network. Its
 * answers are trusted. `silent`: no query was answered.
 */
export type CheckResult = FalseAnswers | 'passed' | 'unanswered' | 'silent'

/** Queries the names and a random one in parallel. */
async function sendCheckQueries(
  resolver: Resolver,
  options: {
    readonly names: readonly string[]
    readonly random: Random
    readonly signal: AbortSignal
  },
): Promise<CheckResult> {
  const { names, random, signal } = options
  const [invented, ...known] = await Promise.all([
    resolver.resolve(randomAbsentName(random), 'A', signal),
    ...names.map(name => resolver.resolve(name, 'MX', signal)),
  ])
  return evaluateCheckAnswers(
    invented,
    names.map((name, i) => [name, known[i] ?? { fault: 'timeout' }]),
  )
}

/** With 36^20 possible names, a random one is not registered. */
const NAME_LENGTH = 20

/** Returns a random name that is not registered. */
export const randomAbsentName = (random: Random) => `${random.token(NAME_LENGTH)}.com`

type CheckAnswer = DnsAnswer<RecordType>

/** Evaluates the answers for a name that cannot exist and for names that must exist. */
export function evaluateCheckAnswers(
  invented: CheckAnswer,
  known: readonly (readonly [name: string, answer: CheckAnswer])[],
): CheckResult {
  if ('records' in invented)
    return fail('invented', 'returns an address for a name that does not exist')
  const missing = known.find(([, answer]) => isNegative(answer))
  if (missing !== undefined) {
    const [name, answer] = missing
    const isNoName = 'fault' in answer && answer.fault === 'no-name'
    return fail('missing', `says that ${name} ${isNoName ? 'does not exist' : 'accepts no mail'}`)
  }
  if (known.length === 0 || known.some(([, answer]) => 'records' in answer)) return 'passed'
  return isNegative(invented) ? 'unanswered' : 'silent'
}

const fail = (kind: FalseAnswers['kind'], does: string): FalseAnswers => ({
  kind,
  detail: `the DNS server ${does}, so its answers are not trusted`,
})
