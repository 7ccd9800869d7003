import type { Engine } from '../../engine/engine.ts'
import { SECOND } from '../../platform/clock.ts'
import type { Reschedule } from '../../queue/queue.ts'
import type { ActiveJob } from '../worker/active-jobs.ts'
import type { ClaimedRow, Claims } from './claims.ts'
import { type ProbeWork, probeClaimed } from './probe-claimed.ts'
import type { Slot } from './probe-tasks.ts'

type RecheckWork = Pick<ProbeWork, 'database' | 'recorder' | 'claims' | 'shared' | 'slots'>

/**
 * A rate limiter that requires a longer wait than this frees its connection slot for another
 * operator.
 */
const TIMEOUT_MS = SECOND

/**
 * Claims as many items of an operator as one connection takes, from all lists that have some,
 * probes them and records the results. Returns when the slot is due again; after 'done',
 * `recheckSlot` decides that.
 */
export async function probeItems(work: ProbeWork, slot: Slot): Promise<Reschedule> {
  const { database, recorder, claims, shared, slots, holder } = work
  const clock = database.steadyClock
  const { operator, egress } = slot
  const gathersUntil = slots.readyAt(operator)
  if (gathersUntil > clock.now()) return { dueAt: gathersUntil }
  await recorder.settled()
  const sharedEngine = shared?.engine ?? null
  const waiting = sharedEngine === null ? await claims.waitingFor(operator) : null
  const engine = sharedEngine ?? waiting?.[0]?.engine
  if (engine === undefined) return 'done'
  if (engine.egressPool.isDeprioritised(egress, operator)) return deferToOthers(work, slot, engine)
  const rateController = engine.rateController(operator, egress)
  const uncertainForMs = engine.egressPool.uncertainForMs(egress, operator)
  const readyInMs = uncertainForMs ?? rateController.readyInMs
  const isPaused = readyInMs > TIMEOUT_MS
  // The first connections also test a random recipient; most later ones do not.
  const max = Math.max(1, rateController.row.recipientsPerSession - (rateController.isNew ? 1 : 0))
  let claimed: readonly ClaimedRow[]
  if (waiting === null && !isPaused && shared !== null && holder !== null) {
    claimed = await shared.claim({ ...slot, max, holder })
  } else {
    const lists = waiting ?? (await claims.waitingFor(operator))
    if (lists.length === 0) return 'done'
    const claim = { ...slot, max, now: clock.now(), holder }
    const isBackupUsed = isPaused && uncertainForMs === null && rateController.isPaused
    claimed = await claimFromLists(work, lists, claim, { isPaused, isBackupUsed })
  }
  if (claimed.length === 0) {
    return isPaused ? { dueAt: clock.now() + readyInMs } : 'done'
  }
  let hasMore = true
  const wakeOthers = async () => {
    hasMore = claimed.length === max
    if (hasMore) await slots.putAll(engine, slot)
  }
  await probeAndRelease(work, slot, claimed, wakeOthers)
  // If all items were claimed, the slot does not have to run again only to find nothing.
  const isDone = !hasMore && !isPaused && !engine.egressPool.isDeprioritised(egress, operator)
  return isDone ? 'done' : { dueAt: clock.now() }
}

/**
 * Claims from lists. While the operator is paused, jobs that do not wait get the pause as their
 * result at once; for jobs that wait, a backup operator may be probed.
 */
async function claimFromLists(
  work: ProbeWork,
  lists: readonly ActiveJob[],
  claim: Parameters<Claims['claim']>[1],
  { isPaused, isBackupUsed }: { readonly isPaused: boolean; readonly isBackupUsed: boolean },
): Promise<readonly ClaimedRow[]> {
  const unpaused = isPaused ? lists.filter(({ wait }) => !wait) : lists
  const claimed = await claimRows(work, unpaused, claim)
  if (!isBackupUsed) return claimed
  const waiting = lists.filter(({ wait }) => wait)
  const max = claim.max - claimed.length
  return claimRows(work, waiting, { ...claim, max, backedUpOnly: true }, claimed)
}

/** Adds more items to those `claimed` before. Throws if a claim fails and there are none. */
async function claimRows(
  { claims, orphans }: ProbeWork,
  lists: readonly ActiveJob[],
  o: Parameters<Claims['claim']>[1],
  claimed: readonly ClaimedRow[] = [],
): Promise<readonly ClaimedRow[]> {
  const onFailure = () => orphans?.suspect()
  try {
    return [...claimed, ...(await claims.claim(lists, { ...o, onFailure }))]
  } catch (error) {
    if (claimed.length === 0) throw error
    return claimed
  }
}

/**
 * Probes claimed items and then releases those without an outcome, because no other member can
 * claim them while this one is alive.
 */
async function probeAndRelease(
  work: ProbeWork,
  slot: Slot,
  claimed: readonly ClaimedRow[],
  wakeOthers = async () => {},
): Promise<void> {
  const { orphans, recorder, lost } = work
  if (orphans === null) return probeClaimed(work, slot, claimed, wakeOthers)
  const heldItems = claimed.map(({ list, position }) => ({ jobId: list.id, position }))
  orphans.track(heldItems)
  let isComplete = false
  try {
    await probeClaimed(work, slot, claimed, wakeOthers)
    isComplete = !lost.aborted && !claimed.some(({ list }) => list.ended.aborted)
  } finally {
    if (!isComplete) await recorder.flushed().catch(() => {})
    orphans.untrack(heldItems)
    if (!isComplete) await orphans.releaseItems(heldItems, work.holder)
  }
}

/**
 * Returns when a slot that is done is due again: items may have been routed to it meanwhile or wait
 * for later. An egress that may not probe leaves the slot to one that may.
 */
export async function recheckSlot(work: RecheckWork, slot: Slot): Promise<Reschedule> {
  const { database, recorder, claims, shared, slots } = work
  const { operator, egress } = slot
  slots.onEmptyClaim(operator)
  // Items that were postponed but not committed yet count too.
  await recorder.flushed()
  if (shared?.engine?.egressPool.isDeprioritised(egress, operator) === false) {
    const dueAt = await shared.nextDueAt(slot)
    return dueAt === null ? 'done' : { dueAt }
  }
  const lists = await claims.waitingFor(operator)
  const { egressPool } = lists[0]?.engine ?? {}
  const pinnedOnly = egressPool?.isDeprioritised(egress, operator) ?? false
  if (pinnedOnly && egressPool !== undefined) {
    await slots.put({ operator, egress: egressPool.primaryFor(operator) })
  }
  let soonest: number | null = null
  for (const list of lists) {
    const dueAt = await claims.nextDueAt(list, slot, pinnedOnly)
    if (dueAt !== null) soonest = Math.min(soonest ?? dueAt, dueAt)
  }
  if (soonest === null) return 'done'
  // No other egress claims the items pinned to this one: it passes them on, due or not.
  return { dueAt: pinnedOnly ? database.steadyClock.now() : soonest }
}

/**
 * An egress that may not probe while another may leaves the operator's items to it. It claims its
 * own pinned items, due or not: they are refused at once without a probe, and so move to the other
 * egresses too.
 */
async function deferToOthers(work: ProbeWork, slot: Slot, engine: Engine): Promise<Reschedule> {
  const { database, recorder, claims, holder } = work
  const { operator, egress } = slot
  // Items that were postponed but not committed yet count too.
  await recorder.flushed()
  const max = engine.rateController(operator, egress).row.recipientsPerSession
  const pinned = { ...slot, pinnedOnly: true, max, holder, now: Number.MAX_SAFE_INTEGER }
  const claimed = await claimRows(work, await claims.waitingFor(operator), pinned)
  if (claimed.length > 0) {
    await probeAndRelease(work, slot, claimed)
    return { dueAt: database.steadyClock.now() }
  }
  return 'done'
}
