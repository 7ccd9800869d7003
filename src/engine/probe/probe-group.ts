import { type Clock, SECOND, sleep } from '../../platform/clock.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import { groupBy } from '../../platform/es2024.ts'
import { type Log, writeLog } from '../../platform/log.ts'
import { wasSuspended } from '../../platform/suspension.ts'
import type { BatchedCache } from '../batched-cache.ts'
import { toCacheEntry } from '../result-cache.ts'
import type { NoResponseReason } from '../smtp/classify-reply.ts'
import { ENGINE_LOG } from '../telemetry.ts'
import { fromCache, fromFailedProbe, fromProbe } from '../verdict/build-result.ts'
import type { Result } from '../verdict/verdict.ts'
import type { EgressPool } from './egress-pool.ts'
import type { EgressProber } from './egress-prober.ts'
import { equalHosts, hostsOf, type MxHosts, mxGroupKey, type OperatorHosts } from './mx-groups.ts'
import {
  isBackupOnly,
  isNotHosted,
  OPERATORS_MAX,
  selectHosts,
  shouldTryNextHosts,
} from './mx-hosts.ts'
import { weight } from './open-session.ts'
import type { ProbeTask } from './prepare.ts'
import type { ProbeOptions, ProbeSink } from './probe-options.ts'
import type { ProbeResult } from './probe-outcome.ts'
import { alternativeEgress, type Outcome } from './retry-policy.ts'

/*
 * From routed addresses to their outcomes, in the order in which things happen:
 *
 * 1. A caller (the scheduler, a worker, `probeSingle`) has tasks whose first MX hosts belong to one
 *    operator, and a sink. `ProbeGroup` starts an attempt for all of them: the egress that the caller
 *    or the pool selected, and the hosts of that operator.
 * 2. `EgressProber.probe` decides tasks that need no connection, groups the others by their MX hosts,
 *    and probes one MX group after another.
 * 3. `MxGroupProbe` opens session after session until each target of the group has its answer. It
 *    acquires the permit of the operator, and withholds the answers of a session until QUIT proves
 *    that its replies were in step.
 * 4. `openSession` looks up the hosts in order of preference, acquires the permits of an address,
 *    dials it, and sends EHLO and, if it must, STARTTLS.
 * 5. `SmtpProbe` runs the transactions of one session, and `CatchAllProbe` its random recipients. After
 *    several rejections in a row it asks for an accepted recipient again, before they are believed.
 * 6. Each answer comes back to `ProbeGroup.probed` as a `ProbeResult`, which caches it and decides:
 *    another attempt (the hosts of the next operator; for a single verification another egress, or the
 *    same again after a failure of this process), or a retry by the caller (`later`), or the outcome.
 *
 * The task is the same object all the way. What differs between its attempts is in `#attempts`.
 */

export type ProbeGroupDeps = {
  readonly egressPool: EgressPool
  readonly cache: BatchedCache
  readonly clock: Clock
  readonly log: Log
  /**
   * Adds signals to a result of a list; null if it needs none. The promise may reject, and then the
   * result counts as it is.
   */
  readonly addSignals: (result: Result, options: ProbeOptions) => Promise<Result> | null
}

/** One attempt of a task at the hosts of one operator through one egress. */
type Attempt = {
  readonly prober: EgressProber
  readonly hosts: OperatorHosts
  /** The hosts to try after these. */
  readonly remaining: readonly OperatorHosts[]
  /** Number of operators tried before, without those whose hosts have no address. */
  readonly tried: number
  /** The result of the earlier attempts through this egress; null if this is the first. */
  readonly previous: ProbeResult | null
  /** The egresses that were tried before, and what they found; only for a single verification. */
  readonly otherEgresses: readonly string[]
  readonly elsewhere: ProbeResult | null
  /** When the first of these attempts started, monotonic ms. */
  readonly startedAt: number
  /** The failure of this process that it repeats, after a moment; only for a single verification. */
  readonly repeated: ProbeResult | null
}

/** After a failure of this process a task of a list is probed again in this time. */
const OWN_FAILURE_DELAY_MS = SECOND
/** The same for a single verification, which has little time. */
const OWN_FAILURE_RETRY_MS = SECOND / 10

/** Probes tasks of one operator, and passes each to one method of the sink. */
export class ProbeGroup implements ProbeSink<ProbeTask, ProbeResult> {
  readonly #deps: ProbeGroupDeps
  readonly #sink: ProbeSink<ProbeTask, Outcome>
  readonly #options: ProbeOptions
  /** When a single verification stops to repeat its own failures, monotonic ms. */
  readonly #endsAt: number
  /** The tasks that were passed to no method of the sink. */
  readonly #open: Set<ProbeTask>
  readonly #attempts = new Map<ProbeTask, Attempt>()
  /** The tasks that have another attempt. */
  #next: ProbeTask[] = []
  readonly #cacheWrites: Promise<void>[] = []
  readonly #reports: Promise<void>[] = []
  /** The error of a method of the sink. */
  #failure: EvError | null = null

  constructor(
    deps: ProbeGroupDeps,
    tasks: readonly ProbeTask[],
    sink: ProbeSink<ProbeTask, Outcome>,
    options: ProbeOptions,
  ) {
    this.#deps = deps
    this.#sink = sink
    this.#options = options
    this.#open = new Set(tasks)
    this.#endsAt = deps.clock.monotonicNow() + options.timeoutMs
    if (sink.returned !== undefined) this.returned = this.#returned
  }

  /**
   * Resolves when each task was passed to the sink. An internal error becomes the result of the tasks
   * without one. Rejects if there is no such egress or if a method of the sink throws.
   */
  async run(egress: string): Promise<void> {
    const prober = this.#deps.egressPool.prober(egress)
    const startedAt = this.#deps.clock.monotonicNow()
    let attempt: Attempt | null = null
    for (const task of this.#open) {
      // Most tasks have the same hosts.
      if (attempt === null || task.accepted !== null || task.exchangers[0] !== attempt.hosts)
        attempt = firstAttempt(task, prober, startedAt)
      this.#attempts.set(task, attempt)
    }
    let failure: unknown = NO_ANSWER
    try {
      await this.#runAttempts([...this.#open])
    } catch (error) {
      failure = error
    }
    if (this.#failure === null)
      for (const task of this.#open) this.#tell(task, this.#fail(task, failure))
    if (this.#reports.length > 0) await Promise.all(this.#reports)
    if (this.#failure !== null) throw this.#failure
  }

  async #runAttempts(tasks: readonly ProbeTask[]): Promise<void> {
    try {
      for (let due = tasks; due.length > 0; due = this.#next) {
        this.#next = []
        for (const group of this.#groupByAttempt(due)) {
          const attempt = this.#attemptOf(group[0])
          if (attempt.repeated !== null && !(await this.#waitToRepeat(attempt.repeated, group[0])))
            continue
          await attempt.prober.probe(attempt.hosts.operator.name, group, this, this.#options)
        }
        // The first hosts of a task in the next round have failed, so it is not probed from the start.
        this.returned = undefined
      }
    } finally {
      if (this.#cacheWrites.length > 0) await Promise.all(this.#cacheWrites)
    }
  }

  /** Returns false if the time has ended: then the failure is the result. */
  async #waitToRepeat(failed: ProbeResult, task: ProbeTask): Promise<boolean> {
    const { signal } = this.#options
    await sleep(this.#deps.clock, OWN_FAILURE_RETRY_MS, signal)
    if (!signal.aborted) return true
    this.#tell(task, this.#toOutcome(task, this.#attemptOf(task).prober, failed))
    return false
  }

  /** Groups tasks by the operator of their attempt. Only those at a second operator differ. */
  #groupByAttempt(tasks: readonly ProbeTask[]): Iterable<TaskGroup> {
    const [first] = tasks as TaskGroup
    const attempt = this.#attemptOf(first)
    if (tasks.every(task => this.#attemptOf(task) === attempt)) return [tasks as TaskGroup]
    const groups = groupBy(tasks, task => this.#attemptOf(task).hosts.operator.name)
    return groups.values() as Iterable<TaskGroup>
  }

  #attemptOf(task: ProbeTask): Attempt {
    const attempt = this.#attempts.get(task)
    if (attempt === undefined) throw new EvError('internal', `unknown task: ${task.text}`)
    return attempt
  }

  /** Takes the result of an attempt. */
  probed(task: ProbeTask, result: ProbeResult): void {
    const attempt = this.#attemptOf(task)
    const merged = merge(attempt.previous, result, isNotHosted(result.answer))
    const next = this.#nextHosts(attempt, result, merged)
    if (next !== null) {
      this.#tryAgain(task, next)
      return
    }
    const { cache, clock } = this.#deps
    const entry = cache.isUsed ? toCacheEntry(merged, task.accepted?.at ?? clock.now()) : null
    if (this.#options.single) this.#concludeSingle(task, attempt, merged)
    else this.#concludeListed(task, attempt, merged)
    // Cached at once: the caller may ask for the address again before the session has ended.
    if (entry !== null) this.#cacheWrites.push(cache.set(task.cacheKey, entry))
  }

  later(task: ProbeTask, delayMs: number): void {
    if (this.#open.delete(task)) this.#call('later', () => this.#sink.later(task, delayMs))
  }

  /** Absent if the sink takes no targets back, and in later attempts. */
  returned?: ((tasks: readonly ProbeTask[]) => void) | undefined

  readonly #returned = (tasks: readonly ProbeTask[]) => {
    const open = tasks.filter(task => this.#open.delete(task))
    if (open.length > 0) this.#call('returned', () => this.#sink.returned?.(open))
  }

  #tryAgain(task: ProbeTask, attempt: Attempt) {
    this.#attempts.set(task, attempt)
    this.#next.push(task)
  }

  /** Returns the attempt at other hosts; null if there is none. */
  #nextHosts(attempt: Attempt, result: ProbeResult, merged: ProbeResult): Attempt | null {
    if (isNotHosted(result.answer)) return equalAttempt(attempt, result.host, merged)
    const [hosts, ...remaining] = attempt.remaining
    if (hosts === undefined || this.#options.drain.aborted) return null
    if (isNotServing(attempt.prober, hosts)) return null
    const tried = attempt.tried + (hasNoAddress(result) ? 0 : 1)
    if (tried === OPERATORS_MAX || !shouldTryNextHosts(result.answer)) return null
    if (this.#hasOtherEgress(attempt, result)) return null
    return { ...attempt, hosts, remaining, tried, previous: merged }
  }

  /** Whether another egress may probe these hosts, which are more reliable than a backup MX. */
  #hasOtherEgress({ prober, hosts }: Attempt, { answer }: ProbeResult): boolean {
    if (answer.kind !== 'blocked') return false
    const available = () => this.#deps.egressPool.own.availableFor(hosts.operator.name)
    return alternativeEgress([prober.egressName], answer, available) !== null
  }

  /** Ends the attempts of a task of a list through its egress. */
  #concludeListed(task: ProbeTask, { startedAt, prober }: Attempt, probed: ProbeResult) {
    if (isOurFailure(probed, this.#deps.clock, startedAt))
      return this.later(task, OWN_FAILURE_DELAY_MS)
    const outcome = this.#toOutcome(task, prober, probed)
    const added = this.#deps.addSignals(outcome.result, this.#options)
    if (added === null) return this.#tell(task, outcome)
    this.#reports.push(
      added.then(
        result => this.#tellLate(task, { ...outcome, result }),
        () => this.#tellLate(task, outcome),
      ),
    )
    this.#open.delete(task)
  }

  /** Ends the attempts of a single verification through its egress, or tries another egress. */
  #concludeSingle(task: ProbeTask, attempt: Attempt, probed: ProbeResult) {
    const { clock } = this.#deps
    const { signal } = this.#options
    const { own } = this.#deps.egressPool
    const { operator } = task
    const found = merge(attempt.elsewhere, probed)
    const tried = [...attempt.otherEgresses, attempt.prober.egressName]
    const available = () => (signal.aborted ? [] : own.availableFor(operator.name))
    const other = alternativeEgress(tried, probed.answer, available)
    if (other !== null) {
      const first = firstAttempt(task, own.prober(other), attempt.startedAt)
      return this.#tryAgain(task, { ...first, otherEgresses: tried, elsewhere: found })
    }
    const now = clock.monotonicNow()
    const hasTime = now < this.#endsAt && !signal.aborted
    if (!hasTime || !isOurFailure(found, clock, attempt.startedAt)) {
      return this.#tell(task, this.#toOutcome(task, attempt.prober, found))
    }
    const prober = own.prober(own.primaryFor(operator.name))
    const again = firstAttempt(task, prober, now)
    this.#tryAgain(task, { ...again, repeated: found })
  }

  #toOutcome(task: ProbeTask, prober: EgressProber, probed: ProbeResult): Outcome {
    const result = this.#toResult(task, probed)
    return {
      result,
      asked: probed.asked,
      isLost: probed.isLost,
      egress: prober.egressName,
      isBackupOnly: isBackupOnly(task.exchangers, result),
      isUntestable: prober.limits.ignoresTests(probed.host ?? ''),
    }
  }

  /** A temporary failure never replaces a definite answer that is still cached. */
  #toResult(task: ProbeTask, probed: ProbeResult): Result {
    const { clock } = this.#deps
    const result = fromProbe(clock, task, probed)
    if (task.accepted !== null) return { ...result, checkedAt: task.accepted.at }
    if (task.cached === null || result.verdict.risk !== 'unknown') return result
    return fromCache(clock, task, task.cached)
  }

  /** The outcome of an internal error, which does not affect the other tasks. */
  #fail(task: ProbeTask, error: unknown): Outcome {
    const { clock, log } = this.#deps
    writeLog(log, ENGINE_LOG.verificationFailed, { error: errorMessage(error) })
    const { prober } = this.#attemptOf(task)
    return { result: fromFailedProbe(clock, task, error), asked: true, egress: prober.egressName }
  }

  #tell(task: ProbeTask, outcome: Outcome) {
    if (this.#open.delete(task)) this.#call('probed', () => this.#sink.probed(task, outcome))
  }

  /** Tells an outcome after its signals were looked up. The error of the sink ends the probe later. */
  #tellLate(task: ProbeTask, outcome: Outcome) {
    try {
      this.#call('probed', () => this.#sink.probed(task, outcome))
    } catch {
      // `run` throws it.
    }
  }

  /** Calls a method of the sink, unless one has thrown; throws if it throws. */
  #call(method: 'probed' | 'later' | 'returned', call: () => void) {
    if (this.#failure !== null) return
    try {
      call()
    } catch (cause) {
      const message = `${method} of the sink of a probe failed: ${errorMessage(cause)}`
      this.#failure = new EvError('internal', message, { cause })
      throw this.#failure
    }
  }
}

type TaskGroup = readonly [ProbeTask, ...ProbeTask[]]

function firstAttempt(task: ProbeTask, prober: EgressProber, startedAt: number): Attempt {
  const [hosts, ...remaining] = servingFirst(selectHosts(task.exchangers, task.accepted), prober)
  return {
    prober,
    hosts,
    remaining,
    tried: 0,
    previous: null,
    otherEgresses: NONE,
    elsewhere: null,
    startedAt,
    repeated: null,
  }
}

/** Puts hosts that do not serve the domain after those of another operator with their preference. */
function servingFirst(all: MxHosts, prober: EgressProber): MxHosts {
  const [first, second, ...others] = all
  if (second === undefined || !isNotServing(prober, first)) return all
  const [host = ''] = hostsOf(first.route)
  return equalHosts(first.route, host, second.route).length > 0 ? [second, first, ...others] : all
}

/** Whether none of the hosts serves the domain, as they have said. */
function isNotServing({ hosts }: EgressProber, { route }: OperatorHosts): boolean {
  const key = mxGroupKey(route)
  return hostsOf(route).every(host => hosts.isNotServing(key, host))
}

/**
 * Returns the attempt at the hosts with the preference of one that does not serve the domain; null if
 * there are none, or if one of them has said the same. A domain that has moved may list its old host
 * beside the new one.
 */
function equalAttempt(attempt: Attempt, host: string | null, merged: ProbeResult): Attempt | null {
  const { hosts, remaining, tried, previous, prober } = attempt
  if (host === null) return null
  prober.hosts.markNotServing(mxGroupKey(hosts.route), host)
  if (previous !== null && isNotHosted(previous.answer)) return null
  if (equalHosts(hosts.route, host).length > 1) return { ...attempt, previous: merged }
  const [next, ...others] = remaining
  if (next === undefined || equalHosts(hosts.route, host, next.route).length === 0) return null
  return { ...attempt, hosts: next, remaining: others, tried: tried + 1, previous: merged }
}

const NONE: readonly string[] = []

const NO_ANSWER = new EvError('internal', 'A probe ended without an answer.')

/**
 * Merges the results of two attempts. A reply to MAIL or RCPT decides, unless it is provisional; of
 * two attempts that did not get so far, the less certain one counts.
 */
function merge(
  previous: ProbeResult | null,
  probed: ProbeResult,
  isProvisional = false,
): ProbeResult {
  if (previous === null) return probed
  const isReply = probed.answer.kind !== 'no-response' && !shouldTryNextHosts(probed.answer)
  const isObserved = isReply && !isProvisional
  const isPreviousStronger = !isObserved && weight(probed.answer) < weight(previous.answer)
  const merged = isPreviousStronger ? previous : probed
  const dialogue = [...(previous.dialogue ?? []), ...(probed.dialogue ?? [])]
  const isLost = isObserved ? undefined : previous.isLost || probed.isLost
  return { ...merged, isLost, dialogue: probed.dialogue === null ? previous.dialogue : dialogue }
}

const hasNoAddress = ({ answer }: ProbeResult) =>
  answer.kind === 'no-response' && answer.why === 'no-address'

/** Whether a probe failed because of a limit or a suspension of this process. */
function isOurFailure({ answer }: ProbeResult, clock: Clock, startedAt: number): boolean {
  if (answer.kind !== 'no-response') return false
  if (answer.why === 'own-limit') return true
  return SUSPENSION_FAILURES.has(answer.why) && wasSuspended(clock, startedAt)
}

/** The failures that a suspension can cause. */
const SUSPENSION_FAILURES: ReadonlySet<NoResponseReason> = new Set([
  'dns',
  'connect',
  'timeout',
  'closed',
  'tls',
  'garbage',
])
