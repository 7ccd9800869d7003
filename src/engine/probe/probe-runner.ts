import { onAbort } from '../../platform/abort.ts'
import { type Clock, SECOND, sleep } from '../../platform/clock.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import { groupBy } from '../../platform/es2024.ts'
import type { Log } from '../../platform/log.ts'
import { wasSuspended } from '../../platform/suspension.ts'
import type { BatchedCache } from '../batched-cache.ts'
import { withDeadline } from '../deadline.ts'
import type { MxOperator } from '../dns/operators.ts'
import { toCacheEntry } from '../result-cache.ts'
import type { NoResponseReason } from '../smtp/classify-reply.ts'
import { fromCache, fromFailedProbe, fromProbe } from '../verdict/build-result.ts'
import type { Result } from '../verdict/verdict.ts'
import type { EgressPool } from './egress-pool.ts'
import type { EgressProber } from './egress-prober.ts'
import type { ProbeOptions } from './mx-group-options.ts'
import type { ProbeTarget } from './mx-groups.ts'
import { OPERATORS_MAX, type OperatorHosts, selectHosts, shouldTryNextHosts } from './mx-hosts.ts'
import { weight } from './open-session.ts'
import type { ProbeTask } from './prepare.ts'
import type { ProbeListener } from './probe-listener.ts'
import { noResponse, type ProbeResult } from './probe-outcome.ts'
import { alternativeEgress } from './retry-policy.ts'

type ProbeRunnerDeps = {
  readonly egressPool: EgressPool
  readonly cache: BatchedCache
  readonly clock: Clock
  readonly log: Log
  /** Aborts every session immediately. */
  readonly closing: AbortSignal
}

/**
 * How to probe tasks. Each task is passed to exactly one callback, once. A callback that throws ends
 * the probe: no other callback follows, and the probe rejects with an error that names it.
 */
export type ProbeListOptions = {
  /** The name of the egress; if omitted, the primary one of this process for the operator. */
  readonly egress?: string
  /** Aborts every session immediately. */
  readonly signal: AbortSignal
  /** Lets the transaction in flight finish, sends QUIT and probes no other target. */
  readonly drain?: AbortSignal
  readonly dialogue?: boolean
  readonly timeoutMs?: number
  /** A caller waits: connections do not wait for a connection slot. */
  readonly urgent?: boolean
  /** Called with the result of a task; `asked` is false if no server was probed this time. */
  readonly onResult: (task: ProbeTask, result: Result, asked: boolean) => void
  /**
   * Called in place of `onResult` if many connections wait for the same mail server, or if a limit or
   * a suspension of this process made the probe fail: retry the task in `delayMs`. If omitted, the
   * task waits for its permit.
   */
  readonly onRetryLater?: ((task: ProbeTask, delayMs: number) => void) | undefined
  /**
   * Called in place of `onResult` for tasks that another connection may probe at the same time. If
   * omitted, they are probed one connection after another.
   */
  readonly onReturned?: ((tasks: readonly ProbeTask[]) => void) | undefined
}

/**
 * A list waits out a pause up to this length; targets with a longer one are returned as deferred.
 */
const LIST_TIMEOUT_MS = 2_000
/** After a failure of this process a task is probed again in this time. */
const OWN_FAILURE_DELAY_MS = SECOND
/** The same for a single verification, which has little time. */
const OWN_FAILURE_RETRY_MS = SECOND / 10
/** Time reserved before the deadline, so that sessions can report what they know. */
const DEADLINE_MARGIN_MS = 20

/** Runs probe tasks at the mail servers, returns results and caches definite answers. */
export class ProbeRunner {
  readonly #deps: ProbeRunnerDeps
  /** Probes in flight, until their last connection has sent QUIT. */
  readonly #runs = new Set<Promise<void>>()

  constructor(deps: ProbeRunnerDeps) {
    this.#deps = deps
  }

  /**
   * Probes one address for a waiting caller. If the operator blocks one egress, another one tries
   * in the remaining time. Resolves at the reply to QUIT, while the connection is still closing.
   * Never rejects.
   */
  probeOne(
    task: ProbeTask,
    options: { limitMs: number; dialogue: boolean; listener: ProbeListener | null },
  ): Promise<Result> {
    const { clock, closing } = this.#deps
    // The DNS lookup counts toward the limit.
    const remainingMs = () => options.limitMs - (clock.monotonicNow() - task.startedAt)
    const leftMs = remainingMs() - DEADLINE_MARGIN_MS
    const { signal, done } = withDeadline(clock, leftMs, [closing])
    return new Promise<Result>(resolve => {
      let isDone = false
      const notify = (result: () => Result) => {
        if (!isDone) resolve(result())
        isDone = true
      }
      const notifyProbed = (probed: ProbeResult) => notify(() => fromProbe(clock, task, probed))
      // A failure after the result is neither returned nor logged.
      const failed = (error: unknown) => notify(() => this.#failed(task, error))
      // Do not wait for code that ignores the signal.
      onAbort(signal, () => {
        const marginMs = Math.min(DEADLINE_MARGIN_MS, Math.max(0, remainingMs()))
        clock.after(marginMs, () => {
          try {
            notify(() => this.timedOut(task))
          } catch (error) {
            failed(error)
          }
        })
      })
      const run = this.#tryInTime(task, {
        signal,
        drain: signal,
        single: true,
        timeoutMs: leftMs,
        dialogue: options.dialogue,
        // The listener receives nothing after the result.
        listener: options.listener && notifyUnless(() => isDone, options.listener),
        onProbed: (_, probed) => {
          notifyProbed(probed)
          // Only the close remains: it is short, so neither the deadline nor `close` interrupts it.
          done()
        },
      })
      this.#track(run)
        .then(() => failed(NO_ANSWER), failed)
        .finally(done)
    })
  }

  /**
   * Probes addresses at one operator, one connection at a time. An internal error becomes the result
   * of the tasks without one. Rejects if there is no such egress or if a callback throws: the caller
   * repeats the tasks for which none was called, or for which it threw.
   */
  async probeMany(
    operator: MxOperator,
    tasks: readonly ProbeTask[],
    options: ProbeListOptions,
  ): Promise<void> {
    const { clock, closing, egressPool } = this.#deps
    const prober = egressPool.prober(options.egress ?? egressPool.own.primaryFor(operator.name))
    const ending = new AbortController()
    const { signal, done } = withDeadline(clock, null, [options.signal, closing, ending.signal])
    const reporter = new ProbeReporter(tasks, options, () => ending.abort())
    const { onRetryLater, onReturned } = options
    const startedAt = clock.monotonicNow()
    let failure: unknown = NO_ANSWER
    try {
      const run = this.#probe(prober, tasks, {
        signal,
        drain: options.drain ?? signal,
        single: false,
        urgent: options.urgent ?? false,
        timeoutMs: options.timeoutMs ?? LIST_TIMEOUT_MS,
        dialogue: options.dialogue ?? false,
        onRetryLater: onRetryLater && ((task, delayMs) => reporter.retryLater(task, delayMs)),
        onReturned: onReturned && (returned => reporter.returned(returned)),
        onProbed: (task, probed) => {
          if (onRetryLater !== undefined && isOurFailure(probed, clock, startedAt)) {
            reporter.retryLater(task, OWN_FAILURE_DELAY_MS)
          } else reporter.result(task, this.#toResult(task, probed), probed.asked)
        },
      })
      await this.#track(run)
    } catch (error) {
      failure = error
    } finally {
      done()
    }
    for (const task of reporter.unreported) reporter.result(task, this.#failed(task, failure), true)
    reporter.throwIfFailed()
  }

  /** Resolves when every probe in flight has finished. Call it when no probe follows. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#runs)
    await this.#deps.egressPool.close()
  }

  #track(run: Promise<void>): Promise<void> {
    this.#runs.add(run)
    const remove = () => void this.#runs.delete(run)
    run.then(remove, remove)
    return run
  }

  /** Probes a task, and again if this process was the cause of a failure, until `timeoutMs`. */
  async #tryInTime(task: ProbeTask, options: ProbeOptions<ProbeTask>): Promise<void> {
    const { clock } = this.#deps
    const endsAt = clock.monotonicNow() + options.timeoutMs
    let unreported: ProbeResult | null
    do {
      unreported = null
      const startedAt = clock.monotonicNow()
      await this.#tryEgresses(task, {
        ...options,
        onProbed: (_, probed) => {
          const hasTime = clock.monotonicNow() < endsAt && !options.signal.aborted
          if (hasTime && isOurFailure(probed, clock, startedAt)) unreported = probed
          else options.onProbed(task, probed)
        },
      })
      if (unreported !== null) await sleep(clock, OWN_FAILURE_RETRY_MS, options.signal)
    } while (unreported !== null && !options.signal.aborted)
    if (unreported !== null) options.onProbed(task, unreported)
  }

  /** Tries one egress after another, until one is not blocked or none is left. */
  async #tryEgresses(task: ProbeTask, options: ProbeOptions<ProbeTask>): Promise<void> {
    const egressPool = this.#deps.egressPool.own
    const { operator } = task
    const available = () => (options.signal.aborted ? [] : egressPool.availableFor(operator.name))
    const triedEgresses: string[] = []
    let previous: ProbeResult | null = null
    let next: string | null = egressPool.primaryFor(operator.name)
    while (next !== null) {
      const prober = egressPool.prober(next)
      next = null
      const onProbed = (_: ProbeTask, probed: ProbeResult) => {
        const merged: ProbeResult = previous === null ? probed : mergeResults(previous, probed)
        triedEgresses.push(prober.egressName)
        next = alternativeEgress(triedEgresses, probed.answer, available)
        if (next === null) options.onProbed(task, merged)
        else previous = merged
      }
      await this.#probe(prober, [task], { ...options, onProbed })
    }
  }

  async #probe(
    prober: EgressProber,
    tasks: readonly ProbeTask[],
    options: ProbeOptions<ProbeTask>,
  ): Promise<void> {
    const { cache, clock } = this.#deps
    const writes: Promise<void>[] = []
    const onProbed = (task: ProbeTask, probed: ProbeResult) => {
      options.onProbed(task, probed)
      // Cached at once: the caller may ask for the address again before the session has ended.
      const entry = toCacheEntry(probed, task.accepted?.at ?? clock.now())
      if (entry !== null) writes.push(cache.set(task.cacheKey, entry))
    }
    try {
      await this.#probeHosts(prober, tasks.map(toFirstAttempt), { ...options, onProbed })
    } finally {
      await Promise.all(writes)
    }
  }

  /** Probes the hosts of one operator and, for tasks without a session there, those of the next. */
  async #probeHosts(
    prober: EgressProber,
    attempts: readonly HostAttempt[],
    options: ProbeOptions<ProbeTask>,
  ): Promise<void> {
    const { signal, drain, onRetryLater, onReturned } = options
    for (const group of groupByOperator(attempts)) {
      const [{ hosts }] = group as [HostAttempt, ...HostAttempt[]]
      const next: HostAttempt[] = []
      const onProbed = (attempt: HostAttempt, probed: ProbeResult) => {
        const { task, previous, remaining } = attempt
        const merged = previous === null ? probed : mergeResults(previous, probed)
        const [backup, ...others] = remaining
        const tried = attempt.tried + (hasNoAddress(probed) ? 0 : 1)
        const isDone = signal.aborted || drain.aborted || backup === undefined
        if (
          isDone ||
          tried === OPERATORS_MAX ||
          !shouldTryNextHosts(probed.answer) ||
          this.#hasOtherEgress(prober, hosts, probed)
        ) {
          options.onProbed(task, merged)
        } else
          next.push(toAttempt(task, { hosts: backup, remaining: others, tried, previous: merged }))
      }
      await prober.probe(hosts.operator, group, {
        ...options,
        onProbed,
        onRetryLater: onRetryLater && (({ task }, delayMs) => onRetryLater(task, delayMs)),
        onReturned: onReturned && (returned => onReturned(returned.map(({ task }) => task))),
      })
      // A result of the first hosts exists already, so the others are not probed from the start.
      const atNextHosts = { ...options, onReturned: undefined }
      if (next.length > 0) await this.#probeHosts(prober, next, atNextHosts)
    }
  }

  /** Whether another egress may probe these hosts, which are more reliable than a backup MX. */
  #hasOtherEgress(
    prober: EgressProber,
    { operator }: OperatorHosts,
    { answer }: ProbeResult,
  ): boolean {
    const available = () => this.#deps.egressPool.own.availableFor(operator.name)
    return (
      answer.kind === 'blocked' &&
      alternativeEgress([prober.egressName], answer, available) !== null
    )
  }

  /** A temporary failure never replaces a definite answer that is still cached. */
  #toResult(task: ProbeTask, probed: ProbeResult): Result {
    const { clock } = this.#deps
    const result = fromProbe(clock, task, probed)
    if (task.accepted !== null) return { ...result, checkedAt: task.accepted.at }
    if (task.cached === null || result.verdict.risk !== 'unknown') return result
    return fromCache(clock, task, task.cached)
  }

  /** Returns the result of a task whose time limit has passed. */
  timedOut(task: ProbeTask): Result {
    const { clock, egressPool } = this.#deps
    const egress = egressPool.own.primaryFor(task.operator.name)
    return fromProbe(clock, task, { ...TIMED_OUT, catchAll: task.catchAll, egress })
  }

  /** Returns a result for an internal error, which does not affect the other tasks. */
  #failed(task: ProbeTask, error: unknown): Result {
    const { clock, log } = this.#deps
    log.error('verification failed', { error: errorMessage(error) })
    return fromFailedProbe(clock, task, error)
  }
}

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

/** Passes each task to exactly one callback of a list, and none after a callback has thrown. */
class ProbeReporter {
  readonly #options: ProbeListOptions
  readonly #unreported: Set<ProbeTask>
  readonly #onFailure: () => void
  #failure: EvError | null = null

  /** `onFailure` is called when a callback throws. */
  constructor(tasks: readonly ProbeTask[], options: ProbeListOptions, onFailure: () => void) {
    this.#options = options
    this.#unreported = new Set(tasks)
    this.#onFailure = onFailure
  }

  /** The tasks that were passed to no callback; none after a callback has thrown. */
  get unreported(): readonly ProbeTask[] {
    return this.#failure === null ? [...this.#unreported] : []
  }

  result(task: ProbeTask, result: Result, asked: boolean): void {
    this.#report('onResult', [task], () => this.#options.onResult(task, result, asked))
  }

  retryLater(task: ProbeTask, delayMs: number): void {
    this.#report('onRetryLater', [task], () => this.#options.onRetryLater?.(task, delayMs))
  }

  returned(tasks: readonly ProbeTask[]): void {
    this.#report('onReturned', tasks, unreported => this.#options.onReturned?.(unreported))
  }

  throwIfFailed(): void {
    if (this.#failure !== null) throw this.#failure
  }

  #report(
    name: 'onResult' | 'onRetryLater' | 'onReturned',
    tasks: readonly ProbeTask[],
    call: (unreported: readonly ProbeTask[]) => void,
  ) {
    const unreported = tasks.filter(task => this.#unreported.delete(task))
    if (this.#failure !== null || unreported.length === 0) return
    try {
      call(unreported)
    } catch (error) {
      this.#failure = callbackError(name, error)
      this.#onFailure()
    }
  }
}

/** Returns the error with which a probe rejects because a callback threw. */
export const callbackError = (name: string, cause: unknown) =>
  new EvError('internal', `${name} of a probe failed: ${errorMessage(cause)}`, { cause })

const NO_ANSWER = new EvError('internal', 'A probe ended without an answer.')

const TIMED_OUT = {
  answer: noResponse('timeout', 'connect', 'deadline exceeded'),
  host: null,
  ip: null,
  tls: false,
  connectMs: null,
  asked: true,
  dialogue: null,
}

/**
 * Merges the results of two attempts. A reply to MAIL or RCPT decides; of two attempts that did not
 * get so far, the less certain one counts.
 */
function mergeResults(previous: ProbeResult, probed: ProbeResult): ProbeResult {
  const isObserved = probed.answer.kind !== 'no-response' && !shouldTryNextHosts(probed.answer)
  const isPreviousStronger = !isObserved && weight(probed.answer) < weight(previous.answer)
  const merged = isPreviousStronger ? previous : probed
  const dialogue = [...(previous.dialogue ?? []), ...(probed.dialogue ?? [])]
  return { ...merged, dialogue: probed.dialogue === null ? previous.dialogue : dialogue }
}

const notifyUnless = (isDone: () => boolean, { onCall, onLine }: ProbeListener): ProbeListener => ({
  onCall: call => void (isDone() || onCall(call)),
  onLine: line => void (isDone() || onLine(line)),
})

/**
 * One attempt of a task at the hosts of one operator: the target of a probe. The task stays the same
 * object in all of its attempts, because callers look it up by identity. An attempt is not a
 * `ProbeTask`, so that it cannot be passed to a callback in place of its task.
 */
type HostAttempt = ProbeTarget & {
  readonly task: ProbeTask
  readonly hosts: OperatorHosts
  /** The hosts to try after these. */
  readonly remaining: readonly OperatorHosts[]
  /** Number of operators tried before, without those whose hosts have no address. */
  readonly tried: number
  /** The result of the earlier attempts; null if this is the first. */
  readonly previous: ProbeResult | null
}

const hasNoAddress = ({ answer }: ProbeResult) =>
  answer.kind === 'no-response' && answer.why === 'no-address'

function groupByOperator(attempts: readonly HostAttempt[]): Iterable<readonly HostAttempt[]> {
  if (attempts.length === 0) return []
  const name = attempts[0]?.hosts.operator.name
  // Only attempts at a second operator differ.
  if (attempts.every(({ hosts }) => hosts.operator.name === name)) return [attempts]
  return groupBy(attempts, ({ hosts }) => hosts.operator.name).values()
}

function toFirstAttempt(task: ProbeTask): HostAttempt {
  const [hosts, ...remaining] = selectHosts(task.exchangers, task.accepted)
  return toAttempt(task, { hosts, remaining, tried: 0, previous: null })
}

function toAttempt(
  task: ProbeTask,
  attempt: Pick<HostAttempt, 'hosts' | 'remaining' | 'tried' | 'previous'>,
): HostAttempt {
  const { address, accepted, exchangers } = task
  const { hosts } = attempt
  const hasBackup = exchangers.length > 1
  return {
    ...attempt,
    task,
    address,
    accepted,
    route: hosts.route,
    catchAll: hosts.catchAll,
    isBackup: hasBackup && hosts.operator.name !== task.operator.name,
    sharesLimits: hasBackup,
  }
}
