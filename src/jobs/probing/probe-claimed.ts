import type { Database } from '../../db/database.ts'
import { isFault } from '../../engine/address/address.ts'
import { dnsWaitMs } from '../../engine/dns-pause.ts'
import type { Engine, ProbeListOptions } from '../../engine/engine.ts'
import type { Acceptance, RouteWithHost } from '../../engine/probe/mx-groups.ts'
import { isBackupOnly } from '../../engine/probing/mx-hosts.ts'
import type { ProbeTask } from '../../engine/probing/prepare.ts'
import { nextRetry, type Outcome } from '../../engine/probing/retry-policy.ts'
import { fromFailure } from '../../engine/verdict/build-result.ts'
import { isFailure, type Result } from '../../engine/verdict/verdict.ts'
import { onAbort } from '../../platform/abort.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Change, ResultWriter } from '../results/result-writer.ts'
import type { ActiveJob, ActiveJobs } from '../worker/active-jobs.ts'
import type { OrphanedClaims } from '../worker/orphaned-claims.ts'
import type { WorkerTimings } from '../worker/worker-timings.ts'
import type { ClaimedRow, Claims } from './claims.ts'
import { toItemRoute } from './pending-items.ts'
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
 * Number of internal failures after which an item gets a failure as its result. After the first one
 * it is probed separately.
 */
const FAULTS_MAX = 3

/** Probes claimed items at one operator and records their results and retries. */
export async function probeClaimed(
  work: ProbeWork,
  slot: Slot,
  claimed: readonly ClaimedRow[],
): Promise<void> {
  const { recorder, stopping, slots, claims } = work
  const { operator, egress } = slot
  const items = await probeTasksFor(work, slot, claimed)
  const otherEgresses = new Set<string>()
  const { drain, signal, done } = createDrainSignal(work, new Set(claimed.map(({ list }) => list)))
  const onResult: ProbeListOptions['onResult'] = (task, result, asked) => {
    const item = items.get(task) as ClaimedRow
    // An aborted probe has no result, and another member may hold the item by now.
    if (item.list.ended.aborted || work.lost.aborted) return
    // An item that the stop left unprobed has no result: it is probed when the job continues.
    if (stopping.aborted && result.evidence.answer?.kind === 'no-response') return
    const outcome = {
      ...{ result, asked, egress },
      isBackupOnly: isBackupOnly(task.exchangers, result),
    }
    const change = changeFor(work, slot, item, outcome)
    for (const postponed of change.postponed ?? []) otherEgresses.add(postponed.egress ?? egress)
    // Committed soon with its batch; the next session does not wait for it.
    record(work, slot, item, change)
  }
  const onRetryLater: ProbeListOptions['onRetryLater'] = (task, delayMs) => {
    const item = items.get(task) as ClaimedRow
    if (item.list.ended.aborted || work.lost.aborted) return
    record(work, slot, item, { postponed: [toPostponed(work, item, delayMs)] })
  }
  // Items that were claimed in the database would have to be released there.
  const isInMemory = claimed.every(({ pending }) => pending !== null)
  try {
    for (const { engine, tasks } of batches(items)) {
      const [first] = tasks
      if (first === undefined) continue
      const onReturned: ProbeListOptions['onReturned'] = returned => {
        for (const task of returned) claims.putBack(items.get(task) as ClaimedRow)
        // If no other slot is woken, this one takes them after its session.
        slots.putAll(engine, slot).catch(() => {})
      }
      const returning = isInMemory ? { onReturned } : {}
      const probeOptions = { egress, signal, drain, onResult, onRetryLater, ...returning }
      await engine.probe(first.operator, tasks, probeOptions)
    }
  } finally {
    done()
  }
  await recorder.settled()
  otherEgresses.delete(egress)
  if (otherEgresses.size > 0) await recorder.flushed()
  for (const other of otherEgresses) await slots.put({ operator, egress: other })
}

/** Adds a change to the next batch, in which a postponed item that was in memory is also routed. */
function record(
  { recorder, claims }: ProbeWork,
  { operator }: Slot,
  { list, pending, holder }: ClaimedRow,
  change: Change,
): void {
  const isRouted = pending !== null && change.postponed !== undefined
  const routed = isRouted ? [toItemRoute(pending.position, pending.task)] : []
  const added = recorder.add(
    list.id,
    pending === null ? { ...change, holder } : { ...change, routed },
  )
  if (change.postponed === undefined) return
  // The recorder handles a failed commit; the row then stays as it was stored before.
  added.then(
    () => claims.noteStored(operator),
    () => {},
  )
}

async function probeTasksFor(
  work: ProbeWork,
  slot: Slot,
  claimed: readonly ClaimedRow[],
): Promise<Map<ProbeTask, ClaimedRow>> {
  const { clock } = work.database
  const items = new Map<ProbeTask, ClaimedRow>()
  for (const item of claimed) {
    const startedAt = clock.monotonicNow()
    try {
      const task = await probeTaskFor(work, item)
      if (task !== null) items.set(task, item)
    } catch (error) {
      const result = fromFailure(clock, { text: item.text, startedAt }, error)
      const outcome = { result, asked: false, egress: slot.egress }
      record(work, slot, item, changeFor(work, slot, item, outcome))
    }
  }
  return items
}

/**
 * Restores the task of a routed item. An item that cannot be restored, because other rules or lists
 * routed it, is routed again.
 */
async function probeTaskFor(work: ProbeWork, item: ClaimedRow): Promise<ProbeTask | null> {
  const { database, recorder, stopping } = work
  const { engine, id, options } = item.list
  if (item.pending !== null) {
    return { ...item.pending.task, startedAt: database.clock.monotonicNow() }
  }
  const restored = restoreTask(engine, item)
  if (restored !== null) return restored
  const retried = await engine.routeOne(item.text, { ...options, signal: stopping })
  // The stop aborted the DNS lookup: the item is routed when the job continues.
  if (stopping.aborted) return null
  if ('task' in retried) return { ...retried.task, accepted: parseAcceptance(item) }
  const { position, copies, holder } = item
  void recorder.add(id, { results: [{ position, copies, result: retried.result }], holder })
  return null
}

function restoreTask(engine: Engine, item: ClaimedRow): ProbeTask | null {
  const { text, route } = item
  try {
    return engine.resume(text, JSON.parse(route ?? '') as RouteWithHost, parseAcceptance(item))
  } catch {
    return null // Routed by another version of ev.
  }
}

const parseAcceptance = ({ accepted }: ClaimedRow): Acceptance | null =>
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
  const { faultDelayMs, roundMs } = work.timings
  const refusedBy = parseRefusedBy(item)
  const { tries, egress } = item
  if (isFailure(outcome.result.verdict) && countFailure(item)) {
    return { postponed: [toPostponed(work, item, faultDelayMs)] }
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
  return { postponed: [{ position, dueAt, ...attempt, accepted: jsonOrNull(attempt.accepted) }] }
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

/** Counts an internal failure; returns false once the maximum is reached. */
function countFailure({ list, position }: ClaimedRow): boolean {
  const faults = (list.faults.get(position) ?? 0) + 1
  list.faults.set(position, faults)
  return faults < FAULTS_MAX
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
