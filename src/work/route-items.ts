import type { Engine } from '../engine/engine.ts'
import type { Database } from '../store/database.ts'
import { type QueuedItem, queuedItems } from '../store/job/items.ts'
import type { Recorder } from './recorder.ts'

/** Items read together, and how many may be under way at once: many, as one silent name server holds its own for seconds. */
const PAGE_MAX = 250
const UNDER_WAY_MAX = 1_000

export type RouteWork = {
  readonly engine: Engine
  readonly database: Database
  readonly recorder: Recorder
  readonly jobId: string
  readonly stopping: AbortSignal
  /** Called when an item of an operator is filed and durable. */
  readonly onFiled: (operator: string) => Promise<void>
}

/** First step of a job: decides what needs no mail server, and files the rest under its operators. */
export async function routeItems(work: RouteWork): Promise<void> {
  const underWay = new Set<Promise<void>>()
  let after = 0
  while (!work.stopping.aborted) {
    const page = await queuedItems(work.database, { jobId: work.jobId, after, max: PAGE_MAX })
    const last = page.at(-1)
    if (last === undefined) break
    after = last.position
    for (const item of page) {
      const run = routeItem(work, item).finally(() => underWay.delete(run))
      underWay.add(run)
    }
    while (underWay.size > UNDER_WAY_MAX - PAGE_MAX) await Promise.race(underWay)
  }
  await Promise.all(underWay)
}

/** Each item goes on as soon as its own route is there. */
async function routeItem(work: RouteWork, { position, text, copies }: QueuedItem): Promise<void> {
  const prepared = await work.engine.routeOne(text, { signal: work.stopping })
  // The DNS was not heard out because we stop: the item is looked at when the job goes on.
  if (work.stopping.aborted) return
  if ('result' in prepared) {
    return work.recorder.add({ results: [{ position, copies, result: prepared.result }] })
  }
  const { operator, address, route } = prepared.inquiry
  const filed = {
    position,
    operator: operator.name,
    domain: address.domain.ascii,
    route: JSON.stringify(route),
  }
  await work.recorder.add({ filed: [filed] })
  await work.onFiled(operator.name)
}
