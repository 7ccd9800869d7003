import type { Database } from '../../db/database.ts'
import { DnsPause } from '../../engine/dns-pause.ts'
import type { Engine } from '../../engine/engine.ts'
import type { RouteOptions } from '../../engine/verify-options.ts'
import type { PreparedAddress } from '../../engine/probing/prepare.ts'
import { fromFailure } from '../../engine/verdict/build-result.ts'
import { type Clock, yieldToEventLoop } from '../../platform/clock.ts'
import type { Priority } from '../../platform/priority.ts'
import { type QueuedItem, queuedItems } from '../item-store.ts'
import type { ResultWriter } from '../results/result-writer.ts'
import type { ActiveJob } from '../worker/active-jobs.ts'

/** Items read together, and how many may be under way at once, over all lists: many, as one silent name server holds its own for seconds. */
const PAGE_MAX = 250
const UNDER_WAY_MAX = 1_000
/** However many lists share them. */
const SHARE_MIN = 20
/** Items whose routes are looked up between two turns of the event loop: 3 ms. */
const ROUTED_MAX = 25

export type RouteWork = {
  readonly database: Database
  readonly recorder: ResultWriter
  /** No new item is looked at; what is under way is left. */
  readonly stopping: AbortSignal
  /** Lists that are being routed just now. */
  readonly routing: ReadonlySet<string>
  /** Requests that go first; null: there are none. */
  readonly priority: Pick<Priority, 'yieldToRequests'> | null
  /** Called when an item of an operator is filed and durable. */
  readonly onFiled: (list: ActiveJob, operator: string) => Promise<void>
}

/** First step of a job: decides what needs no mail server, and files the rest under its operators. */
export async function routeItems(work: RouteWork, list: ActiveJob): Promise<void> {
  const { database, recorder, routing } = work
  const stopping = AbortSignal.any([work.stopping, list.over])
  const dnsPause = new DnsPause(list.engine.resolverCheck, database.clock, stopping)
  const options = { ...list.options, signal: stopping, ...(list.wait ? { dnsPause } : {}) }
  const giveWay = () => work.priority?.yieldToRequests('route') ?? yieldToEventLoop()
  const underWay = new Set<Promise<void>>()
  let onDone = () => {}
  let after = 0
  let failure: { error: unknown } | null = null
  while (!stopping.aborted && failure === null) {
    const share = Math.max(SHARE_MIN, Math.floor(UNDER_WAY_MAX / routing.size))
    const pageMax = Math.min(PAGE_MAX, share)
    // Not by Promise.race, which would leave a reaction at each of them for each that is done.
    while (underWay.size > share - pageMax) {
      await new Promise<void>(resolve => {
        onDone = resolve
      })
    }
    await recorder.settled()
    const page = await queuedItems(database, { jobId: list.id, after, max: pageMax })
    const last = page.at(-1)
    if (last === undefined) break
    after = last.position
    for (const [index, item] of page.entries()) {
      if (index % ROUTED_MAX === 0) await giveWay()
      const run = routeItem(work, list, item, options)
        .catch(error => {
          failure ??= { error }
        })
        .finally(() => {
          underWay.delete(run)
          onDone()
        })
      underWay.add(run)
    }
  }
  await Promise.all(underWay)
  if (failure !== null) throw (failure as { error: unknown }).error
}

type RowOptions = RouteOptions & { readonly signal: AbortSignal }

/** Each item goes on as soon as its own route is there. */
async function routeItem(
  { database, recorder, onFiled }: RouteWork,
  list: ActiveJob,
  { position, text, copies }: QueuedItem,
  options: RowOptions,
): Promise<void> {
  const prepared = await prepare(list.engine, database.clock, text, options)
  // The DNS was not heard out because we stop: the item is looked at when the job goes on.
  if (options.signal.aborted) return
  if ('result' in prepared) {
    return recorder.add(list.id, { results: [{ position, copies, result: prepared.result }] })
  }
  const { operator, address, route, exchangers } = prepared.task
  const filed = {
    position,
    operator: operator.name,
    backupOperator: exchangers[1]?.operator.name ?? null,
    domain: address.domain.ascii,
    route: JSON.stringify(route),
  }
  await recorder.add(list.id, { filed: [filed] })
  await onFiled(list, operator.name)
}

/** What fails over one item is the result of that item, and ends nobody else's. */
async function prepare(
  engine: Engine,
  clock: Clock,
  text: string,
  options: RowOptions,
): Promise<PreparedAddress> {
  const startedAt = clock.monotonicNow()
  try {
    return await engine.routeOne(text, options)
  } catch (error) {
    return { result: fromFailure(clock, { text, startedAt }, error) }
  }
}
