import type { Database } from '../../db/database.ts'
import type { ResultWriter, Change } from '../results/result-writer.ts'
import type { ActiveJobs, ActiveJob } from '../worker/active-jobs.ts'
import type { Claims, ClaimedRow } from './claims.ts'
import type { ProbeScheduler, Slot } from './probe-scheduler.ts'
import type { OrphanedClaims } from '../worker/orphaned-claims.ts'
import { isFault } from '../../engine/address/address.ts'
import { dnsWaitMs } from '../../engine/dns-pause.ts'
import type { Engine, ProbeListOptions } from '../../engine/engine.ts'
import type { Acceptance, RouteWithHost } from '../../engine/probe/mx-groups.ts'
import { isBackupOnly } from '../../engine/probing/mx-hosts.ts'
import type { ProbeTask } from '../../engine/probing/prepare.ts'
import { nextRetry, type Outcome } from '../../engine/probing/retry-policy.ts'
import { fromFailure } from '../../engine/verdict/build-result.ts'
import { isFailure, type Result } from '../../engine/verdict/verdict.ts'
import type { Clock } from '../../platform/clock.ts'
import type { WorkerTimings } from '../worker/worker-timings.ts'


export type ProbeWork = {
  readonly database: Database
  readonly recorder: ResultWriter
  readonly lists: ActiveJobs
  readonly claims: Claims
  readonly slots: ProbeScheduler
  /** No new conversation is begun; what is under way comes to its end. */
  readonly stopping: AbortSignal
  /** Ends every conversation at once. */
  readonly abort: AbortSignal
  /** Ends this conversation at once: others may have its items, so nothing of it is recorded. */
  readonly lost: AbortSignal
  /** The member of the cluster that claims items; null: there is no cluster. */
  readonly holder: string | null
  /** Null: there is no cluster. */
  readonly orphans: OrphanedClaims | null
  readonly greylistDelayMs: number | null
  readonly timings: WorkerTimings
}


/** So often something inside ev may fail over an item before that is its result; after the first time it is asked by itself. */
const FAULTS_MAX = 3

/** Asks one operator about claimed items, and has recorded what becomes of them. */
export async function probeClaimed(
  work: ProbeWork,
  slot: Slot,
  claimed: readonly ClaimedRow[],
): Promise<void> {
  const { recorder, stopping, slots } = work
  const { operator, egress } = slot
  const items = await probeTasksFor(work, slot, claimed)
  const others = new Set<string>()
  const { drain, signal, done } = createDrainSignal(work, new Set(claimed.map(({ list }) => list)))
  const onResult: ProbeListOptions['onResult'] = (task, result, asked) => {
    const item = items.get(task) as ClaimedRow
    // What was cut off is no result, and the item may be another's by now.
    if (item.list.over.aborted || work.lost.aborted) return
    // What was not asked because we stop is no result: the item is asked when the job goes on.
    if (stopping.aborted && result.evidence.answer?.kind === 'no-response') return
    const outcome = {
      ...{ result, asked, egress },
      isBackupOnly: isBackupOnly(task.exchangers, result),
    }
    const change = changeFor(work, slot, item, outcome)
    for (const postponed of change.postponed ?? []) others.add(postponed.egress ?? egress)
    // Durable soon, with its group; the next conversation does not wait for it.
    void recorder.add(item.list.id, { ...change, holder: item.holder })
  }
  const onRetryLater: ProbeListOptions['onRetryLater'] = (task, delayMs) => {
    const item = items.get(task) as ClaimedRow
    if (item.list.over.aborted || work.lost.aborted) return
    void recorder.add(item.list.id, {
      postponed: [untilTurn(work, item, delayMs)],
      holder: item.holder,
    })
  }
  try {
    for (const { engine, tasks } of batches(items)) {
      const [first] = tasks
      if (first === undefined) continue
      const how = { egress, signal, drain, onResult, onRetryLater }
      await engine.probe(first.operator, tasks, how)
    }
  } finally {
    done()
  }
  await recorder.settled()
  others.delete(egress)
  if (others.size > 0) await recorder.flushed()
  for (const other of others) await slots.put({ operator, egress: other })
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
      const change = changeFor(work, slot, item, outcome)
      void work.recorder.add(item.list.id, { ...change, holder: item.holder })
    }
  }
  return items
}

/** An item as it was filed; one that cannot be taken up, as other rules or lists filed it, is looked at anew. */
async function probeTaskFor(work: ProbeWork, item: ClaimedRow): Promise<ProbeTask | null> {
  const { recorder, stopping } = work
  const { engine, id, options } = item.list
  const filed = resumed(engine, item)
  if (filed !== null) return filed
  const retried = await engine.routeOne(item.text, { ...options, signal: stopping })
  // The DNS was not heard out because we stop: the item is looked at when the job goes on.
  if (stopping.aborted) return null
  if ('task' in retried) return { ...retried.task, accepted: acceptanceOf(item) }
  const { position, copies, holder } = item
  void recorder.add(id, { results: [{ position, copies, result: retried.result }], holder })
  return null
}

function resumed(engine: Engine, item: ClaimedRow): ProbeTask | null {
  const { text, route } = item
  try {
    return engine.resume(text, JSON.parse(route ?? '') as RouteWithHost, acceptanceOf(item))
  } catch {
    return null // An ev of another version filed it.
  }
}

const acceptanceOf = ({ accepted }: ClaimedRow): Acceptance | null =>
  accepted === null ? null : (JSON.parse(accepted) as Acceptance)

type ProbeBatch = { readonly engine: Engine; readonly tasks: readonly ProbeTask[] }

/**
 * Who is asked together. Filed under one operator; but the lists, read again since, may tell several, each with a
 * pace of its own. An item over which something inside ev failed may be what made it fail: it is asked by itself.
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

/** What becomes of an item: its result, or that it is asked again. */
function changeFor(work: ProbeWork, slot: Slot, item: ClaimedRow, outcome: Outcome): Change {
  const { position, copies, list } = item
  const { engine, wait } = list
  const now = work.database.clock.now()
  const { faultDelayMs, roundMs } = work.timings
  const refusedBy = refusedByOf(item)
  const { tries, egress } = item
  if (isFailure(outcome.result.verdict) && failsAgain(item)) {
    return { postponed: [untilTurn(work, item, faultDelayMs)] }
  }
  const past = { tries, waitedMs: Math.max(0, now - (item.ready_at ?? now)), egress, refusedBy }
  const available = () => engine.egressPool.availableFor(slot.operator)
  const uncertainForMs = () => engine.egressPool.uncertainForMs(slot.egress, slot.operator)
  const refusedForMs = () => {
    return engine.egressPool.refusedForMs(slot.egress, slot.operator, domainOf(outcome.result))
  }
  const { greylistDelayMs } = work
  const dnsUncertainForMs = () => dnsWaitMs(engine.resolverCheck)
  const terms = {
    wait,
    greylistDelayMs,
    available: available,
    uncertainForMs: uncertainForMs,
    dnsUncertainForMs: dnsUncertainForMs,
    refusedForMs,
  }
  const again = nextRetry(outcome, past, terms)
  if (again === null) return { results: [{ position, copies, result: outcome.result }] }
  const { delayMs, ...been } = again
  const dueAt = dueTogether(now, delayMs, roundMs)
  return { postponed: [{ position, dueAt, ...been, accepted: jsonOrNull(been.accepted) }] }
}

const jsonOrNull = (value: unknown) => (value === null ? null : JSON.stringify(value))
const domainOf = ({ evidence: { address } }: Result): string =>
  isFault(address) ? '' : address.domain.ascii

/** Puts an item off as it is: nobody was asked. */
function untilTurn(work: ProbeWork, item: ClaimedRow, delayMs: number) {
  const { position, tries, egress, accepted } = item
  const dueAt = dueTogether(work.database.clock.now(), delayMs, work.timings.roundMs)
  return { position, dueAt, tries, egress, accepted, refusedBy: refusedByOf(item) }
}

const refusedByOf = (item: ClaimedRow): readonly string[] => item.refused_by?.split(' ') ?? []

/** Counts a failure inside ev; false when it is one too many. */
function failsAgain({ list, position }: ClaimedRow): boolean {
  const faults = (list.faults.get(position) ?? 0) + 1
  list.faults.set(position, faults)
  return faults < FAULTS_MAX
}

/** To the full second: what was put off by one conversation comes due together, and shares a connection again. */
const dueTogether = (now: number, delayMs: number, roundMs: number) =>
  delayMs === 0 ? now : Math.ceil((now + delayMs) / roundMs) * roundMs

/** How a conversation is ended before its time: asked to come to its end, and cut off. */
type DrainSignal = {
  readonly drain: AbortSignal
  readonly signal: AbortSignal
  /** It has ended. */
  readonly done: () => void
}

type Ends = {
  readonly database: { readonly clock: Clock }
  readonly timings: Pick<WorkerTimings, 'drainMs'>
  readonly stopping: AbortSignal
  readonly abort: AbortSignal
  readonly lost: AbortSignal
}

/** A conversation ends with the worker, at once when others have what it asks about, or when nobody wants to know any more: all whose items it has are over. */
function createDrainSignal(
  { database, stopping, abort, lost, timings }: Ends,
  lists: ReadonlySet<ActiveJob>,
): DrainSignal {
  const drain = new AbortController()
  const end = new AbortController()
  let cancelTimer = () => {}
  const onStop = () => drain.abort()
  const onAbort = () => end.abort()
  const onDone = () => {
    if (drain.signal.aborted || [...lists].some(({ over }) => !over.aborted)) return
    drain.abort()
    cancelTimer = database.clock.after(timings.drainMs, onAbort)
  }
  const heard: [AbortSignal, () => void][] = [
    [stopping, onStop],
    [abort, onAbort],
    [lost, onAbort],
    ...[...lists].map(({ over }): [AbortSignal, () => void] => [over, onDone]),
  ]
  for (const [signal, call] of heard) {
    if (signal.aborted) call()
    else signal.addEventListener('abort', call, { once: true })
  }
  const done = () => {
    cancelTimer()
    for (const [signal, call] of heard) signal.removeEventListener('abort', call)
  }
  return { drain: drain.signal, signal: end.signal, done }
}
