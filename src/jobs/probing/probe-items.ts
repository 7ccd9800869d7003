import { type ProbeWork, probeClaimed } from './probe-claimed.ts'
import type { Engine } from '../../engine/engine.ts'
import { SECOND } from '../../platform/clock.ts'
import type { Reschedule } from '../../queue/queue.ts'
import { nextDueAt } from '../item-claims.ts'
import type { ActiveJob, } from '../worker/active-jobs.ts'
import type { ClaimedRow, Claims } from './claims.ts'
import type { Slot } from './probe-tasks.ts'

export type RecheckWork = Pick<ProbeWork, 'database' | 'recorder' | 'claims' | 'slots'>

/** A pace that wants a longer wait than this gives its place to another operator. */
const TIMEOUT_MS = SECOND

/**
 * One connection's worth of an operator's items, of all lists that have some: claims them, asks, records. Gives
 * the time at which the slot is due again; when it is done, `recheckSlot` tells that.
 */
export async function probeItems(work: ProbeWork, slot: Slot): Promise<Reschedule> {
  const { database, recorder, claims, slots, holder } = work
  const { clock } = database
  const { operator, egress } = slot
  const readyAt = slots.readyAt(operator)
  if (readyAt > clock.now()) return { dueAt: readyAt }
  await recorder.settled()
  const lists = await claims.waitingFor(operator)
  if (lists.length === 0) return 'done'
  const { engine } = lists[0] as ActiveJob
  if (engine.egressPool.isDeprioritised(egress, operator)) return deferToOthers(work, slot, engine)
  const rateController = engine.rateController(operator, egress)
  const uncertainForMs = engine.egressPool.uncertainForMs(egress, operator)
  const readyInMs = uncertainForMs ?? rateController.readyInMs
  const isPaused = readyInMs > TIMEOUT_MS
  // The first connections have a random recipient as well, most of the later ones none.
  const max = Math.max(1, rateController.row.recipientsPerSession - (rateController.isNew ? 1 : 0))
  const claim = { ...slot, max, now: clock.now(), holder }
  const waiting = lists.filter(({ wait }) => wait)
  // Whoever does not wait hears of the pause at once; for whoever does a backup may be asked.
  const claimed = await take(work, isPaused ? lists.filter(({ wait }) => !wait) : lists, claim)
  if (isPaused && uncertainForMs === null && rateController.isPaused) {
    const max = claim.max - claimed.length
    claimed.push(...(await take(work, waiting, { ...claim, max, backedUpOnly: true })))
  }
  if (claimed.length === 0) {
    return isPaused ? { dueAt: clock.now() + readyInMs } : 'done'
  }
  const hasMore = claimed.length === max
  if (hasMore) await slots.putAll(engine, slot)
  await converse(work, slot, claimed)
  // Where all were taken, the slot need not come up once more only to find nothing.
  const isDone = !hasMore && !isPaused && !engine.egressPool.isDeprioritised(egress, operator)
  return isDone ? 'done' : { dueAt: clock.now() }
}

/** A claim whose answer is lost may be there nevertheless. */
async function take(
  { claims, orphans }: ProbeWork,
  ...args: Parameters<Claims['take']>
): Promise<ClaimedRow[]> {
  try {
    return await claims.take(...args)
  } catch (error) {
    orphans?.suspect()
    throw error
  }
}

/** Asks; what came to nothing goes back to all who work with us, as nobody else takes it while we live. */
async function converse(
  work: ProbeWork,
  slot: Slot,
  claimed: readonly ClaimedRow[],
): Promise<void> {
  const { orphans, recorder, lost } = work
  if (orphans === null) return probeClaimed(work, slot, claimed)
  const held = claimed.map(({ list, position }) => ({ jobId: list.id, position }))
  orphans.take(held)
  let isWhole = false
  try {
    await probeClaimed(work, slot, claimed)
    isWhole = !lost.aborted && !claimed.some(({ list }) => list.over.aborted)
  } finally {
    if (!isWhole) await recorder.flushed().catch(() => {})
    orphans.release(held)
    if (!isWhole) await orphans.giveBack(held, work.holder)
  }
}

/**
 * When a slot that was given up is due again: something may have been filed for it meanwhile, or
 * waits for later. An egress that may not ask leaves it to one that may.
 */
export async function recheckSlot(work: RecheckWork, slot: Slot): Promise<Reschedule> {
  const { database, recorder, claims, slots } = work
  const { operator, egress } = slot
  slots.onEmptyClaim(operator)
  // What was put back and is not durable yet counts too.
  await recorder.flushed()
  const lists = await claims.waitingFor(operator)
  const { egressPool } = lists[0]?.engine ?? {}
  const ownOnly = egressPool?.isDeprioritised(egress, operator) ?? false
  if (ownOnly && egressPool !== undefined) {
    await slots.put({ operator, egress: egressPool.primaryFor(operator) })
  }
  let soonest: number | null = null
  for (const { id } of lists) {
    const dueAt = await nextDueAt(database, { jobId: id, ...slot, ownOnly })
    if (dueAt !== null) soonest = Math.min(soonest ?? dueAt, dueAt)
  }
  if (soonest === null) return 'done'
  // No other egress takes the items of this one: it hands them on by itself, due or not.
  return { dueAt: ownOnly ? database.clock.now() : soonest }
}

/**
 * An egress that may not ask where another may leaves the operator's items to it. Its own it takes, due or not: they
 * hear of it at once, unasked, and so go over to the others too.
 */
async function deferToOthers(work: ProbeWork, slot: Slot, engine: Engine): Promise<Reschedule> {
  const { database, recorder, claims, holder } = work
  const { operator, egress } = slot
  // What was put back and is not durable yet counts too.
  await recorder.flushed()
  const max = engine.rateController(operator, egress).row.recipientsPerSession
  const own = { ...slot, ownOnly: true, max, holder, now: Number.MAX_SAFE_INTEGER }
  const claimed = await take(work, await claims.waitingFor(operator), own)
  if (claimed.length > 0) {
    await converse(work, slot, claimed)
    return { dueAt: database.clock.now() }
  }
  return 'done'
}
