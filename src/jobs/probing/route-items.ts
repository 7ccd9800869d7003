import type { Database } from '../../db/database.ts'
import { DnsPause } from '../../engine/dns-pause.ts'
import type { Engine } from '../../engine/engine.ts'
import type { PreparedAddress } from '../../engine/probing/prepare.ts'
import { fromFailure } from '../../engine/verdict/build-result.ts'
import type { RouteOptions } from '../../engine/verify-options.ts'
import { type Clock, yieldToEventLoop } from '../../platform/clock.ts'
import type { Priority } from '../../platform/priority.ts'
import { type QueuedItem, queuedItems } from '../item-store.ts'
import type { ResultWriter } from '../results/result-writer.ts'
import type { ActiveJob } from '../worker/active-jobs.ts'

/**
 * Items read per page, and maximum number in flight over all lists: many, because a silent name
 * server delays its items for seconds.
 */
const PAGE_MAX = 250
const IN_FLIGHT_MAX = 1_000
/** Minimum per list, however many lists share the maximum. */
const SHARE_MIN = 20
/** Items routed per turn of the event loop: 3 ms. */
const ROUTED_MAX = 25

type RouteWork = {
  readonly database: Database
  readonly recorder: ResultWriter
  /** Starts no new item and abandons items in flight. */
  readonly stopping: AbortSignal
  /** IDs of the lists that are being routed. */
  readonly routing: ReadonlySet<string>
  /** Lets requests go before routing; null if the process serves none. */
  readonly priority: Pick<Priority, 'yieldToRequests'> | null
  /** Called when an item is routed to an operator and this is committed. */
  readonly onRouted: (list: ActiveJob, operator: string) => Promise<void>
}

/**
 * First step of a job: finishes items that need no mail server and routes the others to their
 * operators.
 */
export async function routeItems(work: RouteWork, list: ActiveJob): Promise<void> {
  const { database, recorder, routing } = work
  const stopping = AbortSignal.any([work.stopping, list.ended])
  const dnsPause = new DnsPause(list.engine.resolverCheck, database.clock, stopping)
  const options = { ...list.options, signal: stopping, ...(list.wait ? { dnsPause } : {}) }
  const yieldToRequests = () => work.priority?.yieldToRequests('route') ?? yieldToEventLoop()
  const inFlight = new Set<Promise<void>>()
  let onDone = () => {}
  let after = 0
  let failure: { error: unknown } | null = null
  while (!stopping.aborted && failure === null) {
    const share = Math.max(SHARE_MIN, Math.floor(IN_FLIGHT_MAX / routing.size))
    const pageMax = Math.min(PAGE_MAX, share)
    // Promise.race would leave a reaction at each pending item for each finished one.
    while (inFlight.size > share - pageMax) {
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
      if (index % ROUTED_MAX === 0) await yieldToRequests()
      const run = routeItem(work, list, item, options)
        .catch(error => {
          failure ??= { error }
        })
        .finally(() => {
          inFlight.delete(run)
          onDone()
        })
      inFlight.add(run)
    }
  }
  await Promise.all(inFlight)
  if (failure !== null) throw (failure as { error: unknown }).error
}

type RowOptions = RouteOptions & { readonly signal: AbortSignal }

/** Routes one item, which can be probed as soon as its own route is committed. */
async function routeItem(
  { database, recorder, onRouted }: RouteWork,
  list: ActiveJob,
  { position, text, copies }: QueuedItem,
  options: RowOptions,
): Promise<void> {
  const prepared = await prepare(list.engine, database.clock, text, options)
  // The stop aborted the DNS lookup: the item is routed when the job continues.
  if (options.signal.aborted) return
  if ('result' in prepared) {
    return recorder.add(list.id, { results: [{ position, copies, result: prepared.result }] })
  }
  const { operator, address, route, exchangers } = prepared.task
  const routed = {
    position,
    operator: operator.name,
    backupOperator: exchangers[1]?.operator.name ?? null,
    domain: address.domain.ascii,
    route: JSON.stringify(route),
  }
  await recorder.add(list.id, { routed: [routed] })
  await onRouted(list, operator.name)
}

/** An internal failure becomes the result of its item and does not affect other items. */
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
