import { SECOND } from '../base/clock.ts'
import { askAgainAfter } from '../engine/again.ts'
import type { Engine } from '../engine/engine.ts'
import type { Inquiry } from '../engine/prepare.ts'
import type { RouteWithHost } from '../probe/plan.ts'
import type { NextDue } from '../queue/queue.ts'
import type { Database } from '../store/database.ts'
import { type ClaimedItem, claimItems, nextDueAt } from '../store/items.ts'
import type { Result } from '../verdict/verdict.ts'
import type { Recorder } from './recorder.ts'

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
}

/** A pace that wants a longer wait than this gives its place to another operator. */
const PATIENCE_MS = SECOND

/**
 * One connection's worth of an operator's items: claims them, asks, records. Gives the time at which the
 * slot is due again.
 */
export async function probeItems(work: ProbeWork, operator: string): Promise<NextDue> {
  const { engine, database, jobId } = work
  const { clock } = database
  const pace = engine.pace(operator)
  const readyInMs = pace.readyInMs
  if (readyInMs > PATIENCE_MS && work.wait) return { dueAt: clock.now() + readyInMs }
  const max = pace.row.recipientsPerSession
  const claimed = await claimItems(database, { jobId, operator, max, now: clock.now() })
  if (claimed.length === 0) {
    // What was put back and is not durable yet counts too.
    await work.recorder.flushed()
    const dueAt = await nextDueAt(database, { jobId, operator })
    return dueAt === null ? 'done' : { dueAt }
  }
  if (claimed.length === max) await work.onMore()
  await ask(work, claimed)
  await work.recorder.settled()
  return { dueAt: clock.now() }
}

async function ask(work: ProbeWork, claimed: readonly ClaimedItem[]): Promise<void> {
  const { engine, recorder, stopping, abort } = work
  const items = new Map<Inquiry, ClaimedItem>()
  for (const item of claimed) {
    const inquiry = await inquiryFor(work, item)
    if (inquiry !== null) items.set(inquiry, item)
  }
  const [first] = items.keys()
  if (first === undefined) return
  await engine.probe(first.operator, [...items.keys()], {
    signal: abort,
    drain: stopping,
    onResult: (inquiry, result, asked) => {
      // What was not asked because we stop is no result: the item is asked when the job goes on.
      if (stopping.aborted && result.evidence.answer?.kind === 'silent') return
      // Durable soon, with its group; the next conversation does not wait for it.
      void recorder.add(changeFor(work, items.get(inquiry) as ClaimedItem, result, asked))
    },
  })
}

/** An item as it was filed; one that cannot be taken up, as other rules or lists filed it, is looked at anew. */
async function inquiryFor(work: ProbeWork, item: ClaimedItem): Promise<Inquiry | null> {
  const { engine, recorder } = work
  const filed = resumed(engine, item)
  if (filed !== null) return filed
  const [anew] = await engine.route([item.text])
  if (anew === undefined || 'inquiry' in anew) return anew?.inquiry ?? null
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

function changeFor(work: ProbeWork, item: ClaimedItem, result: Result, asked: boolean) {
  const now = work.database.clock.now()
  const tries = item.tries + (asked ? 1 : 0)
  const past = { count: tries, waitedMs: Math.max(0, now - (item.ready_at ?? now)) }
  const delayMs = work.wait ? askAgainAfter(result, asked, past, work.greylistDelayMs) : null
  const { position, copies } = item
  return delayMs === null
    ? { results: [{ position, copies, result }] }
    : { postponed: [{ position, dueAt: now + delayMs, tries }] }
}
