import type { Database } from '../../db/database.ts'
import { isFault } from '../../engine/address/address.ts'
import { dnsWaitMs } from '../../engine/dns-pause.ts'
import type { Engine, ProbeListOptions, ProbeListSink } from '../../engine/engine.ts'
import type { Acceptance, RouteWithHost } from '../../engine/probe/mx-groups.ts'
import type { ProbeTask } from '../../engine/probe/prepare.ts'
import { FAULTS_MAX, nextRetry, type Outcome } from '../../engine/probe/retry-policy.ts'
import { fromFailure } from '../../engine/verdict/build-result.ts'
import { encodeResult } from '../../engine/verdict/stored-result.ts'
import { isFailure, type Result } from '../../engine/verdict/verdict.ts'
import { onAbort } from '../../platform/abort.ts'
import type { Clock } from '../../platform/clock.ts'
import { EvError } from '../../platform/error.ts'
import type { Change, ResultWriter } from '../results/result-writer.ts'
import type { ActiveJob, ActiveJobs } from '../worker/active-jobs.ts'
import type { OrphanedClaims } from '../worker/orphaned-claims.ts'
import type { WorkerTimings } from '../worker/worker-timings.ts'
import type { ClaimedRow, Claims } from './claims.ts'
import type { ProbeScheduler, Slot } from './probe-scheduler.ts'
import type { SharedClaims } from './shared-claims.ts'

export type ProbeWork = {
  readonly database: Database
  readonly recorder: ResultWriter
  readonly lists: ActiveJobs
  readonly claims: Claims
  readonly slots: ProbeScheduler
  /** Starts no new session; sessions in flight finish. */
  readonly stopping: AbortSignal
  /** Aborts every session at once. */
  readonly abort: AbortSignal
  /** Aborts this session without recording anything, because other members may hold its items. */
  readonly lost: AbortSignal
  /** The cluster member that claims items; null without a cluster. */
  readonly holder: string | null
  /** Null without a cluster. */
  readonly orphans: OrphanedClaims | null
  /** Claims from all lists at once; null without a cluster on PostgreSQL. */
  readonly shared: SharedClaims | null
  readonly greylistDelayMs: number | null
  readonly timings: WorkerTimings
}

/**
 * Probes claimed items at one operator and records the result or retry of each. `wakeOthers` enqueues
 * the slots that share the rest. After an internal failure the items without an outcome are recorded
 * as not probed, so that none stays claimed; then it rejects with the failure.
 */
export async function probeClaimed(
  work: ProbeWork,
  slot: Slot,
  claimed: readonly ClaimedRow[],
  wakeOthers: () => Promise<void>,
): Promise<void> {
  const { recorder, slots } = work
  const { operator, egress } = slot
  const probing = new ClaimedProbe(work, slot, claimed)
  const wakeFailure = await wakeOthers().then(() => null, toFailure)
  const failure = (await probing.run()) ?? wakeFailure
  await recorder.settled()
  const otherEgresses = [...probing.egresses].filter(name => name !== egress)
  if (otherEgresses.length > 0) await recorder.flushed()
  for (const other of otherEgresses) await slots.put({ operator, egress: other })
  if (failure !== null) throw failure.error
}

type Failure = { readonly error: unknown }

const toFailure = (error: unknown): Failure => ({ error })

/** The probe of claimed items. It counts which of them have their outcome. */
class ClaimedProbe implements ProbeListSink {
  readonly #work: ProbeWork
  readonly #slot: Slot
  readonly #claimed: readonly ClaimedRow[]
  /** The items whose outcome is not recorded yet. */
  readonly #open: Set<ClaimedRow>
  #items: ReadonlyMap<ProbeTask, ClaimedRow> = new Map()
  /** The egresses that must probe postponed items next. */
  readonly egresses = new Set<string>()

  constructor(work: ProbeWork, slot: Slot, claimed: readonly ClaimedRow[]) {
    this.#work = work
    this.#slot = slot
    this.#claimed = claimed
    this.#open = new Set(claimed)
  }

  /** Returns the first internal failure; null if there was none. */
  async run(): Promise<Failure | null> {
    const lists = new Set(this.#claimed.map(({ list }) => list))
    const { drain, signal, done } = createDrainSignal(this.#work, lists)
    let failure: Failure | null = null
    try {
      this.#items = await this.#restoreTasks()
      for (const batch of batches(this.#items)) {
        try {
          await this.#probe(batch, { drain, signal })
        } catch (error) {
          failure ??= { error }
          this.#recordFault(batch.tasks.map(this.#itemOf), error)
        }
      }
    } catch (error) {
      failure ??= { error }
      this.#recordFault(this.#claimed, error)
    } finally {
      done()
    }
    return failure
  }

  async #probe(
    { engine, tasks }: ProbeBatch,
    signals: Pick<ProbeListOptions, 'drain' | 'signal'>,
  ): Promise<void> {
    const [first] = tasks
    if (first === undefined) return
    const { egress } = this.#slot
    await engine.probe(first.operator, tasks, this, { ...signals, egress })
  }

  readonly #itemOf = (task: ProbeTask): ClaimedRow => {
    const item = this.#items.get(task)
    if (item === undefined) throw new EvError('internal', `unknown task: ${task.text}`)
    return item
  }

  probed(task: ProbeTask, outcome: Outcome): void {
    const item = this.#itemOf(task)
    // An item that the stop left unprobed has no result: it is probed when the job continues.
    const isNotReached = outcome.result.evidence.answer?.kind === 'no-response'
    if (this.#work.stopping.aborted && isNotReached) this.#open.delete(item)
    else this.#record(item, () => changeFor(this.#work, this.#slot, item, outcome))
  }

  later(task: ProbeTask, delayMs: number): void {
    const item = this.#itemOf(task)
    this.#record(item, () => ({ postponed: [toPostponed(this.#work, item, delayMs)] }))
  }

  #recordFault(items: readonly ClaimedRow[], error: unknown) {
    for (const item of items.filter(one => this.#open.has(one))) {
      this.#record(item, () => changeForFault(this.#work, item, error))
    }
  }

  /** Records the outcome of an item. It is committed with its batch; the next session does not wait. */
  #record(item: ClaimedRow, changeOf: () => Change) {
    const { list } = item
    // After this, its job has ended or another member may hold it.
    if (!list.ended.aborted && !this.#work.lost.aborted) {
      const change = changeOf()
      for (const { egress } of change.postponed ?? []) {
        this.egresses.add(egress ?? this.#slot.egress)
      }
      void this.#work.recorder.add(list.id, { ...change, holder: item.holder })
    }
    this.#open.delete(item)
  }

  /** Restores the tasks of the items, without those that need no probe now. */
  async #restoreTasks(): Promise<Map<ProbeTask, ClaimedRow>> {
    const items = new Map<ProbeTask, ClaimedRow>()
    for (const item of this.#claimed) {
      try {
        const task = await probeTaskFor(this.#work, item)
        if (task === null) this.#open.delete(item)
        else items.set(task, item)
      } catch (error) {
        this.#recordFault([item], error)
      }
    }
    return items
  }
}

/**
 * Restores the task of a routed item. An item that cannot be restored, because other rules or lists
 * routed it, is routed again.
 */
async function probeTaskFor(work: ProbeWork, item: ClaimedRow): Promise<ProbeTask | null> {
  const { recorder, stopping } = work
  const { engine, id, options } = item.list
  const restored = restoreTask(item.list, item)
  if (restored !== null) return restored
  const retried = await engine.routeOne(item.text, { ...options, signal: stopping })
  // The stop aborted the DNS lookup: the item is routed when the job continues.
  if (stopping.aborted) return null
  if ('task' in retried) return { ...retried.task, accepted: parseAcceptance(item) }
  const { position, copies, holder } = item
  void recorder.add(id, { results: [{ position, copies, result: retried.result }], holder })
  return null
}

/** Restores the task of a routed item; null if other rules or lists decide about it now. */
export function restoreTask(
  { engine, options: { cacheScope } }: ActiveJob,
  item: Pick<ClaimedRow, 'text' | 'route' | 'accepted'>,
): ProbeTask | null {
  const { text, route } = item
  try {
    return engine.resume(text, JSON.parse(route ?? '') as RouteWithHost, {
      accepted: parseAcceptance(item),
      cacheScope,
    })
  } catch {
    return null // Routed by another version of ev.
  }
}

const parseAcceptance = ({ accepted }: Pick<ClaimedRow, 'accepted'>): Acceptance | null =>
  accepted === null ? null : (JSON.parse(accepted) as Acceptance)

type ProbeBatch = { readonly engine: Engine; readonly tasks: readonly ProbeTask[] }

/**
 * Groups the tasks that are probed together. They were routed to one operator, but the lists
 * reloaded since may name several, each with its own rate limits. An item with an internal failure
 * may be its cause, so it is probed separately.
 */
function batches(items: ReadonlyMap<ProbeTask, ClaimedRow>): ProbeBatch[] {
  const groups = Map.groupBy(items.keys(), task => {
    const { list, position } = items.get(task) as ClaimedRow
    const isSuspect = list.faults.has(position)
    return isSuspect ? `${list.id} ${position}` : `|${task.operator.name}`
  })
  return [...groups.values()].map(tasks => {
    const { list } = items.get(tasks[0] as ProbeTask) as ClaimedRow
    return { engine: list.engine, tasks: tasks }
  })
}

/** Returns the change of a probed item: its result or a retry. */
function changeFor(work: ProbeWork, slot: Slot, item: ClaimedRow, outcome: Outcome): Change {
  const { position, copies, list } = item
  const { engine, wait } = list
  const now = work.database.steadyClock.now()
  const { roundMs } = work.timings
  const refusedBy = parseRefusedBy(item)
  const { tries, egress } = item
  if (isFailure(outcome.result.verdict)) {
    return changeForFault(work, item, outcome.result.evidence.failure, outcome.result)
  }
  const history = { tries, waitedMs: Math.max(0, now - (item.ready_at ?? now)), egress, refusedBy }
  const available = () => engine.egressPool.availableFor(slot.operator)
  const uncertainForMs = () => engine.egressPool.uncertainForMs(slot.egress, slot.operator)
  const refusedForMs = () => {
    return engine.egressPool.refusedForMs(slot.egress, slot.operator, getDomain(outcome.result))
  }
  const { greylistDelayMs } = work
  const dnsUncertainForMs = () => dnsWaitMs(engine.resolverCheck)
  const rules = {
    wait,
    greylistDelayMs,
    available: available,
    uncertainForMs: uncertainForMs,
    dnsUncertainForMs: dnsUncertainForMs,
    refusedForMs,
  }
  const nextAttempt = nextRetry(outcome, history, rules)
  if (nextAttempt === null) return { results: [{ position, copies, result: outcome.result }] }
  const { delayMs, ...attempt } = nextAttempt
  const dueAt = roundUpDue(now, delayMs, roundMs)
  const accepted = jsonOrNull(attempt.accepted)
  const latest = { result: encodeResult(outcome.result), isProbed: outcome.asked }
  return { postponed: [{ position, dueAt, ...attempt, accepted, latest }] }
}

const jsonOrNull = (value: unknown) => (value === null ? null : JSON.stringify(value))
const getDomain = ({ evidence: { address } }: Result): string =>
  isFault(address) ? '' : address.domain.ascii

/** Postpones an item unchanged, because it was not probed. */
function toPostponed(work: ProbeWork, item: ClaimedRow, delayMs: number) {
  const { position, tries, egress, accepted } = item
  const dueAt = roundUpDue(work.database.steadyClock.now(), delayMs, work.timings.roundMs)
  return { position, dueAt, tries, egress, accepted, refusedBy: parseRefusedBy(item) }
}

const parseRefusedBy = (item: ClaimedRow): readonly string[] => item.refused_by?.split(' ') ?? []

/**
 * Returns the change of an item after an internal failure: it is retried, or gets the failure as its
 * result once the maximum is reached.
 */
function changeForFault(
  work: ProbeWork,
  item: ClaimedRow,
  error: unknown,
  failed: Result | null = null,
): Change {
  const { list, position, copies, text } = item
  const { clock } = work.database
  const faults = (list.faults.get(position) ?? 0) + 1
  list.faults.set(position, faults)
  if (faults < FAULTS_MAX)
    return { postponed: [toPostponed(work, item, work.timings.faultDelayMs)] }
  const startedAt = clock.monotonicNow()
  const result = failed ?? fromFailure(clock, { text, startedAt }, error)
  return { results: [{ position, copies, result }] }
}

/**
 * Rounds up, so that items postponed by one session are due together and share a connection again.
 */
const roundUpDue = (now: number, delayMs: number, roundMs: number) =>
  delayMs === 0 ? now : Math.ceil((now + delayMs) / roundMs) * roundMs

/** Ends a session early: `drain` asks it to finish, `signal` aborts it. */
type DrainSignal = {
  readonly drain: AbortSignal
  readonly signal: AbortSignal
  /** Removes the listeners once the session has ended. */
  readonly done: () => void
}

type DrainDeps = {
  readonly database: { readonly clock: Clock }
  readonly timings: Pick<WorkerTimings, 'drainMs'>
  readonly stopping: AbortSignal
  readonly abort: AbortSignal
  readonly lost: AbortSignal
}

/**
 * A session drains when the worker stops, and aborts when the worker aborts or its claims are lost.
 * It also drains when all lists of its items have ended, and aborts `drainMs` later.
 */
function createDrainSignal(
  { database, stopping, abort, lost, timings }: DrainDeps,
  lists: ReadonlySet<ActiveJob>,
): DrainSignal {
  const drain = new AbortController()
  const end = new AbortController()
  let cancelTimer = () => {}
  const abortSession = () => end.abort()
  const onListEnd = () => {
    if (drain.signal.aborted || [...lists].some(({ ended }) => !ended.aborted)) return
    drain.abort()
    cancelTimer = database.clock.after(timings.drainMs, abortSession)
  }
  const subscriptions = [
    onAbort(stopping, () => drain.abort()),
    onAbort(abort, abortSession),
    onAbort(lost, abortSession),
    ...[...lists].map(({ ended }) => onAbort(ended, onListEnd)),
  ]
  const done = () => {
    cancelTimer()
    for (const unsubscribe of subscriptions) unsubscribe()
  }
  return { drain: drain.signal, signal: end.signal, done }
}
