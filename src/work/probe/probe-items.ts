import { SECOND } from '../../base/clock.ts'
import type { Engine } from '../../engine/engine.ts'
import type { NextDue } from '../../queue/queue.ts'
import type { Database } from '../../store/database.ts'
import { nextDueAt } from '../../store/job/claims.ts'
import type { List, Lists } from '../crew/lists.ts'
import type { Recorder } from '../record/recorder.ts'
import { ask } from './ask.ts'
import type { Claims } from './claim.ts'
import type { Slot, Slots } from './slots.ts'

export type ProbeWork = {
  readonly database: Database
  readonly recorder: Recorder
  readonly lists: Lists
  readonly claims: Claims
  readonly slots: Slots
  /** No new conversation is begun; what is under way comes to its end. */
  readonly stopping: AbortSignal
  /** Ends every conversation at once. */
  readonly abort: AbortSignal
  readonly greylistDelayMs: number | null
}

/** A pace that wants a longer wait than this gives its place to another operator. */
const PATIENCE_MS = SECOND

/**
 * One connection's worth of an operator's items, of all lists that have some: claims them, asks, records. Gives
 * the time at which the slot is due again.
 */
export async function probeItems(work: ProbeWork, slot: Slot): Promise<NextDue> {
  const { database, recorder, claims, slots } = work
  const { clock } = database
  const { operator, egress } = slot
  const ripeAt = slots.ripeAt(operator)
  if (ripeAt > clock.now()) return { dueAt: ripeAt }
  await recorder.settled()
  const lists = await claims.waitingFor(operator)
  if (lists.length === 0) return whenDue(work, slot)
  const { engine } = lists[0] as List
  if (engine.fleet.standsBack(egress, operator)) return standBack(work, slot, engine)
  const pace = engine.pace(operator, egress)
  const readyInMs = engine.fleet.doubtMs(egress, operator) ?? pace.readyInMs
  const isPaused = readyInMs > PATIENCE_MS
  const max = pace.row.recipientsPerSession
  // Whoever does not wait hears of the pause at once.
  const asking = isPaused ? lists.filter(({ wait }) => !wait) : lists
  const claimed = await claims.take(asking, { ...slot, max, now: clock.now() })
  if (claimed.length === 0) {
    return isPaused ? { dueAt: clock.now() + readyInMs } : whenDue(work, slot)
  }
  if (claimed.length === max) await slots.putAll(engine, operator)
  await ask(work, slot, claimed)
  return { dueAt: clock.now() }
}

/** Nothing is due: when something will be. */
async function whenDue({ database, recorder, claims }: ProbeWork, slot: Slot): Promise<NextDue> {
  // What was put back and is not durable yet counts too.
  await recorder.flushed()
  let soonest: number | null = null
  for (const { id } of await claims.waitingFor(slot.operator)) {
    const dueAt = await nextDueAt(database, { jobId: id, ...slot })
    if (dueAt !== null) soonest = Math.min(soonest ?? dueAt, dueAt)
  }
  return soonest === null ? 'done' : { dueAt: soonest }
}

/**
 * An egress that may not ask where another may leaves the operator's items to it. Its own it takes, due or not: they
 * hear of it at once, unasked, and so go over to the others too.
 */
async function standBack(work: ProbeWork, slot: Slot, engine: Engine): Promise<NextDue> {
  const { database, recorder, claims, slots } = work
  const { operator, egress } = slot
  // What was put back and is not durable yet counts too.
  await recorder.flushed()
  const max = engine.pace(operator, egress).row.recipientsPerSession
  const own = { ...slot, ownOnly: true, max, now: Number.MAX_SAFE_INTEGER }
  const claimed = await claims.take(await claims.waitingFor(operator), own)
  if (claimed.length > 0) {
    await ask(work, slot, claimed)
    return { dueAt: database.clock.now() }
  }
  await slots.put({ operator, egress: engine.fleet.firstFor(operator) })
  return 'done'
}
