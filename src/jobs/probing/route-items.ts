import pLimit, { type LimitFunction } from 'p-limit'
import type { Database } from '../../db/database.ts'
import { DnsPause } from '../../engine/dns-pause.ts'
import type { PreparedAddress } from '../../engine/probe/prepare.ts'
import { roughDomain } from '../../engine/scheduler/domain-backlog.ts'
import { fromFailure } from '../../engine/verdict/build-result.ts'
import { toRowResult } from '../../engine/verdict/judge.ts'
import type { RouteOptions } from '../../engine/verify-options.ts'
import { yieldToEventLoop } from '../../platform/clock.ts'
import type { Priority } from '../../platform/priority.ts'
import { type ItemRoute, type QueuedItem, queuedItems } from '../item-store.ts'
import type { Outcome } from '../results/commit-batch.ts'
import type { ResultWriter } from '../results/result-writer.ts'
import type { ActiveJob } from '../worker/active-jobs.ts'
import { toItemRoute } from './item-route.ts'
import type { RoutedItems } from './probe-scheduler.ts'

/**
 * Items that are read ahead and grouped by domain, over all lists, about 150 bytes each: each
 * domain is looked up once and its items share connections, wherever they are in the list.
 */
const WINDOW_MAX = 100_000
/** The same in a process that serves requests, which has several lists in memory. */
const SERVICE_WINDOW_MAX = 20_000
/** Minimum per list, however many lists share the maximum. */
const WINDOW_MIN = 2_000
/** Items read per statement. */
const PAGE_MAX = 500
/**
 * Maximum number of domains in flight over all lists: many, because a name server that does not
 * respond delays its domain for seconds.
 */
const DOMAINS_MAX = 1_000
/** Minimum per list, however many lists share the maximum. */
const DOMAINS_MIN = 20
/** Items routed per turn of the event loop: 3 ms. */
const ROUTED_MAX = 25
/** Items of one domain that are routed before other domains have their turn. */
const GROUP_MAX = 200

type RouteWork = {
  readonly database: Database
  readonly recorder: ResultWriter
  /** Starts no new item and abandons items in flight. */
  readonly stopping: AbortSignal
  /** IDs of the lists that are being routed. */
  readonly routing: ReadonlySet<string>
  /** Lets requests go before routing; null if the process serves none. */
  readonly priority: Pick<Priority, 'yieldToRequests'> | null
  /** Called when items can be claimed. */
  readonly onRouted: (list: ActiveJob, routed: RoutedItems) => Promise<void>
}

/** The list that is being routed, and the turns of its domains. */
type Routing = {
  readonly list: ActiveJob
  readonly options: RowOptions
  /**
   * Runs one group of items at a time, so that the items of a domain are stored together. Not for
   * work that waits for the DNS.
   */
  readonly inTurn: LimitFunction
  /** Yields to the event loop if this turn has no room for so many more items. */
  readonly yieldFor: (count: number) => Promise<void>
}

/**
 * First step of a job: finishes items that need no mail server and routes the others to their
 * operators.
 */
export async function routeItems(work: RouteWork, list: ActiveJob): Promise<void> {
  const { database, recorder, routing } = work
  const stopping = AbortSignal.any([work.stopping, list.ended])
  const unpatient = AbortSignal.any([stopping, list.finishing])
  const dnsPause = new DnsPause(list.engine.resolverCheck, database.clock, unpatient)
  const options = { ...list.options, signal: stopping, ...(list.wait ? { dnsPause } : {}) }
  const yieldFor = createTurns(() => yieldToRequests(work))
  const routed = { list, options, inTurn: pLimit(1), yieldFor }
  const inFlight = new Set<Promise<void>>()
  let onDone = () => {}
  let failure: { error: unknown } | null = null
  try {
    for await (const domains of readWindows(work, list, stopping)) {
      for (const items of domains) {
        // Promise.race would leave a reaction at each pending item for each finished one.
        while (inFlight.size >= shareOf(DOMAINS_MAX, routing, DOMAINS_MIN)) {
          await new Promise<void>(resolve => {
            onDone = resolve
          })
        }
        // The items behind the first chunk of a domain have turns of their own.
        await yieldFor(Math.min(items.length, ROUTED_MAX))
        await recorder.settled()
        if (stopping.aborted || failure !== null) break
        const run = routeDomain(work, routed, items)
          .catch(error => {
            failure ??= { error }
          })
          .finally(() => {
            inFlight.delete(run)
            onDone()
          })
        inFlight.add(run)
      }
      if (failure !== null) break
    }
  } finally {
    // A retry reads the items that have no result and no operator by then.
    await Promise.all(inFlight)
  }
  if (failure !== null) throw (failure as { error: unknown }).error
}

/** Counts the items of a turn of the event loop, and ends it before one that has no room. */
function createTurns(nextTurn: () => Promise<void>): (count: number) => Promise<void> {
  let count = 0
  return async added => {
    if (count + added > ROUTED_MAX) {
      await nextTurn()
      count = 0
    }
    count += added
  }
}

const shareOf = (max: number, { size }: ReadonlySet<string>, min: number) =>
  Math.max(min, Math.floor(max / size))

const yieldToRequests = ({ priority }: RouteWork) =>
  priority?.yieldToRequests('route') ?? yieldToEventLoop()

/** Reads the items of a list that are not routed yet, window by window, grouped by domain. */
async function* readWindows(
  work: RouteWork,
  list: ActiveJob,
  stopping: AbortSignal,
): AsyncGenerator<Iterable<readonly QueuedItem[]>> {
  let after = 0
  for (;;) {
    const max = work.priority === null ? WINDOW_MAX : SERVICE_WINDOW_MAX
    const windowMax = shareOf(max, work.routing, WINDOW_MIN)
    const domains = new Map<string, QueuedItem[]>()
    let isLast = false
    for (let size = 0; size < windowMax && !isLast; size += PAGE_MAX) {
      await yieldToRequests(work)
      if (stopping.aborted) return
      const page = await queuedItems(work.database, { jobId: list.id, after, max: PAGE_MAX })
      after = page.at(-1)?.position ?? after
      isLast = page.length < PAGE_MAX
      // A sandbox looks up no domain, and results are stored fastest in list order.
      if (list.engine.isSandbox) yield groupsOf(page, ROUTED_MAX)
      else for (const item of page) addToDomain(domains, item)
    }
    yield domains.values()
    if (isLast) return
  }
}

function* groupsOf<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let from = 0; from < items.length; from += size) yield items.slice(from, from + size)
}

/** Groups by the text of the domain: two spellings of one domain only cost a lookup in the cache. */
function addToDomain(domains: Map<string, QueuedItem[]>, item: QueuedItem) {
  const domain = roughDomain(item.text)
  const items = domains.get(domain)
  if (items === undefined) domains.set(domain, [item])
  else items.push(item)
}

type RowOptions = RouteOptions & { readonly signal: AbortSignal }

type ItemGroup = {
  /** All items of the domain. */
  readonly items: readonly QueuedItem[]
  /** Index of the first item of the group. */
  readonly from: number
  /** The first chunk of the domain, prepared. */
  readonly head: readonly PreparedAddress[]
}

/** Routes the items of one domain; the first one looks up the route for all. */
async function routeDomain(
  work: RouteWork,
  routing: Routing,
  items: readonly QueuedItem[],
): Promise<void> {
  const first = await prepare(work, routing, items[0] as QueuedItem)
  const others = items.slice(1, ROUTED_MAX)
  const head = [first, ...(await prepareAll(work, routing, others))]
  for (let from = 0; from < items.length; from += GROUP_MAX) {
    const route = () => routeGroup(work, routing, { items, from, head })
    const added = await ('task' in first ? routing.inTurn(route) : route())
    await Promise.all(added)
    if (routing.options.signal.aborted) return
  }
}

/** Adds a group of items; the returned promises resolve when these can be probed. */
async function routeGroup(
  work: RouteWork,
  routing: Routing,
  { items, from, head }: ItemGroup,
): Promise<Promise<void>[]> {
  const added: Promise<void>[] = []
  const end = Math.min(from + GROUP_MAX, items.length)
  for (let at = from; at < end; at += ROUTED_MAX) {
    const chunk = items.slice(at, Math.min(at + ROUTED_MAX, end))
    if (at > 0) {
      await work.recorder.settled()
      await routing.yieldFor(chunk.length)
    }
    const prepared = at === 0 ? head : await prepareAll(work, routing, chunk)
    // After a stop, which aborts DNS lookups, the items are routed when the job continues.
    if (routing.options.signal.aborted) break
    const isLast = at + ROUTED_MAX >= items.length
    const adding = addPrepared(work, routing.list, { chunk, prepared, isLast })
    // The caller handles an error once all chunks are added; until then it is not unhandled.
    adding.catch(() => {})
    added.push(adding)
  }
  return added
}

/**
 * Records results, and keeps or stores routed items; these can be probed when it resolves. After an
 * internal failure, the items that it has not reached are read again.
 */
async function addPrepared(
  { recorder, onRouted }: RouteWork,
  list: ActiveJob,
  o: {
    readonly chunk: readonly QueuedItem[]
    readonly prepared: readonly PreparedAddress[]
    readonly isLast: boolean
  },
): Promise<void> {
  const results: Outcome[] = []
  const stored: ItemRoute[] = []
  const routed = new Map<string, RoutedItems>()
  const failures: unknown[] = []
  const addItem = ({ position, copies }: QueuedItem, prepared: PreparedAddress) => {
    if ('result' in prepared) {
      results.push({ position, copies, result: toRowResult(prepared.result) })
      return
    }
    const { task } = prepared
    if (list.finishing.aborted) {
      results.push({ position, copies, result: list.engine.presentResult(task) })
      return
    }
    stored.push(toItemRoute(position, task))
    const operator = task.operator.name
    const domain = task.address.domain.ascii
    const isOwn = domain === operator || domain.endsWith(`.${operator}`)
    const before = routed.get(operator)
    routed.set(operator, {
      operator,
      isComplete: o.isLast && isOwn,
      stored: (before?.stored ?? 0) + 1,
    })
  }
  for (const [index, item] of o.chunk.entries()) {
    try {
      addItem(item, o.prepared[index] as PreparedAddress)
    } catch (error) {
      failures.push(error)
    }
  }
  if (results.length > 0 || stored.length > 0) {
    await recorder.add(list.id, { results, routed: stored })
  }
  for (const items of routed.values()) {
    try {
      await onRouted(list, items)
    } catch (error) {
      // It is enqueued with the operators of the list, when this is routed.
      list.operators.add(items.operator)
      failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
}

const prepareAll = (work: RouteWork, routing: Routing, items: readonly QueuedItem[]) =>
  Promise.all(items.map(item => prepare(work, routing, item)))

/** An internal failure becomes the result of its item and does not affect other items. */
async function prepare(
  { database: { clock } }: RouteWork,
  { list: { engine }, options }: Routing,
  { text }: QueuedItem,
): Promise<PreparedAddress> {
  const startedAt = clock.monotonicNow()
  try {
    return await engine.routeOne(text, options)
  } catch (error) {
    return { result: fromFailure(clock, { text, startedAt }, error) }
  }
}
