import type { Clock } from '../../platform/clock.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import type { Log } from '../../platform/log.ts'
import { addressKey } from '../address/address.ts'
import type { BatchedCache } from '../batched-cache.ts'
import { withDeadline } from '../deadline.ts'
import type { MxOperator } from '../dns/operators.ts'
import type { EgressPool } from '../probe/egress-pool.ts'
import type { EgressProber } from '../probe/egress-prober.ts'
import type { ProbeOptions } from '../probe/mx-group-options.ts'
import { type ProbeResult, noResponse } from '../probe/probe-outcome.ts'
import { weight } from '../probe/open-session.ts'
import type { ProbeListener } from '../probe/probe-listener.ts'
import { type CachedAnswer, toCacheEntry } from '../result-cache.ts'
import { fromAcceptance, fromCache, fromFailure, fromProbe } from '../verdict/build-result.ts'
import type { Result } from '../verdict/verdict.ts'
import { type HostAttempts, mxHostsFor, triesNext } from './mx-hosts.ts'
import type { ProbeTask } from './prepare.ts'
import { alternativeEgress } from './retry-policy.ts'

export type ProbeRunnerDeps = {
  readonly egressPool: EgressPool
  readonly cache: BatchedCache
  readonly clock: Clock
  readonly log: Log
  /** For one verification that somebody waits for, in ms. */
  readonly deadlineMs: number
  /** Ends every conversation at once. */
  readonly closing: AbortSignal
}

export type ProbeListOptions = {
  /** The name of the egress that asks; when left out, the one of ours that should ask this operator. */
  readonly egress?: string
  /** Ends every conversation at once. */
  readonly signal: AbortSignal
  /** Lets the transaction under way end, says QUIT and asks nobody else. */
  readonly drain?: AbortSignal
  readonly dialogue?: boolean
  readonly timeoutMs?: number
  /** Somebody waits: no connection waits for a place among those of lists. */
  readonly urgent?: boolean
  /** Called once for each inquiry; `asked` is false when no server was asked this time. */
  readonly onResult: (task: ProbeTask, result: Result, asked: boolean) => void
  /**
   * Called in place of `onResult` where many connections to the same mail server wait for their turn: the
   * inquiry is to be made again in `delayMs`. Left out: it waits here for its turn.
   */
  readonly onRetryLater?: (task: ProbeTask, delayMs: number) => void
}

/** A pause shorter than this is waited out by a list; a longer one is handed back. */
const LIST_TIMEOUT_MS = 2_000
/** What is kept of a deadline for those who hear of it to say what they know. */
const DEADLINE_MARGIN_MS = 20

/** Takes inquiries to the mail servers and brings back results, and has definite answers remembered. */
export class ProbeRunner {
  readonly #deps: ProbeRunnerDeps
  /** Conversations under way, to their farewell. */
  readonly #runs = new Set<Promise<void>>()

  constructor(deps: ProbeRunnerDeps) {
    this.#deps = deps
  }

  /**
   * Asks about one address that somebody waits for; where the operator refuses one egress,
   * another asks in the time that is left. The result is there with the reply to QUIT; closing the
   * connection goes on behind it. Never rejects.
   */
  probeOne(
    task: ProbeTask,
    options: { dialogue: boolean; listener: ProbeListener | null },
  ): Promise<Result> {
    const { deadlineMs, clock, closing } = this.#deps
    // What the DNS took is part of the time that the caller waits.
    const leftMs = deadlineMs - DEADLINE_MARGIN_MS - (clock.monotonicNow() - task.startedAt)
    const { signal, done } = withDeadline(clock, leftMs, [closing])
    return new Promise<Result>(resolve => {
      let isDone = false
      const notify = (result: () => Result) => {
        if (!isDone) resolve(result())
        isDone = true
      }
      const notified = (probed: ProbeResult) => notify(() => fromProbe(clock, task, probed))
      // A failure of which the caller no longer hears is none to complain of.
      const failed = (error: unknown) => notify(() => this.#failed(task, error))
      // Who does not hear the signal is not waited for.
      onAbort(signal, () => clock.after(DEADLINE_MARGIN_MS, () => notified(this.#outOfTime(task))))
      const run = this.#tryEgresses(task, {
        signal,
        drain: signal,
        single: true,
        timeoutMs: leftMs,
        dialogue: options.dialogue,
        // Nothing is told after the answer.
        listener: options.listener && notifyUnless(() => isDone, options.listener),
        onProbed: (_, probed) => {
          notified(probed)
          // Only closing is left: it is short, and neither the deadline nor `close` cuts it off.
          done()
        },
      })
      this.#follow(run)
        .then(() => failed(NO_ANSWER), failed)
        .finally(done)
    })
  }

  /** Asks one operator about addresses, with one connection at a time; each gets its one result. */
  async probeMany(
    operator: MxOperator,
    tasks: readonly ProbeTask[],
    options: ProbeListOptions,
  ): Promise<void> {
    const { clock, closing, egressPool } = this.#deps
    const prober = egressPool.prober(options.egress ?? egressPool.own.primaryFor(operator.name))
    const unanswered = new Set(tasks)
    const { onRetryLater } = options
    const later = onRetryLater && {
      onRetryLater: (task: ProbeTask, delayMs: number) => {
        unanswered.delete(task)
        onRetryLater(task, delayMs)
      },
    }
    const { signal, done } = withDeadline(clock, null, [options.signal, closing])
    let failure: unknown = NO_ANSWER
    try {
      const run = this.#probe(prober, tasks, {
        signal,
        drain: options.drain ?? signal,
        single: false,
        urgent: options.urgent ?? false,
        timeoutMs: options.timeoutMs ?? LIST_TIMEOUT_MS,
        dialogue: options.dialogue ?? false,
        ...later,
        onProbed: (task, probed) => {
          unanswered.delete(task)
          options.onResult(task, this.#orOlder(task, probed), probed.asked)
        },
      })
      await this.#follow(run)
    } catch (error) {
      failure = error
    } finally {
      done()
    }
    for (const task of unanswered) options.onResult(task, this.#failed(task, failure), true)
  }

  /** When nobody will ask any more: resolves when every conversation under way has come to its end. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#runs)
    await this.#deps.egressPool.close()
  }

  #follow(run: Promise<void>): Promise<void> {
    this.#runs.add(run)
    const over = () => void this.#runs.delete(run)
    run.then(over, over)
    return run
  }

  /** Asks by one egress after another, until one of them is not turned away or there is none left. */
  async #tryEgresses(task: ProbeTask, options: ProbeOptions<ProbeTask>): Promise<void> {
    const egressPool = this.#deps.egressPool.own
    const { operator } = task
    const available = () => (options.signal.aborted ? [] : egressPool.availableFor(operator.name))
    const turnedAway: string[] = []
    let refusal: ProbeResult | null = null
    let next: string | null = egressPool.primaryFor(operator.name)
    while (next !== null) {
      const prober = egressPool.prober(next)
      next = null
      const onProbed = (_: ProbeTask, probed: ProbeResult) => {
        const received: ProbeResult = refusal === null ? probed : after(refusal, probed)
        turnedAway.push(prober.egressName)
        next = alternativeEgress(turnedAway, probed.answer, available)
        if (next === null) options.onProbed(task, received)
        else refusal = received
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
    const definite = new Map<string, CachedAnswer>()
    const onProbed = (task: ProbeTask, probed: ProbeResult) => {
      const worth = toCacheEntry(probed, task.accepted?.at ?? clock.now())
      if (worth !== null) definite.set(addressKey(task.address), worth)
      // Who asks for one address may ask again before the farewell is over; a list remembers in one go.
      if (options.single) void cache.set(definite)
      options.onProbed(task, probed)
    }
    try {
      await this.#askInOrder(prober, tasks.map(firstEgressOrder), { ...options, onProbed })
    } finally {
      if (!options.single) await cache.set(definite)
    }
  }

  /** Asks the exchangers of one operator and, for whom nobody there speaks with us, those of the next. */
  async #askInOrder(
    prober: EgressProber,
    turns: readonly EgressOrder[],
    options: ProbeOptions<ProbeTask>,
  ): Promise<void> {
    const { signal, drain } = options
    for (const together of Map.groupBy(turns, ({ at }) => at.operator.name).values()) {
      const [{ at }] = together as [EgressOrder, ...EgressOrder[]]
      const byQuestion = new Map(together.map(turn => [toProbeTarget(turn), turn]))
      const next: EgressOrder[] = []
      const onProbed = (question: ProbeTask, probed: ProbeResult) => {
        const turn = byQuestion.get(question) as EgressOrder
        const received = turn.before === null ? probed : after(turn.before, probed)
        const [backup, ...others] = turn.left
        const isDone = signal.aborted || drain.aborted || backup === undefined
        if (isDone || !triesNext(probed.answer) || this.#hasOtherEgress(prober, at, probed)) {
          options.onProbed(turn.task, received)
        } else next.push({ task: turn.task, at: backup, left: others, before: received })
      }
      await prober.probe(at.operator, [...byQuestion.keys()], { ...options, onProbed })
      if (next.length > 0) await this.#askInOrder(prober, next, options)
    }
  }

  /** Another egress may ask these exchangers, which know better than a backup who has a mailbox. */
  #hasOtherEgress(
    prober: EgressProber,
    { operator }: HostAttempts,
    { answer }: ProbeResult,
  ): boolean {
    const available = () => this.#deps.egressPool.own.availableFor(operator.name)
    return (
      answer.kind === 'blocked' &&
      alternativeEgress([prober.egressName], answer, available) !== null
    )
  }

  /** A temporary failure never takes the place of a definite answer that is still kept. */
  #orOlder(task: ProbeTask, probed: ProbeResult): Result {
    const { clock } = this.#deps
    const result = fromProbe(clock, task, probed)
    if (task.accepted !== null) return { ...result, checkedAt: task.accepted.at }
    if (task.cached === null || result.verdict.risk !== 'unknown') return result
    return fromCache(clock, task, task.cached)
  }

  #outOfTime({ operator, catchAll }: ProbeTask): ProbeResult {
    const egress = this.#deps.egressPool.own.primaryFor(operator.name)
    return { ...OUT_OF_TIME, catchAll, egress }
  }

  /** A fault of ours is a result too: it says nothing of the address, and ends nobody else's work. */
  #failed(task: ProbeTask, error: unknown): Result {
    const { clock, log } = this.#deps
    log.error('a verification failed inside ev', { error: errorMessage(error) })
    const { accepted } = task
    return accepted === null
      ? fromFailure(clock, task, error)
      : fromAcceptance(clock, task, accepted)
  }
}

const NO_ANSWER = new EvError('internal', 'A conversation ended without an answer.')

const OUT_OF_TIME = {
  answer: noResponse('timeout', 'connect', 'time ran out'),
  host: null,
  ip: null,
  tls: false,
  connectMs: null,
  asked: true,
  dialogue: null,
}

/**
 * What is known after a refusal and what came next. What is said to MAIL and RCPT decides; of two that
 * did not come so far, the one that leaves more open.
 */
function after(refusal: ProbeResult, probed: ProbeResult): ProbeResult {
  const isObserved = probed.answer.kind !== 'no-response' && !triesNext(probed.answer)
  const isLess = !isObserved && weight(probed.answer) < weight(refusal.answer)
  const received = isLess ? refusal : probed
  const both = [...(refusal.dialogue ?? []), ...(probed.dialogue ?? [])]
  return { ...received, dialogue: probed.dialogue === null ? refusal.dialogue : both }
}

const notifyUnless = (isDone: () => boolean, { onCall, onLine }: ProbeListener): ProbeListener => ({
  onCall: call => void (isDone() || onCall(call)),
  onLine: line => void (isDone() || onLine(line)),
})

function onAbort(signal: AbortSignal, callback: () => void) {
  if (signal.aborted) callback()
  else signal.addEventListener('abort', callback, { once: true })
}

/** Whom an inquiry is to be asked of now, whom after that, and what was heard before. */
type EgressOrder = {
  readonly task: ProbeTask
  readonly at: HostAttempts
  readonly left: readonly HostAttempts[]
  readonly before: ProbeResult | null
}

/** The first turn of an inquiry. */
function firstEgressOrder(task: ProbeTask): EgressOrder {
  const [at, ...left] = mxHostsFor(task.exchangers, task.accepted)
  return { task, at, left, before: null }
}

/** The inquiry as these exchangers are asked it. */
function toProbeTarget({ task, at: { operator, route, catchAll } }: EgressOrder): ProbeTask {
  if (task.exchangers.length === 1) return task
  const isBackup = operator.name !== task.operator.name
  return { ...task, route, catchAll, isBackup, sharesLimits: true }
}
