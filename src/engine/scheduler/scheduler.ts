import { onAbort } from '../../platform/abort.ts'
import { type Clock, SECOND, sleep, yieldToEventLoop } from '../../platform/clock.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import { withDeadline } from '../deadline.ts'
import type { MxOperator } from '../dns/operators.ts'
import type { ResolverCheck } from '../dns/resolver-check.ts'
import { DnsPause, dnsWaitMs } from '../dns-pause.ts'
import type { EgressPool } from '../probe/egress-pool.ts'
import { hostsOf, type RouteWithHost } from '../probe/mx-groups.ts'
import type { PreparedAddress, ProbeTask, TaskOptions } from '../probe/prepare.ts'
import type { ProbeOptions, ProbeSink } from '../probe/probe-options.ts'
import {
  FAULTS_MAX,
  isDecided,
  nextRetry,
  type Outcome,
  type Retry,
} from '../probe/retry-policy.ts'
import { fromFailedProbe } from '../verdict/build-result.ts'
import { isFailure, type Result } from '../verdict/verdict.ts'
import type { RouteOptions } from '../verify-options.ts'
import { DomainBacklog } from './domain-backlog.ts'
import type { Feed, Row, Sink } from './feed.ts'
import { type MxBatch, OperatorQueue, type PendingRow } from './operator-queue.ts'

export type SchedulerOptions = {
  readonly clock: Clock
  /** Maximum number of concurrent SMTP sessions. */
  readonly concurrency: number
  /** Wait before a greylisted row is retried, in ms; null: as long as the server says. */
  readonly greylistDelayMs: number | null
  /** Maximum number of rows in the scheduler and in the sink. */
  readonly windowMax: number
  /** Whether the sink takes rows back for which there is no room. */
  readonly canRefuse: boolean
  /** False: rows that should be retried later keep their current result. */
  readonly wait: boolean
  /** True: connections take precedence over those of other lists. */
  readonly urgent: boolean
  /** How rows are routed. */
  readonly route: Pick<RouteOptions, 'checkSmtp' | 'forceRefresh' | 'cacheScope'>
  /** Aborts all work at once. */
  readonly signal: AbortSignal
  /** Lets sessions in flight finish, and starts nothing new. */
  readonly drain?: AbortSignal
  /** Gives rows that are not being probed what is known of them now as their result. */
  readonly finish?: AbortSignal
}

/**
 * Texts in memory. A list often has the addresses of a domain far apart, and only those in the
 * window can share a connection. A waiting text takes 110 bytes, or 240 if no other has its domain,
 * in total at most 24 MB.
 */
export const WINDOW_MAX = 100_000
/** The window is refilled when this share of it is free, so that texts arrive in groups. */
const REFILL_SHARE = 1 / 16
/** Addresses that are routed and not yet probed; about 1 KB each. Later ones wait as texts. */
const ACTIVE_MAX = 10_000
/** Concurrent route lookups: enough to keep the resolver busy, few enough that each is quick. */
const ROUTING_MAX = 1_000
/** Addresses of one domain that are routed together, so that other domains have their turn. */
const GROUP_MAX = 200
/**
 * Share of the window for addresses that wait until a block expires (half an hour). Without this
 * limit they could fill the window and stall the rest of the list.
 */
const BLOCKED_SHARE_MAX = 0.5
/** How long addresses that cannot fill a connection wait for more, after the last arrival. */
const GATHER_MS = 100
/** The same for addresses that a connection has returned. */
const RETURNED_MS = 20
/** A source is idle after this time without a text: those that wait are routed then. */
const IDLE_MS = 25
/** The longest wait for a source that is never idle, as in a list that is being routed. */
const HOLD_MAX_MS = 5 * SECOND
/**
 * Rows of an operator that are kept, in connections of all egresses: enough to fill each connection
 * again as soon as it ends. Others are refused, so that they take no memory.
 */
const BATCHES_PER_CONNECTION = 2
/** An egress that may open no connection for longer than this leaves its worker to other operators. */
const PAUSE_MIN_MS = SECOND
/** The wait before an address is probed again after an internal failure. */
const FAULT_DELAY_MS = SECOND
/** Rows that are read in one turn of the event loop. */
const READ_MAX = 2_000

/** The part of the engine that a scheduler uses. */
export type SchedulerEngine = {
  readonly resolverCheck: ResolverCheck | null
  readonly egressPool: EgressPool
  routeOne(text: string, options: RouteOptions): Promise<PreparedAddress>
  prefetchHost(route: RouteWithHost): void
  isTested(task: ProbeTask): boolean
  resume(text: string, route: RouteWithHost, options: Partial<TaskOptions>): ProbeTask | null
  presentResult(task: ProbeTask): Result
  probe(
    operator: MxOperator,
    tasks: readonly ProbeTask[],
    sink: ProbeSink<ProbeTask, Outcome>,
    options: Pick<ProbeOptions, 'signal' | 'drain' | 'urgent'> & { readonly egress: string },
  ): Promise<void>
}

/**
 * Verifies the rows of a feed and tells a sink what becomes of each, in order of completion.
 *
 * 1. `#read` takes rows from the feed while the window has room, and files their texts by domain
 *    (`DomainBacklog`), so that a domain is looked up once and its rows share connections.
 * 2. `#routeGroup` routes rows of one domain. Those that need no mail server are decided; the others
 *    join the batch of their MX hosts in the queue of their operator (`OperatorQueue`).
 * 3. `#startWorkers` gives batches to workers, one per connection, within the limits of the
 *    operator, of each egress and of the run. A batch is taken when it fills a connection, or when no
 *    more rows are expected for it soon.
 * 4. `#probeTogether` probes one batch. Each outcome decides its row, or postpones it: the row
 *    waits, and joins a batch again.
 *
 * A row is open from its arrival until the sink was told its result. An internal failure becomes the
 * result of its row. If even that fails, the run ends with an error. Rows that are open when the run
 * ends, for whatever reason, are refused.
 */
export class Scheduler<T> {
  readonly #engine: SchedulerEngine
  readonly #sink: Sink<T>
  readonly #options: SchedulerOptions
  readonly #queues = new Map<string, OperatorQueue<T>>()
  /** Queues that wait for a free worker. */
  readonly #waitingQueues = new Set<OperatorQueue<T>>()
  /**
   * Duplicates of each address in flight, so that an address is never probed twice at the same
   * time.
   */
  readonly #duplicates = new Map<string, Row<T>[]>()
  readonly #stopping = new AbortController()
  /** Aborts with the run and the caller's signal. */
  readonly #ending: AbortSignal
  /** Aborts with `#ending` or when the run drains: nothing new is started then. */
  readonly #draining: AbortSignal
  readonly #dnsPause: DnsPause
  /** The rows that are being probed, each with those of its connection. */
  readonly #probing = new Map<
    ProbeTask,
    { readonly pending: PendingRow<T>; readonly chunk: readonly PendingRow<T>[] }
  >()
  /** Rows without a result. */
  readonly #open = new Set<Row<T>>()
  /** Rows that wait for their route. */
  readonly #backlog = new DomainBacklog<Row<T>>()
  /** Batches that wait for more rows, in the order of `at`, a time of their last arrival. */
  readonly #gathering = new Map<
    MxBatch<T>,
    { readonly queue: OperatorQueue<T>; readonly at: number }
  >()
  #cancelGather: (() => void) | null = null
  /** Since when the backlog waits for the feed, monotonic ms; null if it does not. */
  #heldSince: number | null = null
  #cancelHold: (() => void) | null = null
  /** When the last row was read, monotonic ms. */
  #readAt = 0
  /** Number of groups of rows that are being routed. */
  #routing = 0
  /** Number of rows that are routed, wait for no retry and have no result yet. */
  #active = 0
  /** Number of rows that wait, unprobed, until a block expires. */
  #blockedCount = 0
  #workers = 0
  #inputEnded = false
  /** Whether the feed has no more rows for now. */
  #inputIdle = false
  /** The error of the feed, which ended its rows. */
  #inputFailure: { readonly error: unknown } | null = null
  /** Number of consecutive internal failures of the selection of an egress. */
  #selectionFaults = 0
  /** Number of rows by operator; only if rows can be refused. */
  readonly #sizes = new Map<string, number>()
  /** Operators of which rows were refused. */
  readonly #refusing = new Set<string>()
  /** Timers of queues that wait for the end of a pause. */
  readonly #resumptions = new Map<OperatorQueue<T>, () => void>()
  /** The internal failure that ended the run. */
  #failure: EvError | null = null
  #onCapacity: () => void = () => {}
  #end: () => void = () => {}

  constructor(engine: SchedulerEngine, sink: Sink<T>, options: SchedulerOptions) {
    this.#engine = engine
    this.#sink = sink
    this.#options = options
    const { clock, signal, drain, finish } = options
    this.#ending = withDeadline(clock, null, [signal, this.#stopping.signal]).signal
    this.#draining =
      drain === undefined ? this.#ending : withDeadline(clock, null, [this.#ending, drain]).signal
    const waitEnd = withDeadline(clock, null, [this.#draining, finish]).signal
    this.#dnsPause = new DnsPause(engine.resolverCheck, clock, waitEnd)
    onAbort(this.#draining, () => {
      this.#cancelHold?.()
      this.#cancelGather?.()
      for (const cancel of this.#resumptions.values()) cancel()
      this.#onCapacity()
      this.#checkEnd()
    })
    onAbort(this.#ending, () => this.#checkEnd())
    if (finish !== undefined) onAbort(finish, () => this.#finishPending())
  }

  /**
   * Resolves when each row of the feed has a result, when the signal aborts, or when the run has
   * drained. Rejects with the error of the feed after the results of its rows, and with an EvError
   * `internal` if a method of the sink throws or rows cannot be given a result. May be called once.
   */
  async run(feed: Feed<T>): Promise<void> {
    const ended = new Promise<void>(resolve => {
      this.#end = resolve
    })
    void this.#read(feed)
    this.#checkEnd()
    await ended
    this.#stopping.abort()
    for (const { item } of this.#open) this.#tell('refused', () => this.#sink.refused(item, null))
    this.#open.clear()
    if (this.#failure !== null) throw this.#failure
    if (this.#inputFailure !== null) throw this.#inputFailure.error
  }

  /** Call it when the sink holds fewer results. */
  refill(): void {
    if (this.#inFlight <= this.#options.windowMax * (1 - REFILL_SHARE)) this.#onCapacity()
    if (this.#draining.aborted || this.#sink.isFull) return
    this.#routeBacklog()
    this.#dispatchWaiting()
  }

  /** Returns the rows that can be probed and that pass, by operator. */
  countPending(isCounted: (row: Row<T>) => boolean): Map<string, number> {
    const counts = new Map<string, number>()
    for (const [operator, queue] of this.#queues) {
      const count = queue.count(({ row }) => isCounted(row))
      if (count > 0) counts.set(operator, count)
    }
    return counts
  }

  /** Number of rows in the window. */
  get #inFlight(): number {
    return this.#open.size + this.#sink.held
  }

  #checkEnd() {
    const hasDrained = this.#draining.aborted && this.#workers === 0
    const isDone = this.#inputEnded && this.#open.size === 0
    if (this.#ending.aborted || hasDrained || isDone) this.#end()
  }

  /** Reads rows while the window has capacity. */
  async #read(feed: Feed<T>): Promise<void> {
    try {
      for (let count = 0; !this.#draining.aborted; ) {
        const page = await feed.read(Math.min(READ_MAX, this.#options.windowMax - this.#inFlight))
        if (page === null || this.#draining.aborted) break
        this.#inputIdle = page.length === 0
        if (this.#inputIdle) {
          this.#release()
          this.#dispatchAll()
          continue
        }
        this.#accept(page)
        count += page.length
        if (this.#inFlight >= this.#options.windowMax) await this.#waitForCapacity()
        else if (count >= READ_MAX) {
          count = 0
          await yieldToEventLoop()
        }
      }
    } catch (error) {
      this.#inputFailure = { error }
    }
    this.#inputEnded = true
    this.#release()
    this.#dispatchAll()
    this.#checkEnd()
  }

  /**
   * Adds rows to the backlog. While the feed has more, the backlog grows, so that the rows of a
   * domain are found together; a row that arrives alone is routed at once.
   */
  #accept(page: readonly Row<T>[]) {
    const isAlone = page.length === 1 && this.#inFlight === 0
    for (const row of page) {
      this.#open.add(row)
      this.#backlog.add(row)
    }
    if (isAlone) return this.#release()
    this.#readAt = this.#options.clock.monotonicNow()
    if (this.#heldSince !== null) return
    this.#heldSince = this.#readAt
    this.#hold(IDLE_MS)
  }

  #hold(delayMs: number) {
    const { clock } = this.#options
    this.#cancelHold = clock.after(delayMs, () => {
      const now = clock.monotonicNow()
      const idleInMs = this.#readAt + IDLE_MS - now
      const heldMs = now - (this.#heldSince ?? now)
      if (idleInMs >= 1 && heldMs < HOLD_MAX_MS) this.#hold(idleInMs)
      else this.#release()
    })
  }

  #release() {
    this.#cancelHold?.()
    this.#cancelHold = null
    this.#heldSince = null
    this.#backlog.release()
    this.#routeBacklog()
  }

  /** Ends all work. `step` names what failed. */
  #fail(step: string, cause: unknown) {
    this.#failure ??= new EvError('internal', `${step} failed: ${errorMessage(cause)}`, { cause })
    this.#stopping.abort()
  }

  async #waitForCapacity(): Promise<void> {
    this.#release()
    while (this.#inFlight >= this.#options.windowMax && !this.#draining.aborted) {
      await new Promise<void>(resolve => {
        this.#onCapacity = resolve
      })
    }
  }

  /** Starts as many route lookups as the limits allow. */
  #routeBacklog() {
    while (
      this.#backlog.hasReleased &&
      this.#routing < ROUTING_MAX &&
      this.#active < ACTIVE_MAX &&
      !this.#sink.isFull &&
      !this.#draining.aborted
    )
      this.#routeGroup(this.#backlog.take(GROUP_MAX)).catch(error => this.#fail('Routing', error))
  }

  /** Routes rows of one domain: the first one is looked up, and the others find its answer. */
  async #routeGroup(rows: readonly Row<T>[]): Promise<void> {
    const [first] = rows as [Row<T>]
    this.#routing++
    this.#active += rows.length
    const task = await this.#route(first)
    if (rows.length > 1) await Promise.all(rows.slice(1).map(row => this.#route(row)))
    this.#routing--
    // Other domains rarely use the exchangers of this one, so no more recipients are expected.
    if (task !== null && isSelfHosted(task) && !this.#backlog.hasDomainOf(first)) {
      const queue = this.#queues.get(task.operator.name)
      queue?.markHostsReady(task)
      if (queue !== undefined) this.#dispatch(queue)
    }
    if (this.#heldSince === null) this.#backlog.release()
    this.#routeBacklog()
    this.#dispatchAll()
  }

  /** Returns the task of a row that needs a probe; null for any other. */
  async #route(row: Row<T>): Promise<ProbeTask | null> {
    const resumed = this.#resume(row)
    const prepared = resumed === null ? await this.#lookUp(row) : { task: resumed }
    // An abort ends the lookup without an answer.
    if (this.#draining.aborted) return null
    if ('task' in prepared) {
      this.#routed(row, prepared.task)
      return prepared.task
    }
    this.#active--
    this.#decide(row, prepared.result)
    return null
  }

  #lookUp({ text }: Row<T>): Promise<PreparedAddress> {
    const options = { ...this.#options.route, signal: this.#draining }
    return this.#engine.routeOne(
      text,
      this.#isPatient ? { ...options, dnsPause: this.#dnsPause } : options,
    )
  }

  /** Restores the task of a row with a route; null if that is not possible. */
  #resume({ text, history }: Row<T>): ProbeTask | null {
    if (history === null || history.route === null) return null
    try {
      return this.#engine.resume(text, history.route, this.#options.route)
    } catch {
      return null // Routed by another version of ev.
    }
  }

  /** Whether rows wait for retries. */
  get #isPatient(): boolean {
    return this.#options.wait && !this.#isFinishing
  }

  get #isFinishing(): boolean {
    return this.#options.finish?.aborted ?? false
  }

  #routed(row: Row<T>, task: ProbeTask) {
    const key = task.cacheKey
    const operator = task.operator.name
    const duplicates = this.#duplicates.get(key)
    if (duplicates !== undefined) {
      this.#active--
      if (duplicates === NO_DUPLICATES) this.#duplicates.set(key, [row])
      else duplicates.push(row)
      return
    }
    const since = this.#options.clock.monotonicNow()
    const fresh = { row, task, since, tries: 0, egress: null, refusedBy: [], faults: 0 }
    let pending: PendingRow<T>
    try {
      if (this.#hasNoRoom(operator)) return this.#refuse(row, operator)
      pending = this.#withHistory(fresh)
    } catch (error) {
      this.#duplicates.set(key, NO_DUPLICATES)
      return this.#handleFault(fresh, error)
    }
    if (this.#options.canRefuse) this.#sizes.set(operator, (this.#sizes.get(operator) ?? 0) + 1)
    this.#duplicates.set(key, NO_DUPLICATES)
    this.#enqueue(pending)
  }

  /** Adds the history of a row. An egress that may not probe its operator now is forgotten. */
  #withHistory(fresh: PendingRow<T>): PendingRow<T> {
    const { history } = fresh.row
    if (history === null) return fresh
    const { accepted, waitedMs, egress, tries, refusedBy } = history
    const operator = fresh.task.operator.name
    const isKnown = egress === null || this.#engine.egressPool.own.ranked(operator).includes(egress)
    return {
      ...fresh,
      task: { ...fresh.task, accepted },
      since: fresh.since - waitedMs,
      tries: isKnown ? tries : 0,
      egress: isKnown ? egress : null,
      refusedBy,
    }
  }

  #hasNoRoom(operator: string): boolean {
    const size = this.#sizes.get(operator)
    return size !== undefined && !this.#isFinishing && size >= this.#sizeMax(operator)
  }

  /** Returns the maximum number of rows of an operator. */
  #sizeMax(operator: string): number {
    const egressPool = this.#engine.egressPool.own
    const { sessionsMax, recipientsPerSession } = egressPool.row(operator)
    const egresses = egressPool.sharesLists(operator) ? egressPool.ranked(operator).length : 1
    return BATCHES_PER_CONNECTION * egresses * sessionsMax * recipientsPerSession
  }

  #refuse(row: Row<T>, operator: string) {
    this.#active--
    this.#refusing.add(operator)
    if (this.#tell('refused', () => this.#sink.refused(row.item, operator))) this.#close(row)
  }

  /** Counts a row that has left its operator, which may have room for refused rows then. */
  #onLeft({ operator: { name } }: ProbeTask) {
    const size = this.#sizes.get(name)
    if (size === undefined) return
    if (size === 1) this.#sizes.delete(name)
    else this.#sizes.set(name, size - 1)
    if (!this.#refusing.has(name)) return
    const room = this.#sizeMax(name) - (size - 1)
    if (size - 1 > room) return
    this.#tell('drained', () => {
      if (!this.#sink.drained(name, room)) this.#refusing.delete(name)
    })
  }

  #enqueue(pending: PendingRow<T>, isRetry = false) {
    if (this.#isFinishing) return this.#present(pending)
    let queue: OperatorQueue<T>
    try {
      queue = this.#queueFor(pending.task)
    } catch (error) {
      return this.#handleFault(pending, error)
    }
    // Retries that were delayed together return together, so they gather even at the end of the
    // input.
    const gathers = isRetry || !this.#isAllRouted
    const now = this.#options.clock.monotonicNow()
    const batch = queue.add(pending, now, gathers)
    if (queue.hasFull || !gathers) this.#dispatch(queue)
    if (!batch.isGathering || this.#gathering.has(batch)) return
    this.#gathering.set(batch, { queue, at: now })
    if (this.#cancelGather === null) this.#gather(GATHER_MS)
  }

  #queueFor({ operator, route }: ProbeTask): OperatorQueue<T> {
    const known = this.#queues.get(operator.name)
    if (known !== undefined) return known
    const queue = new OperatorQueue<T>(operator, this.#engine.egressPool.row(operator.name))
    this.#queues.set(operator.name, queue)
    this.#engine.prefetchHost(route)
    return queue
  }

  /**
   * One connection costs the same for one recipient as for many, so a batch waits for more of them.
   * One timer serves all batches.
   */
  #gather(delayMs: number) {
    const { clock } = this.#options
    this.#cancelGather = clock.after(delayMs, () => {
      this.#cancelGather = null
      const now = clock.monotonicNow()
      for (const [batch, { queue, at }] of this.#gathering) {
        const leftMs = at + GATHER_MS - now
        if (leftMs >= 1) return this.#gather(leftMs)
        this.#gathering.delete(batch)
        if (batch.rows.length === 0 || !batch.isGathering) continue
        if (batch.lastAt > at) {
          this.#gathering.set(batch, { queue, at: batch.lastAt })
          continue
        }
        queue.markReady(batch)
        this.#dispatch(queue)
      }
    })
  }

  get #isAllRouted(): boolean {
    const isRead = this.#inputEnded || this.#inputIdle
    return isRead && this.#routing === 0 && this.#backlog.isEmpty
  }

  /** Dispatches partial batches once the input has ended and all routes are known. */
  #dispatchAll() {
    if (!this.#isAllRouted) return
    for (const queue of this.#queues.values()) {
      queue.markAllReady()
      this.#dispatch(queue)
    }
  }

  #dispatch(queue: OperatorQueue<T>) {
    try {
      this.#startWorkers(queue)
      this.#selectionFaults = 0
    } catch (error) {
      // Nothing was taken from the queue.
      if (++this.#selectionFaults >= FAULTS_MAX) return this.#fail('Selecting an egress', error)
      const { clock } = this.#options
      void sleep(clock, FAULT_DELAY_MS, this.#draining).then(() => this.#dispatch(queue))
    }
  }

  /** Starts as many workers on a queue as the limits of each egress and of the run allow. */
  #startWorkers(queue: OperatorQueue<T>) {
    const egressPool = this.#engine.egressPool.own
    const operator = queue.operator.name
    const first = egressPool.primaryFor(operator)
    const { sessionsMax } = queue.limits
    for (const egress of egressPool.ranked(operator)) {
      // A blocked egress takes only what is pinned to it; that fails and moves to other egresses.
      const takesFree = egressPool.takesAny(egress, operator)
      // Only the primary egress takes a partial batch; the others take free rows when they fill a
      // connection.
      const takesPartial = egress === first
      while (queue.workers(egress) < sessionsMax) {
        if (queue.isEmpty || this.#draining.aborted) return
        if (this.#workers >= this.#options.concurrency || this.#sink.isFull) {
          return void this.#waitingQueues.add(queue)
        }
        const pausedMs = this.#getPauseMs(egress, operator)
        const isPaused = pausedMs > PAUSE_MIN_MS
        if (isPaused) this.#resumeLater(queue, pausedMs)
        const capacityFor = (next: PendingRow<T>) => this.#capacityFor(queue, next)
        const chunk = isPaused
          ? this.#takeBackedUp(queue, egress, takesFree)
          : queue.take(egress, { takesFree, takesPartial, capacityFor })
        if (chunk.length === 0) break
        this.#startWorker(queue, egress, chunk)
      }
    }
  }

  /**
   * Returns for how long an egress should open no connection to an operator, in ms. A run that waits
   * for nothing else waits for the probe of the reference MX hosts: if it finds the port blocked,
   * none of the others is dialed.
   */
  #getPauseMs(egress: string, operator: string): number {
    const egressPool = this.#engine.egressPool.own
    if (!this.#isPatient) return egressPool.prober(egress).probingForMs ?? 0
    const uncertainForMs = egressPool.uncertainForMs(egress, operator)
    return uncertainForMs ?? egressPool.prober(egress).knownController(operator)?.readyInMs ?? 0
  }

  /** During a pause of their first operator, rows with exchangers of another one can be probed. */
  #takeBackedUp(queue: OperatorQueue<T>, egress: string, takesFree: boolean): PendingRow<T>[] {
    const egressPool = this.#engine.egressPool.own
    const { name } = queue.operator
    const isPaused = egressPool.prober(egress).knownController(name)?.isPaused ?? false
    if (!isPaused || egressPool.uncertainForMs(egress, name) !== null) return []
    return queue.takeBackedUp(egress, takesFree)
  }

  #resumeLater(queue: OperatorQueue<T>, delayMs: number) {
    if (this.#resumptions.has(queue)) return
    const cancel = this.#options.clock.after(delayMs, () => {
      this.#resumptions.delete(queue)
      this.#dispatch(queue)
    })
    this.#resumptions.set(queue, cancel)
  }

  /**
   * Recipients per connection; until the catch-all status is known, one goes to the catch-all
   * probe.
   */
  #capacityFor({ limits }: OperatorQueue<T>, next: PendingRow<T>): number {
    const isTested = this.#engine.isTested(next.task)
    return Math.max(1, limits.recipientsPerSession - (isTested ? 0 : 1))
  }

  #startWorker(queue: OperatorQueue<T>, egress: string, chunk: PendingRow<T>[]) {
    queue.countWorker(egress, 1)
    this.#workers++
    const onEnd = () => {
      queue.countWorker(egress, -1)
      this.#workers--
      if (queue.isDone) this.#queues.delete(queue.operator.name)
      this.#dispatchNext(queue)
      if (this.#draining.aborted) this.#checkEnd()
    }
    this.#probeChunk(queue, egress, chunk)
      .catch(error => this.#fail('Probing', error))
      .then(onEnd)
      .catch(error => this.#fail('Probing', error))
  }

  /**
   * Gives a free worker to the queues that wait for one first, so that a long queue cannot starve
   * them.
   */
  #dispatchNext(queue: OperatorQueue<T>) {
    this.#dispatchWaiting()
    this.#dispatch(queue)
  }

  #dispatchWaiting() {
    for (const waiting of this.#waitingQueues) {
      if (this.#workers >= this.#options.concurrency || this.#sink.isFull) break
      this.#waitingQueues.delete(waiting)
      this.#dispatch(waiting)
    }
  }

  /** Probes a chunk. A row whose last probe failed internally is probed separately. */
  async #probeChunk(
    queue: OperatorQueue<T>,
    egress: string,
    chunk: readonly PendingRow<T>[],
  ): Promise<void> {
    const others = chunk.filter(({ faults }) => faults === 0)
    if (others.length > 0) await this.#probeTogether(queue, egress, others)
    for (const suspect of chunk) {
      if (suspect.faults === 0) continue
      if (this.#draining.aborted) return
      await this.#probeTogether(queue, egress, [suspect])
    }
  }

  async #probeTogether(
    queue: OperatorQueue<T>,
    egress: string,
    chunk: readonly PendingRow<T>[],
  ): Promise<void> {
    for (const pending of chunk) this.#probing.set(pending.task, { pending, chunk })
    let failure: unknown = null
    try {
      const tasks = chunk.map(({ task }) => task)
      await this.#engine.probe(queue.operator, tasks, this.#outcomes, {
        egress,
        signal: this.#ending,
        drain: this.#draining,
        urgent: this.#options.urgent,
      })
    } catch (error) {
      failure = error
    }
    for (const pending of chunk) {
      // Another connection may probe it by now.
      if (this.#probing.get(pending.task)?.chunk !== chunk) continue
      this.#probing.delete(pending.task)
      if (!this.#draining.aborted) this.#handleFault(pending, failure)
    }
  }

  /** Takes the outcomes of all probes. */
  readonly #outcomes: ProbeSink<ProbeTask, Outcome> = {
    probed: (task, outcome) => {
      this.#handleOutcome(this.#pendingOf(task), outcome)
      this.#probing.delete(task)
    },
    later: (task, delayMs) => {
      this.#enqueueLater(this.#pendingOf(task), delayMs)
      this.#probing.delete(task)
    },
    returned: tasks => {
      const returned = tasks.map(task => this.#pendingOf(task))
      for (const task of tasks) this.#probing.delete(task)
      this.#requeue(returned)
    },
  }

  #pendingOf(task: ProbeTask): PendingRow<T> {
    const probing = this.#probing.get(task)
    if (probing === undefined) throw new EvError('internal', `unknown task: ${task.text}`)
    return probing.pending
  }

  /** Probes a row again after an internal failure, or gives it the failure as its result. */
  #handleFault(pending: PendingRow<T>, error: unknown) {
    const faults = pending.faults + 1
    if (faults < FAULTS_MAX) this.#enqueueLater({ ...pending, faults }, FAULT_DELAY_MS)
    else this.#finish(pending, fromFailedProbe(this.#options.clock, pending.task, error))
  }

  /**
   * Queues rows that a connection has returned. They wait a moment, because connections to the same
   * hosts return theirs at about the same time, and together they fill fewer connections.
   */
  #requeue(returned: readonly PendingRow<T>[]) {
    const { clock } = this.#options
    const [first] = returned
    if (first === undefined) return
    const queue = this.#queueFor(first.task)
    const now = clock.monotonicNow()
    const batches = new Set(returned.map(pending => queue.add(pending, now, true)))
    if (queue.hasFull) this.#dispatch(queue)
    clock.after(RETURNED_MS, () => {
      for (const batch of batches) queue.markReady(batch)
      this.#dispatch(queue)
    })
  }

  #handleOutcome(pending: PendingRow<T>, outcome: Outcome) {
    const { result, asked } = outcome
    // A row that the drain left unprobed has no result.
    if (this.#draining.aborted && result.evidence.answer?.kind === 'no-response') return
    if (isDecided(outcome)) return this.#finish(pending, result)
    if (isFailure(result.verdict)) {
      return this.#handleFault(pending, result.evidence.failure)
    }
    const isBlocked = !asked && result.evidence.answer?.kind === 'blocked'
    const retry = this.#nextRetry(pending, outcome, isBlocked)
    if (retry === null) return this.#finish(pending, result)
    const { row, task, since, faults } = pending
    let isTaken = false
    const postpone = () => {
      isTaken = this.#sink.postponed(row.item, { retry, outcome, task })
    }
    if (!this.#tell('postponed', postpone)) return
    if (isTaken) return this.#leave(pending)
    const { delayMs, accepted, ...attempts } = retry
    const next = { row, task: { ...task, accepted }, since, faults, ...attempts }
    this.#enqueueLater(next, delayMs, isBlocked)
  }

  #nextRetry(
    { task, since, tries, egress, refusedBy }: PendingRow<T>,
    outcome: Outcome,
    isBlocked: boolean,
  ): Retry | null {
    const { clock, greylistDelayMs, windowMax } = this.#options
    const egressPool = this.#engine.egressPool.own
    const { name } = task.operator
    const domain = task.address.domain.ascii
    const isWindowFull = isBlocked && this.#blockedCount >= windowMax * BLOCKED_SHARE_MAX
    const history = { tries, egress, refusedBy, waitedMs: clock.monotonicNow() - since }
    return nextRetry(outcome, history, {
      greylistDelayMs,
      wait: this.#isPatient && !isWindowFull,
      available: () => egressPool.availableFor(name),
      uncertainForMs: () => egressPool.uncertainForMs(outcome.egress, name),
      dnsUncertainForMs: () => dnsWaitMs(this.#engine.resolverCheck),
      refusedForMs: () => egressPool.refusedForMs(outcome.egress, name, domain),
    })
  }

  /** Queues a row again; `isBlocked`: it counts as waiting for a block to expire until then. */
  #enqueueLater(pending: PendingRow<T>, delayMs: number, isBlocked = false) {
    if (isBlocked) this.#blockedCount++
    this.#onInactive()
    const enqueue = () => {
      if (isBlocked) this.#blockedCount--
      this.#active++
      if (!this.#draining.aborted) this.#enqueue(pending, true)
    }
    sleep(this.#options.clock, delayMs, this.#draining)
      .then(enqueue)
      .catch(error => this.#fail('Retrying', error))
  }

  /** A row no longer counts as active, so that another one may be routed. */
  #onInactive() {
    this.#active--
    this.#routeBacklog()
  }

  /** Decides a row and its duplicates that arrived since. */
  #finish(pending: PendingRow<T>, result: Result) {
    const duplicates = this.#take(pending)
    this.#decide(pending.row, result)
    for (const duplicate of duplicates) {
      this.#decide(duplicate, { ...result, email: duplicate.text })
    }
    this.#onLeft(pending.task)
  }

  /** The sink has taken a postponed row. Its duplicates wait with it. */
  #leave(pending: PendingRow<T>) {
    const duplicates = this.#take(pending)
    this.#close(pending.row)
    for (const row of duplicates) this.#routeAgain(row)
    this.#onLeft(pending.task)
  }

  /** Removes the entry of an address in flight and returns its duplicates. */
  #take({ task: { cacheKey: key } }: PendingRow<T>): readonly Row<T>[] {
    const duplicates = this.#duplicates.get(key) ?? NO_DUPLICATES
    this.#duplicates.delete(key)
    this.#onInactive()
    return duplicates
  }

  #routeAgain(row: Row<T>) {
    this.#backlog.add(row)
    if (this.#heldSince === null) this.#release()
  }

  /** Gives all rows that wait in queues their present result. */
  #finishPending() {
    for (const queue of this.#queues.values()) {
      for (const pending of queue.takeAll()) this.#present(pending)
    }
  }

  /** Gives a row what is known of it now as its result. */
  #present(pending: PendingRow<T>) {
    const task = { ...pending.task, startedAt: this.#options.clock.monotonicNow() }
    this.#finish(pending, this.#engine.presentResult(task))
  }

  #decide(row: Row<T>, result: Result) {
    if (!this.#open.has(row)) return
    if (this.#tell('decided', () => this.#sink.decided(row.item, result))) this.#close(row)
  }

  /** A row has left the scheduler. */
  #close(row: Row<T>) {
    this.#open.delete(row)
    this.refill()
    this.#checkEnd()
  }

  /** Calls a method of the sink. Returns false if it throws, which ends the run. */
  #tell(method: 'decided' | 'postponed' | 'refused' | 'drained', call: () => void): boolean {
    try {
      call()
      return true
    } catch (error) {
      this.#fail(`${method} of the sink`, error)
      return false
    }
  }
}

/** Whether all exchangers of a domain have names below it. */
function isSelfHosted({ address, route }: ProbeTask): boolean {
  const domain = address.domain.ascii
  return hostsOf(route).every(host => host === domain || host.endsWith(`.${domain}`))
}

/** Shared by all rows without a duplicate, and never changed. */
const NO_DUPLICATES: never[] = []
