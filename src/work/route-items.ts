import type { Engine } from '../engine/engine.ts'
import type { Database } from '../store/database.ts'
import { type Filed, type QueuedItem, queuedItems } from '../store/items.ts'
import type { Change, Recorder } from './recorder.ts'

/** Items looked at together, and how many such pages are under way at once. */
const PAGE_MAX = 250
const PAGES_MAX = 4

export type RouteWork = {
  readonly engine: Engine
  readonly database: Database
  readonly recorder: Recorder
  readonly jobId: string
  readonly stopping: AbortSignal
  /** Called when items of an operator are filed and durable. */
  readonly onFiled: (operator: string, items: number) => Promise<void>
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
    const run = routePage(work, page).finally(() => underWay.delete(run))
    underWay.add(run)
    if (underWay.size >= PAGES_MAX) await Promise.race(underWay)
  }
  await Promise.all(underWay)
}

async function routePage(work: RouteWork, page: readonly QueuedItem[]): Promise<void> {
  const prepared = await work.engine.route(page.map(({ text }) => text))
  const results: NonNullable<Change['results']>[number][] = []
  const filed: Filed[] = []
  for (const [index, { position, copies }] of page.entries()) {
    const one = prepared[index]
    if (one === undefined) continue
    if ('result' in one) results.push({ position, copies, result: one.result })
    else {
      const { operator, address, route } = one.inquiry
      filed.push({
        position,
        operator: operator.name,
        domain: address.domain.ascii,
        route: JSON.stringify(route),
      })
    }
  }
  await work.recorder.add({ results, filed })
  for (const [operator, items] of countBy(filed)) await work.onFiled(operator, items)
}

function countBy(filed: readonly Filed[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { operator } of filed) counts.set(operator, (counts.get(operator) ?? 0) + 1)
  return counts
}
