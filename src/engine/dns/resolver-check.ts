import { type Clock, MINUTE, SECOND, sleep } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'
import type { Random } from '../../platform/random.ts'
import { type DnsAnswer, isNegative, type RecordType, type Resolver } from './resolver.ts'

/** How long a passed check counts: a machine that joins another network is noticed in this time. */
const PASSED_MS = 10 * MINUTE
/** How long a check counts that failed or was not answered: a list waits for it, and four questions cost little. */
const FAILED_MS = 30 * SECOND
/** Domains without mail in a row after which a passed check no longer counts. It is rare in lists. */
const ABSENT_IN_A_ROW_MAX = 20
/** Two servers of which the first is silent answer within this time. */
const TIMEOUT_MS = 3 * SECOND

/** Why the answers of a resolver are not believed. */
export type CheckFailure = {
  /**
   * `missing`: a name that must exist does not, so that negative answers are not believed.
   * `invented`: a name that nobody has exists, so that no answer is believed.
   */
  readonly kind: 'missing' | 'invented'
  /** In words, for people. */
  readonly detail: string
}

export type ResolverCheckOptions = {
  /** The resolver to check. */
  readonly resolver: Resolver
  /** Names that must have MX records. */
  readonly names: readonly string[]
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}

/**
 * Whether a resolver tells the truth: captive portals, filters, VPNs and sandboxes say of names that
 * exist that they do not, or invent addresses. The check asks for names that must exist and for a
 * random one that must not. It is made at most once for each 10 minutes and for each 20 domains
 * without mail in a row, and while it fails once in 30 seconds; each time it costs one question for
 * each name and one more.
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

  constructor(options: ResolverCheckOptions) {
    this.#options = options
  }

  /** Why the last check failed; null where it passed, or none was made. */
  get failure(): CheckFailure | null {
    return this.#failure
  }

  /** How many checks were made. */
  get made(): number {
    return this.#made
  }

  get isRunning(): boolean {
    return this.#running !== null
  }

  /** How long the last result still counts, in ms. */
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

  /** Makes a check if one is due, and gives the result that counts. */
  async result(): Promise<CheckFailure | null> {
    this.startIfDue()
    await this.#running
    return this.#failure
  }

  /** Waits until a check is due, and makes it. An abort gives the last result. */
  async nextResult(signal: AbortSignal): Promise<CheckFailure | null> {
    await sleep(this.#options.clock, this.dueInMs, signal)
    return signal.aborted ? this.#failure : this.result()
  }

  isCheckName(name: string): boolean {
    return this.#options.names.includes(name)
  }

  /** The last result no longer counts. */
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

  /** Calls back when the result changes; the returned function unsubscribes. */
  onChange(listener: (failure: CheckFailure | null) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Makes no check from now on. */
  close(): void {
    this.#isClosed = true
    this.#listeners.clear()
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
    const { clock, log } = this.#options
    const failure = typeof result === 'string' ? null : result
    const isNew = failure?.detail !== this.#failure?.detail
    this.#failure = failure
    this.#made++
    this.#absentInARow = 0
    this.#dueAt = clock.monotonicNow() + (result === 'passed' ? PASSED_MS : FAILED_MS)
    if (!isNew || this.#isClosed) return
    if (failure === null) log.info(PASSED_AGAIN)
    else log.warn(describeFailure(failure))
    for (const listener of [...this.#listeners]) listener(failure)
  }
}

const PASSED_AGAIN = 'The DNS server passes the check again, so its answers are believed.'

const describeFailure = ({ detail }: CheckFailure) =>
  `DNS check failed: ${detail}. Run \`ev doctor\` to find out more. The check is repeated every ` +
  `${FAILED_MS / SECOND} seconds; lists wait for it, and other addresses end as unknown (dns_error).`

/**
 * `unanswered`: no name that must exist was answered, as by a server that serves a network of its
 * own alone. That is no lie, and what it does say is believed.
 */
export type CheckResult = CheckFailure | 'passed' | 'unanswered'

/** Asks for the names and a random one at once. */
export async function sendCheckQueries(
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

/** 36^20 names: nobody has registered this one. */
const NAME_LENGTH = 20

/** A name that nobody has. */
export const randomAbsentName = (random: Random) => `${random.token(NAME_LENGTH)}.com`

type CheckAnswer = DnsAnswer<RecordType>

/** Judges a resolver by its answers for a name that nobody has and for names that must exist. */
export function evaluateCheckAnswers(
  invented: CheckAnswer,
  known: readonly (readonly [name: string, answer: CheckAnswer])[],
): CheckResult {
  if ('records' in invented) return fail('invented', 'gives an address to a name that nobody has')
  const missing = known.find(([, answer]) => isNegative(answer))
  if (missing !== undefined) {
    const [name, answer] = missing
    const isNoName = 'fault' in answer && answer.fault === 'no-name'
    return fail('missing', `says that ${name} ${isNoName ? 'does not exist' : 'takes no mail'}`)
  }
  return known.length === 0 || known.some(([, answer]) => 'records' in answer)
    ? 'passed'
    : 'unanswered'
}

const fail = (kind: CheckFailure['kind'], does: string): CheckFailure => ({
  kind,
  detail: `the DNS server ${does}, so its answers are not believed`,
})
