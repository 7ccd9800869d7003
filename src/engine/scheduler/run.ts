import { onAbort } from '../../platform/abort.ts'
import { type Clock, MINUTE, SECOND, sleep, yieldToEventLoop } from '../../platform/clock.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import type { Priority } from '../../platform/priority.ts'
import { withDeadline } from '../deadline.ts'
import type { MxOperator } from '../dns/operators.ts'
import type { ResolverCheck } from '../dns/resolver-check.ts'
import { DnsPause, dnsWaitMs, hasFailedLookup } from '../dns-pause.ts'
import type { EgressPool } from '../probe/egress-pool.ts'
import { hostsOf, mxGroupKey, type RouteWithHost } from '../probe/mx-groups.ts'
import type { PreparedAddress, ProbeTask, TaskOptions } from '../probe/prepare.ts'
import type { ProbeOptions, ProbeSink } from '../probe/probe-options.ts'
import {
  FAULTS_MAX,
  isDecided,
  LOOKUP_DELAY_MS,
  nextRetry,
  type Outcome,
  type Retry,
  TRIES_MAX,
} from '../probe/retry-policy.ts'
import { fromFailedProbe, fromFailure } from '../verdict/build-result.ts'
import { isFailure, type Result } from '../verdict/verdict.ts'
import type { RouteOptions } from '../verify-options.ts'
import { DomainBacklog } from './domain-backlog.ts'
import type { Feed, Refusal, Row, Sink } from './feed.ts'
import type { PendingRow } from './operator-queue.ts'
import { OperatorRows } from './operator-rows.ts'

/** What all runs of a scheduler have in common. */
export type SchedulerOptions = {
  readonly clock: Clock
  /** Maximum number of concurrent SMTP sessions. */
  readonly concurrency: number
  /** Wait before a greylisted row is retried, in ms; null: as long as the server says. */
  readonly greylistDelayMs: number | null
  /** Maximum number of rows in the scheduler and in the sinks. */
  readonly windowMax: number
  /** False: rows that should be retried later keep their current result. */
  readonly wait: boolean
  /** True: connections take precedence over those of other lists. */
  readonly urgent: boolean
  /** Returns whether no lookup and no probe is to be started until `refill` is called. */
  readonly isFull?: () => boolean
  /** Lets requests go before lists; null or left out if the process serves none. */
  readonly priority?: Pick<Priority, 'startProbe' | 'yieldToRequests'> | null
}

export type RunOptions = {
  /** Whether the sink takes rows back for which there is no room. Else they wait here. */
  readonly canRefuse: boolean
  /** How rows are routed. */
  readonly route: Pick<
    RouteOptions,
    'checkSmtp' | 'forceRefresh' | 'cacheScope' | 'ownAnswersSince'
  >
  /** Aborts all work at once. */
  readonly signal: AbortSignal
  /** Lets sessions in flight finish, and starts nothing new. */
  readonly drain?: AbortSignal
  /** Gives rows that are not being probed what is known of them now as their result. */
  readonly finish?: AbortSignal
}

/** The part of the engine that a scheduler uses. */
export type SchedulerEngine = {
  readonly resolverCheck: ResolverCheck | null
  readonly egressPool: EgressPool
  routeOne(text: string, options: RouteOptions): PreparedAddress | Promise<PreparedAddress>
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

/** What a run needs of its scheduler. */
type RunDeps = {
  readonly engine: SchedulerEngine
  readonly options: SchedulerOptions
  /** The runs that have rows to route. They share the limits on rows in memory and on lookups. */
  readonly routing: Set<Run>
  /** Adds a row to the queue of its operator; `gathers`: more may follow soon. */
  readonly enqueue: (pending: Pending, gathers: boolean) => void
  /** More recipients of the MX hosts of a task are expected until this resolves. */
  readonly gatherUntil: (task: ProbeTask, arrived: Promise<unknown>) => Promise<void>
  /** No more recipients of the MX hosts of a task are expected. */
  readonly markHostsReady: (task: ProbeTask) => void
  /** No more rows of a run are expected at an operator. */
  readonly markRunReady: (run: Run, operator: string) => void
  /** Returns how many more rows of an operator a run may have in memory that has `size` rows. */
  readonly getRoom: (operator: string, size: number) => number
  /** A run has more or fewer rows of an operator; it had `size`. */
  readonly countRows: (operator: string, size: number, change: number) => void
  /** Removes and returns the rows of a run that wait for a probe. */
  readonly takeRows: (run: Run) => Pending[]
}

export type Pending = PendingRow<Run>

/** A row whose lookup failed, with its result if it is not looked up again. */
type FailedLookup = { readonly row: Row<unknown>; readonly result: Result }

/**
 * Texts in memory. A list often has the addresses of a domain far apart, and only those in the
 * window can share a connection. A waiting text takes 110 bytes, or 240 if no other has its domain,
 * in total at most 24 MB.
 */
export const WINDOW_MAX = 100_000
/** Minimum of a run, however many runs share the window. */
const WINDOW_MIN = 2_000
/** The window is refilled when this share of it is free, so that texts arrive in groups. */
const REFILL_SHARE = 1 / 16
/** Addresses that are routed and not yet probed; about 1 KB each. Later ones wait as texts. */
const ACTIVE_MAX = 10_000
/** Share of `ACTIVE_MAX` from which on no operator gets more rows than it has room for. */
const ACTIVE_SCARCE_SHARE = 0.9
/** Concurrent route lookups: enough to keep the resolver busy, few enough that each is quick. */
const ROUTING_MAX = 1_000
/** Minimum of a run, however many runs share the maximum. */
const ROUTING_MIN = 20
/**
 * How long a row keeps its route. Later retries look it up again: a domain may move to other mail
 * servers during a list, and a list may be resumed weeks later.
 */
const ROUTE_MS = 10 * MINUTE
/** Addresses of one domain that are routed together, so that other domains have their turn. */
const GROUP_MAX = 200
/** Fewer in a process that serves requests, where many would block the event loop for long. */
const SERVICE_GROUP_MAX = 50
/** Addresses after which such a process ends its turn of the event loop: 3 ms. */
const ROUTED_PER_TURN = 25
/**
 * Share of the window for addresses that wait until a block expires (half an hour), or to be looked
 * up again. Without this limit they could fill the window and stall the rest of the list.
 */
const UNPROBED_SHARE_MAX = 0.5
/**
 * A source whose rows are not stored is idle after this time without one: those that wait are routed
 * then.
 */
const IDLE_MS = 25
/** The longest wait for a source that is never idle, as in a list that is being routed. */
const HOLD_MAX_MS = 5 * SECOND
/**
 * How long connections may take once the run is to finish. A server that delays each reply could
 * take an hour.
 */
const FINISH_MS = MINUTE
/** The wait before an address is probed again after an internal failure. */
export const FAULT_DELAY_MS = SECOND
/** Rows that are read in one turn of the event loop. */
const READ_MAX = 2_000

/**
 * The rows of one feed, on their way to its sink. The scheduler tells the whole story.
 *
 * A row is open from its arrival until the sink was told its result. An internal failure becomes the
 * result of its row. If even that fails, the run ends with an error. Rows that are open when the run
 * ends, for whatever reason, are refused.
 */
export class Run {
  readonly #deps: RunDeps
  readonly #engine: SchedulerEngine
  readonly #clock: Clock
  readonly #sink: Sink<unknown>
  readonly #options: RunOptions
  /**
   * Duplicates of each address in flight, so that an address is never probed twice at the same
   * time.
   */
  readonly #duplicates = new Map<string, Row<unknown>[]>()
  readonly #stopping = new AbortController()
  readonly #finishing = new AbortController()
  /** Aborts with the run and the caller's signal. */
  readonly ending: AbortSignal
  /** Aborts with `ending` or when the run drains: nothing new is started then. */
  readonly draining: AbortSignal
  /** Aborts with `draining` or when the run is to finish: rows wait no longer for the DNS then. */
  readonly #waiting: AbortSignal
  /** Aborts with `ending` or a moment after the run is to finish: connections are closed then. */
  readonly closing: AbortSignal
  /** How rows are routed, and how while they can wait for the DNS check. */
  readonly #routeOptions: RouteOptions
  readonly #patientRoute: RouteOptions
  readonly #unsubscribe: (() => void)[]
  /** Rows without a result. */
  readonly #open = new Set<Row<unknown>>()
  /** Rows that wait for their route. */
  readonly #backlog = new DomainBacklog<Row<unknown>>()
  /** Since when the backlog waits for the feed, monotonic ms; null if it does not. */
  #heldSince: number | null = null
  #cancelHold: (() => void) | null = null
  /** When the last row was read, monotonic ms. */
  #readAt = 0
  /** After this time without a row, those that were read are routed. */
  #idleMs = IDLE_MS
  /** Number of groups of rows that are being routed. */
  #routing = 0
  /** Whether it waits for a turn of the event loop to route more rows. */
  #isYielding = false
  /** Number of rows that are routed, wait for no retry and have no result yet. */
  #active = 0
  /** Number of rows that wait, unprobed, until a block expires or to be looked up again. */
  #unprobedCount = 0
  /** How often the lookup of a row has failed. */
  readonly #failures = new WeakMap<Row<unknown>, number>()
  readonly #failedLookups = new Map<readonly FailedLookup[], number>()
  /** Number of connections in flight that have rows of this run. */
  #probes = 0
  #inputEnded = false
  /** Whether the feed has no more rows for now. */
  #inputIdle = false
  /** The error of the feed, which ended its rows. */
  #inputFailure: { readonly error: unknown } | null = null
  readonly #operatorRows: OperatorRows
  /** The internal failure that ended the run. */
  #failure: EvError | null = null
  #onCapacity: () => void = () => {}
  #end: () => void = () => {}

  constructor(deps: RunDeps, sink: Sink<unknown>, options: RunOptions) {
    this.#deps = deps
    this.#engine = deps.engine
    this.#sink = sink
    this.#options = options
    const { clock } = deps.options
    const { signal, drain, finish } = options
    this.#clock = clock
    const ending = withDeadline(clock, null, [signal, this.#stopping.signal])
    const draining =
      drain === undefined ? ending : withDeadline(clock, null, [ending.signal, drain])
    const waiting = withDeadline(clock, null, [draining.signal, finish])
    const closing =
      finish === undefined
        ? ending
        : withDeadline(clock, null, [ending.signal, this.#finishing.signal])
    this.ending = ending.signal
    this.draining = draining.signal
    this.#waiting = waiting.signal
    this.closing = closing.signal
    const dnsPause = new DnsPause(deps.engine.resolverCheck, clock, waiting.signal)
    this.#routeOptions = { ...options.route, signal: draining.signal }
    this.#patientRoute = { ...this.#routeOptions, dnsPause }
    this.#unsubscribe = [ending.done, draining.done, waiting.done, closing.done]
    this.#operatorRows = new OperatorRows({
      getRoom: deps.getRoom,
      countRows: deps.countRows,
      ask: options.canRefuse ? (operator, room) => sink.drained(operator, room) : null,
      supply: rows => this.#routeAgain(rows),
      draining: draining.signal,
      fail: error => this.fail('drained of the sink', error),
    })
  }

  /**
   * Resolves when each row of the feed has a result, when the signal aborts, or when the run has
   * drained. Rejects with the error of the feed after the results of its rows, and with an EvError
   * `internal` if a method of the sink throws or rows cannot be given a result. May be called once.
   */
  async start(feed: Feed<unknown>): Promise<void> {
    const ended = new Promise<void>(resolve => {
      this.#end = resolve
    })
    this.#listen()
    this.#deps.routing.add(this)
    if (feed.isStored === true) this.#idleMs = HOLD_MAX_MS
    void this.#read(feed)
    this.#checkEnd()
    await ended
    this.#stopping.abort()
    this.#deps.routing.delete(this)
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    this.#operatorRows.clear()
    for (const { item } of this.#open) this.#tell('refused', () => this.#sink.refused(item, null))
    this.#open.clear()
    if (this.#failure !== null) throw this.#failure
    if (this.#inputFailure !== null) throw this.#inputFailure.error
  }

  #listen() {
    const { finish } = this.#options
    const onDraining = () => {
      this.#cancelHold?.()
      this.#deps.takeRows(this)
      this.#onCapacity()
      this.#checkEnd()
    }
    this.#unsubscribe.push(
      onAbort(this.draining, onDraining),
      onAbort(this.ending, () => this.#checkEnd()),
    )
    if (finish === undefined) return
    this.#unsubscribe.push(
      onAbort(finish, () => {
        this.#unsubscribe.push(this.#clock.after(FINISH_MS, () => this.#finishing.abort()))
        for (const pending of this.#deps.takeRows(this)) this.#present(pending)
      }),
    )
  }

  /** The sink holds fewer results. */
  refill() {
    if (this.#inFlight <= this.#windowMax * (1 - REFILL_SHARE)) this.#onCapacity()
    this.#routeBacklog()
  }

  /** A connection with rows of this run is opened (1), or has ended (-1). */
  countProbe(change: 1 | -1) {
    this.#probes += change
    if (this.draining.aborted) this.#checkEnd()
  }

  /** Number of rows in the window. */
  get #inFlight(): number {
    return this.#open.size + this.#sink.held
  }

  get #windowMax(): number {
    const { windowMax } = this.#deps.options
    return Math.min(windowMax, this.#share(windowMax, WINDOW_MIN))
  }

  /** Returns the part of a limit for each run that has rows to route. */
  #share(max: number, min: number): number {
    return Math.max(min, Math.floor(max / Math.max(1, this.#deps.routing.size)))
  }

  get #isFull(): boolean {
    return this.#deps.options.isFull?.() ?? false
  }

  #checkEnd() {
    const hasDrained = this.draining.aborted && this.#probes === 0
    const isDone = this.#inputEnded && this.#open.size === 0
    if (this.ending.aborted || hasDrained || isDone) this.#end()
  }

  /** Reads rows while the window has capacity. */
  async #read(feed: Feed<unknown>): Promise<void> {
    try {
      for (let count = 0; !this.draining.aborted; ) {
        const page = await feed.read(
          Math.max(1, Math.min(READ_MAX, this.#windowMax - this.#inFlight)),
        )
        if (page === null || this.draining.aborted) break
        this.#inputIdle = page.length === 0
        if (this.#inputIdle) {
          this.#release()
          this.#dispatchAll()
          continue
        }
        this.#accept(page)
        count += page.length
        if (this.#inFlight >= this.#windowMax) await this.#waitForCapacity()
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
  #accept(page: readonly Row<unknown>[]) {
    const isAlone = page.length === 1 && this.#inFlight === 0
    this.#deps.routing.add(this)
    for (const row of page) {
      this.#open.add(row)
      this.#operatorRows.arrived(row)
      this.#backlog.add(row)
    }
    if (isAlone) return this.#release()
    this.#readAt = this.#clock.monotonicNow()
    if (this.#heldSince !== null) return
    this.#heldSince = this.#readAt
    this.#hold(this.#idleMs)
  }

  #hold(delayMs: number) {
    this.#cancelHold = this.#clock.after(delayMs, () => {
      const now = this.#clock.monotonicNow()
      const idleInMs = this.#readAt + this.#idleMs - now
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

  /** Ends the run. `step` names what failed. */
  fail(step: string, cause: unknown) {
    this.#failure ??= new EvError('internal', `${step} failed: ${errorMessage(cause)}`, { cause })
    this.#stopping.abort()
  }

  async #waitForCapacity(): Promise<void> {
    this.#release()
    while (this.#inFlight >= this.#windowMax && !this.draining.aborted) {
      await new Promise<void>(resolve => {
        this.#onCapacity = resolve
      })
    }
    this.#onCapacity = () => {}
  }

  /** Starts as many route lookups as the limits allow. */
  #routeBacklog() {
    if (this.#isYielding || !this.#canRoute) return
    const { priority = null } = this.#deps.options
    if (priority === null) {
      while (this.#canRoute) this.#startGroup(GROUP_MAX)
      return
    }
    this.#isYielding = true
    this.#routeInTurns(priority).catch(error => this.fail('Routing', error))
  }

  async #routeInTurns(priority: Pick<Priority, 'yieldToRequests'>): Promise<void> {
    while (this.#canRoute) {
      await priority.yieldToRequests('route', Math.min(this.#open.size, ROUTED_PER_TURN))
      for (let left = ROUTED_PER_TURN; left > 0 && this.#canRoute; ) {
        left -= this.#startGroup(SERVICE_GROUP_MAX)
      }
    }
    this.#isYielding = false
  }

  get #canRoute(): boolean {
    return (
      this.#backlog.hasReleased &&
      this.#routing < this.#share(ROUTING_MAX, ROUTING_MIN) &&
      this.#active < this.#activeMax &&
      !this.#isFull &&
      !this.draining.aborted
    )
  }

  get #activeMax(): number {
    return this.#share(ACTIVE_MAX, GROUP_MAX)
  }

  /** Starts to route rows of one domain, and returns their number. */
  #startGroup(sizeMax: number): number {
    const rows = this.#backlog.take(sizeMax)
    this.#routeGroup(rows).catch(error => this.fail('Routing', error))
    return rows.length
  }

  /** Routes rows of one domain: the first one is looked up, and the others find its answer. */
  async #routeGroup(rows: readonly Row<unknown>[]): Promise<void> {
    const [first] = rows as [Row<unknown>]
    this.#routing++
    this.#active += rows.length
    const failed: FailedLookup[] = []
    // Also without a lookup the first row waits here, because a decided row starts the next group.
    const task = this.#onPrepared(first, await this.#prepare(first), failed)
    const waiting: Promise<unknown>[] = []
    for (const row of rows.slice(1)) {
      const prepared = this.#prepare(row)
      if ('then' in prepared) waiting.push(prepared.then(one => this.#onPrepared(row, one, failed)))
      else this.#onPrepared(row, prepared, failed)
    }
    const arrived = Promise.all(waiting)
    if (task !== null && waiting.length > 0) await this.#deps.gatherUntil(task, arrived)
    else await arrived
    this.#routing--
    if (failed.length > 0) this.#lookUpLater(failed)
    // Other domains rarely use the exchangers of this one, so no more recipients are expected.
    if (task !== null && isSelfHosted(task) && !this.#backlog.hasDomainOf(first)) {
      this.#deps.markHostsReady(task)
    }
    if (this.#heldSince === null) this.#backlog.release()
    this.#routeBacklog()
    this.#dispatchAll()
  }

  /** Finds the route of a row. An internal failure becomes its result. */
  #prepare(row: Row<unknown>): PreparedAddress | Promise<PreparedAddress> {
    const task = this.#resume(row)
    if (task !== null && (row.history?.waitedMs ?? 0) < ROUTE_MS) return { task }
    const options = this.#isPatient ? this.#patientRoute : this.#routeOptions
    if (task === null) return this.#route(row, options)
    const prepared = this.#route(row, { ...options, forceRefresh: true })
    // Where the DNS fails now, the mail servers are where they were.
    const orKnown = (one: PreparedAddress) => (isUnknown(one) ? { task } : one)
    return 'then' in prepared ? prepared.then(orKnown) : orKnown(prepared)
  }

  #route(
    { text }: Row<unknown>,
    options: RouteOptions,
  ): PreparedAddress | Promise<PreparedAddress> {
    const startedAt = this.#clock.monotonicNow()
    const fail = (error: unknown) => ({
      result: fromFailure(this.#clock, { text, startedAt }, error),
    })
    try {
      const prepared = this.#engine.routeOne(text, options)
      return 'then' in prepared ? prepared.catch(fail) : prepared
    } catch (error) {
      return fail(error)
    }
  }

  /**
   * Queues or decides a row, or adds it to those whose lookup failed. Returns the task of a row that
   * needs a probe; null for any other.
   */
  #onPrepared(
    row: Row<unknown>,
    prepared: PreparedAddress,
    failed: FailedLookup[],
  ): ProbeTask | null {
    // An abort ends the lookup without an answer.
    if (this.draining.aborted) return null
    const askedBy = this.#operatorRows.routed(row)
    const task = 'task' in prepared ? prepared.task : null
    if ('task' in prepared) this.#routed(row, prepared.task)
    else {
      this.#active--
      const { result } = prepared
      if (this.#isLookedUpAgain(row, prepared)) failed.push({ row, result })
      else this.#decide(row, result)
    }
    if (askedBy !== null) this.#operatorRows.askForMore(askedBy)
    return task
  }

  /** Whether a row is to be looked up again because only its lookup failed. */
  #isLookedUpAgain(row: Row<unknown>, prepared: PreparedAddress): boolean {
    if (!hasFailedLookup(prepared) || !this.#isPatient || this.#hasManyUnprobed) return false
    const failed = (this.#failures.get(row) ?? 0) + 1
    this.#failures.set(row, failed)
    return failed < TRIES_MAX
  }

  /** Looks rows of one domain up again later, together. */
  #lookUpLater(failed: readonly FailedLookup[]) {
    this.#unprobedCount += failed.length
    this.#failedLookups.set(failed, this.#clock.monotonicNow() + LOOKUP_DELAY_MS)
    const lookUp = () => {
      this.#unprobedCount -= failed.length
      this.#failedLookups.delete(failed)
      if (this.draining.aborted) return
      if (this.#isFinishing) {
        for (const { row, result } of failed) this.#decide(row, result)
        return
      }
      this.#routeAgain(failed.map(({ row }) => row))
    }
    sleep(this.#clock, LOOKUP_DELAY_MS, this.#waiting)
      .then(lookUp)
      .catch(error => this.fail('Looking up again', error))
  }

  /** Rows to be looked up again, those of a domain together, with the monotonic time when. */
  get failedLookups(): ReadonlyMap<readonly FailedLookup[], number> {
    return this.#failedLookups
  }

  get #hasManyUnprobed(): boolean {
    return this.#unprobedCount >= this.#deps.options.windowMax * UNPROBED_SHARE_MAX
  }

  /** Restores the task of a row with a route; null if that is not possible. */
  #resume({ text, history }: Row<unknown>): ProbeTask | null {
    if (history === null || history.route === null) return null
    try {
      return this.#engine.resume(text, history.route, this.#options.route)
    } catch {
      return null // Routed by another version of ev.
    }
  }

  /** Whether rows wait for retries. */
  get #isPatient(): boolean {
    return this.#deps.options.wait && !this.#isFinishing
  }

  get #isFinishing(): boolean {
    return this.#options.finish?.aborted ?? false
  }

  #routed(row: Row<unknown>, task: ProbeTask) {
    const key = task.cacheKey
    const operator = task.operator.name
    const duplicates = this.#duplicates.get(key)
    if (duplicates !== undefined) {
      this.#active--
      if (duplicates === NO_DUPLICATES) this.#duplicates.set(key, [row])
      else duplicates.push(row)
      return
    }
    const since = this.#clock.monotonicNow()
    const fresh: Pending = {
      run: this,
      row,
      task,
      since,
      tries: 0,
      egress: null,
      refusedBy: [],
      faults: 0,
    }
    let pending: Pending
    try {
      if (this.#isElsewhere(row, operator)) {
        this.#active--
        return this.#giveBack(row, { task, isElsewhere: true })
      }
      if (this.#hasNoRoom(operator)) {
        this.#active--
        return this.#refuse(row, task)
      }
      pending = this.#withHistory(fresh)
    } catch (error) {
      this.#duplicates.set(key, NO_DUPLICATES)
      this.#operatorRows.count(operator, 1)
      return this.handleFault(fresh, error)
    }
    this.#operatorRows.count(operator, 1)
    this.#duplicates.set(key, NO_DUPLICATES)
    this.#enqueue(pending)
  }

  /** Adds the history of a row. An egress that may not probe its operator now is forgotten. */
  #withHistory(fresh: Pending): Pending {
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

  /** Whether another process of the cluster is to probe a row. */
  #isElsewhere({ history }: Row<unknown>, operator: string): boolean {
    if (!this.#options.canRefuse || this.#isFinishing || (history?.egress ?? null) !== null) {
      return false
    }
    return !this.#engine.egressPool.probesHere(operator)
  }

  #hasNoRoom(operator: string): boolean {
    return !this.#isFinishing && this.isSelective && this.#operatorRows.isFull(operator)
  }

  /** Whether it keeps no more rows of an operator than that has room for. */
  get isSelective(): boolean {
    return this.#options.canRefuse || this.#active >= this.#activeMax * ACTIVE_SCARCE_SHARE
  }

  /** Whether rows of an operator wait until it has room. */
  isRefusing(operator: string): boolean {
    return this.#operatorRows.isRefusing(operator)
  }

  #giveBack(row: Row<unknown>, refusal: Refusal) {
    if (this.#tell('refused', () => this.#sink.refused(row.item, refusal))) this.#close(row)
  }

  /** Gives a row back, or keeps it as a text, until its operator has room. */
  #refuse(row: Row<unknown>, task: ProbeTask) {
    const isGivenBack = this.#operatorRows.refuse(task.operator.name, row)
    if (isGivenBack) this.#giveBack(row, { task, isElsewhere: false })
  }

  /** Takes a row out of the queue of its operator, which is paused and needs few of them. */
  refuseQueued(pending: Pending) {
    const { task, row } = pending
    const duplicates = this.#take(pending)
    this.#operatorRows.count(task.operator.name, -1)
    this.#refuse(row, task)
    this.#routeAgain(duplicates)
  }

  #enqueue(pending: Pending, isRetry = false) {
    if (this.#isFinishing) return this.#present(pending)
    try {
      // Retries that were delayed together return together, so they gather even at the end of the
      // input.
      const isComplete = this.#isAllRouted && !this.isRefusing(pending.task.operator.name)
      this.#deps.enqueue(pending, isRetry || !isComplete)
    } catch (error) {
      this.handleFault(pending, error)
    }
  }

  get #isAllRouted(): boolean {
    const isRead = this.#inputEnded || this.#inputIdle
    return isRead && this.#routing === 0 && this.#backlog.isEmpty
  }

  /** Lets partial batches be taken once the input has ended and all routes are known. */
  #dispatchAll() {
    if (!this.#isAllRouted) return
    this.#deps.routing.delete(this)
    for (const operator of this.#operatorRows.operators) {
      if (!this.isRefusing(operator)) this.#deps.markRunReady(this, operator)
    }
  }

  /** Probes a row again after an internal failure, or gives it the failure as its result. */
  handleFault(pending: Pending, error: unknown) {
    if (!this.#open.has(pending.row)) return
    const faults = pending.faults + 1
    if (faults < FAULTS_MAX) this.enqueueLater({ ...pending, faults }, FAULT_DELAY_MS)
    else this.#finish(pending, fromFailedProbe(this.#clock, pending.task, error))
  }

  /** Decides or postpones a row after a probe, if the run has not ended. */
  handleOutcome(pending: Pending, outcome: Outcome) {
    if (!this.#open.has(pending.row)) return
    const { result, asked } = outcome
    // A row that the drain left unprobed has no result.
    if (this.draining.aborted && result.evidence.answer?.kind === 'no-response') return
    if (isDecided(outcome)) return this.#finish(pending, result)
    if (isFailure(result.verdict)) {
      return this.handleFault(pending, result.evidence.failure)
    }
    const isBlocked = !asked && result.evidence.answer?.kind === 'blocked'
    const retry = this.#nextRetry(pending, outcome, isBlocked)
    if (retry === null) return this.#finish(pending, result)
    const { task, row } = pending
    let isTaken = false
    const postpone = () => {
      isTaken = this.#sink.postponed(row.item, { retry, outcome, task })
    }
    if (!this.#tell('postponed', postpone)) return
    const { delayMs, accepted, ...attempts } = retry
    const next = { ...pending, ...attempts, task: { ...task, accepted } }
    if (isTaken) this.#leave(pending)
    else this.enqueueLater(next, delayMs, isBlocked)
  }

  #nextRetry(
    { task, since, tries, egress, refusedBy }: Pending,
    outcome: Outcome,
    isBlocked: boolean,
  ): Retry | null {
    // A row that its feed supplies again can be supplied to another process.
    const { egressPool: all } = this.#engine
    const egressPool = this.#options.canRefuse ? all : all.own
    const { name } = task.operator
    const domain = task.address.domain.ascii
    const isWindowFull = isBlocked && this.#hasManyUnprobed
    const history = { tries, egress, refusedBy, waitedMs: this.#clock.monotonicNow() - since }
    return nextRetry(outcome, history, {
      greylistDelayMs: this.#deps.options.greylistDelayMs,
      wait: this.#isPatient && !isWindowFull,
      available: () => egressPool.availableFor(name),
      uncertainForMs: () => egressPool.uncertainForMs(outcome.egress, name),
      dnsUncertainForMs: () => dnsWaitMs(this.#engine.resolverCheck),
      refusedForMs: () => egressPool.refusedForMs(outcome.egress, name, domain),
      unservedForMs: () => egressPool.unservedForMs(outcome.egress, name, domain),
      servedAgoMs: () => egressPool.servedAgoMs(outcome.egress, name),
    })
  }

  /** Queues a row again; `isBlocked`: it counts as waiting for a block to expire until then. */
  enqueueLater(pending: Pending, delayMs: number, isBlocked = false) {
    if (!this.#open.has(pending.row)) return
    if (isBlocked) this.#unprobedCount++
    this.#onInactive()
    const enqueue = async () => {
      if (isBlocked) this.#unprobedCount--
      this.#active++
      if (this.draining.aborted) return
      if (this.#clock.monotonicNow() - pending.since < ROUTE_MS) this.#enqueue(pending, true)
      else await this.#enqueueOld(pending)
    }
    sleep(this.#clock, delayMs, this.draining)
      .then(enqueue)
      .catch(error => this.fail('Retrying', error))
  }

  /** A row no longer counts as active, so that another one may be routed. */
  #onInactive() {
    this.#active--
    this.#routeBacklog()
  }

  /** Decides a row and its duplicates that arrived since. */
  #finish(pending: Pending, result: Result) {
    const duplicates = this.#take(pending)
    this.#decide(pending.row, result)
    for (const duplicate of duplicates) {
      this.#decide(duplicate, { ...result, email: duplicate.text })
    }
    this.#onLeft(pending)
  }

  /** The sink has taken a postponed row. Its duplicates wait with it. */
  #leave(pending: Pending) {
    const duplicates = this.#take(pending)
    this.#close(pending.row)
    this.#routeAgain(duplicates)
    this.#onLeft(pending)
  }

  #onLeft({ task: { operator } }: Pending) {
    this.#operatorRows.count(operator.name, -1)
    this.#operatorRows.askForMore(operator.name)
  }

  /** Removes the entry of an address in flight and returns its duplicates. */
  #take({ task: { cacheKey: key } }: Pending): readonly Row<unknown>[] {
    const duplicates = this.#duplicates.get(key) ?? NO_DUPLICATES
    this.#duplicates.delete(key)
    this.#onInactive()
    return duplicates
  }

  /** Queues a row again that has waited: its domain may have moved to other mail servers. */
  async #enqueueOld(pending: Pending) {
    const { row, task, since, tries, egress, refusedBy } = pending
    const { accepted, route } = task
    const waitedMs = this.#clock.monotonicNow() - since
    const history = { tries, egress, refusedBy, accepted, route, waitedMs }
    const prepared = await this.#prepare({ ...row, history })
    if (this.draining.aborted || !this.#open.has(row)) return
    if ('result' in prepared) return this.#finish(pending, prepared.result)
    const moved = prepared.task
    if (mxGroupKey(moved.route) === mxGroupKey(route)) return this.#enqueue(pending, true)
    this.#operatorRows.count(task.operator.name, -1)
    this.#operatorRows.count(moved.operator.name, 1)
    const fresh = { tries: 0, egress: null, refusedBy: [] }
    this.#enqueue({ ...pending, ...fresh, task: { ...moved, accepted } }, true)
  }

  #routeAgain(rows: readonly Row<unknown>[]) {
    if (rows.length === 0) return
    this.#deps.routing.add(this)
    for (const row of rows) this.#backlog.add(row)
    if (this.#heldSince === null) this.#release()
  }

  /** Gives a row what is known of it now as its result. */
  #present(pending: Pending) {
    const task = { ...pending.task, startedAt: this.#clock.monotonicNow() }
    this.#finish(pending, this.#engine.presentResult(task))
  }

  #decide(row: Row<unknown>, result: Result) {
    if (!this.#open.has(row)) return
    if (this.#tell('decided', () => this.#sink.decided(row.item, result))) this.#close(row)
  }

  /** A row has left the scheduler. */
  #close(row: Row<unknown>) {
    this.#open.delete(row)
    this.refill()
    this.#checkEnd()
  }

  /** Calls a method of the sink. Returns false if it throws, which ends the run. */
  #tell(method: 'decided' | 'postponed' | 'refused', call: () => void): boolean {
    try {
      call()
      return true
    } catch (error) {
      this.fail(`${method} of the sink`, error)
      return false
    }
  }
}

const isUnknown = (prepared: PreparedAddress) =>
  'result' in prepared && prepared.result.verdict.risk === 'unknown'

/** Whether all exchangers of a domain have names below it. */
function isSelfHosted({ address, route }: ProbeTask): boolean {
  const domain = address.domain.ascii
  return hostsOf(route).every(host => host === domain || host.endsWith(`.${domain}`))
}

/** Shared by all rows without a duplicate, and never changed. */
const NO_DUPLICATES: never[] = []
