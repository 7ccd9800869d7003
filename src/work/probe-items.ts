import { SECOND } from '../base/clock.ts'
import type { Engine, ProbeListOptions } from '../engine/engine.ts'
import { askAgain, type Outcome } from '../engine/inquiry/again.ts'
import type { Inquiry } from '../engine/inquiry/prepare.ts'
import type { RouteWithHost } from '../probe/plan.ts'
import type { NextDue } from '../queue/queue.ts'
import type { Database } from '../store/database.ts'
import { type ClaimedItem, claimItems, nextDueAt } from '../store/job/claims.ts'
import type { Change, Recorder } from './recorder.ts'

export type ProbeWork = {
  readonly engine: Engine
  readonly database: Database
  readonly recorder: Recorder
  readonly jobId: string
  /** No new conversation is begun; what is under way comes to its end. */
  readonly stopping: AbortSignal
  /** Ends every conversation at once. */
  readonly abort: AbortSignal
  /** False: what should be asked again later ends as it is. */
  readonly wait: boolean
  readonly greylistDelayMs: number | null
  /** Called when more items wait than one connection takes. */
  readonly onMore: () => Promise<void>
  /** Called when items wait for another egress than the one that asks. */
  readonly onOthers: (egress: string) => Promise<void>
}

/** One connection that an operator allows to one egress. */
export type Slot = { readonly operator: string; readonly egress: string }

/** A pace that wants a longer wait than this gives its place to another operator. */
const PATIENCE_MS = SECOND

/**
 * One connection's worth of an operator's items: claims them, asks, records. Gives the time at which the
 * slot is due again.
 */
export async function probeItems(work: ProbeWork, slot: Slot): Promise<NextDue> {
  const { engine, database, jobId } = work
  const { clock } = database
  const { operator, egress } = slot
  if (engine.fleet.standsBack(egress, operator)) return standBack(work, slot)
  const pace = engine.pace(operator, egress)
  const readyInMs = engine.fleet.doubtMs(egress, operator) ?? pace.readyInMs
  if (readyInMs > PATIENCE_MS && work.wait) return { dueAt: clock.now() + readyInMs }
  const max = pace.row.recipientsPerSession
  const claimed = await claimItems(database, { jobId, ...slot, max, now: clock.now() })
  if (claimed.length === 0) {
    // What was put back and is not durable yet counts too.
    await work.recorder.flushed()
    const dueAt = await nextDueAt(database, { jobId, ...slot })
    return dueAt === null ? 'done' : { dueAt }
  }
  if (claimed.length === max) await work.onMore()
  await ask(work, slot, claimed)
  return { dueAt: clock.now() }
}

/**
 * An egress that may not ask where another may leaves the operator's items to it. Its own it takes, due or not: they
 * hear of it at once, unasked, and so go over to the others too.
 */
async function standBack(work: ProbeWork, slot: Slot): Promise<NextDue> {
  const { engine, database, recorder, jobId } = work
  const { operator, egress } = slot
  // What was put back and is not durable yet counts too.
  await recorder.flushed()
  const max = engine.pace(operator, egress).row.recipientsPerSession
  const own = { jobId, ...slot, ownOnly: true, max, now: Number.MAX_SAFE_INTEGER }
  const claimed = await claimItems(database, own)
  if (claimed.length > 0) {
    await ask(work, slot, claimed)
    return { dueAt: database.clock.now() }
  }
  await work.onOthers(engine.fleet.firstFor(operator))
  return 'done'
}

async function ask(work: ProbeWork, slot: Slot, claimed: readonly ClaimedItem[]): Promise<void> {
  const { engine, recorder, stopping, abort } = work
  const { egress } = slot
  const items = new Map<Inquiry, ClaimedItem>()
  for (const item of claimed) {
    const inquiry = await inquiryFor(work, item)
    if (inquiry !== null) items.set(inquiry, item)
  }
  const others = new Set<string>()
  const onResult: ProbeListOptions['onResult'] = (inquiry, result, asked) => {
    // What was not asked because we stop is no result: the item is asked when the job goes on.
    if (stopping.aborted && result.evidence.answer?.kind === 'silent') return
    const item = items.get(inquiry) as ClaimedItem
    const change = changeFor(work, slot, item, { result, asked, egress })
    for (const postponed of change.postponed ?? []) others.add(postponed.egress ?? egress)
    // Durable soon, with its group; the next conversation does not wait for it.
    void recorder.add(change)
  }
  // Filed under one operator; but the lists, read again since, may tell several, each with a pace of its own.
  const operators = Map.groupBy(items.keys(), ({ operator }) => operator.name)
  for (const inquiries of operators.values()) {
    const { operator } = inquiries[0] as Inquiry
    await engine.probe(operator, inquiries, { egress, signal: abort, drain: stopping, onResult })
  }
  await recorder.settled()
  others.delete(egress)
  if (others.size > 0) await recorder.flushed()
  for (const other of others) await work.onOthers(other)
}

/** An item as it was filed; one that cannot be taken up, as other rules or lists filed it, is looked at anew. */
async function inquiryFor(work: ProbeWork, item: ClaimedItem): Promise<Inquiry | null> {
  const { engine, recorder, stopping } = work
  const filed = resumed(engine, item)
  if (filed !== null) return filed
  const anew = await engine.routeOne(item.text, { signal: stopping })
  // The DNS was not heard out because we stop: the item is looked at when the job goes on.
  if (stopping.aborted) return null
  if ('inquiry' in anew) return anew.inquiry
  const { position, copies } = item
  void recorder.add({ results: [{ position, copies, result: anew.result }] })
  return null
}

function resumed(engine: Engine, { text, route }: ClaimedItem): Inquiry | null {
  try {
    return engine.resume(text, JSON.parse(route ?? '') as RouteWithHost)
  } catch {
    return null // An ev of another version filed it.
  }
}

/** What becomes of an item: its result, or that it is asked again. */
function changeFor(work: ProbeWork, slot: Slot, item: ClaimedItem, outcome: Outcome): Change {
  const { engine, wait, greylistDelayMs } = work
  const now = work.database.clock.now()
  const past = {
    tries: item.tries,
    waitedMs: Math.max(0, now - (item.ready_at ?? now)),
    egress: item.egress,
    refusedBy: item.refused_by?.split(' ') ?? [],
  }
  const willing = () => engine.fleet.willing(slot.operator)
  const doubtMs = () => engine.fleet.doubtMs(slot.egress, slot.operator)
  const again = askAgain(outcome, past, { wait, greylistDelayMs, willing, doubtMs })
  const { position, copies } = item
  if (again === null) return { results: [{ position, copies, result: outcome.result }] }
  const { delayMs, ...been } = again
  return { postponed: [{ position, dueAt: dueTogether(now, delayMs), ...been }] }
}

/** To the full second: what was put off by one conversation comes due together, and shares a connection again. */
const dueTogether = (now: number, delayMs: number) =>
  delayMs === 0 ? now : Math.ceil((now + delayMs) / SECOND) * SECOND
