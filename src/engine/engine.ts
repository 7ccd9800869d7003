import { abortable, orOnAbort } from '../platform/abort.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { type Log, writeLog } from '../platform/log.ts'
import { wasSuspended } from '../platform/suspension.ts'
import { type Address, isFault, parseAddress } from './address/address.ts'
import type { AddressFlags } from './address/classifier.ts'
import { BatchedCache } from './batched-cache.ts'
import { SharedDeadlines, SharedSignals, withDeadline } from './deadline.ts'
import type { MxOperator } from './dns/operators.ts'
import type { ResolverCheck } from './dns/resolver-check.ts'
import { addressesOf, cachedAddressesOf, type Route } from './dns/route.ts'
import { hasNoRoute, isUntrusted } from './dns-pause.ts'
import type { EgressPool } from './probe/egress-pool.ts'
import { catchAllKey, type RouteWithHost } from './probe/mx-groups.ts'
import {
  type ConcludeOptions,
  cachedRouteFor,
  conclude,
  type ExaminedAddress,
  examine,
  lookUpRoute,
  type PrepareDeps,
  type PreparedAddress,
  type ProbeTask,
  restoreTask,
  type TaskOptions,
} from './probe/prepare.ts'
import { ProbeGroup, type ProbeGroupDeps } from './probe/probe-group.ts'
import type { ProbeOptions, ProbeSink } from './probe/probe-options.ts'
import { FAULTS_MAX, type Outcome } from './probe/retry-policy.ts'
import { probeSingle, timedOut } from './probe/single-probe.ts'
import type { RateController, RateStatus } from './rate-control/controller.ts'
import type { ProbeStop } from './rate-control/rules.ts'
import { cacheKey, isFresh, isUndecided, type ResultCache } from './result-cache.ts'
import { sandboxResult, sandboxSteps } from './sandbox.ts'
import { findMailPolicies, type MailPolicies } from './signals/mail-policies.ts'
import type { OutsideSignals } from './signals/outside-signals.ts'
import { observerFor, type StepObserver } from './step-observer.ts'
import { ENGINE_LOG } from './telemetry.ts'
import {
  fromAcceptance,
  fromCache,
  fromFailure,
  fromProbe,
  fromUnprobed,
  staleIfError,
} from './verdict/build-result.ts'
import { type Evidence, isFailure, type Result } from './verdict/verdict.ts'
import { type ManyOptions, streamResults } from './verify-many.ts'
import type { ParsedOption, RouteOptions, VerifyOptions } from './verify-options.ts'

/** What is known about a domain; null if it is not. */
export type DomainFacts = Pick<
  Evidence,
  'catchAll' | 'disposableHost' | 'flags' | 'operator' | 'route' | 'suggestion'
> & {
  readonly policies: MailPolicies | null
}

type EngineDeps = PrepareDeps & {
  /** Null if the resolver is not checked. */
  readonly resolverCheck: ResolverCheck | null
  readonly egressPool: EgressPool
  readonly cache: ResultCache
  /** Identifies the network that answers come from; null for the public one. */
  readonly network: string | null
  readonly log: Log
  /** Simulate results: no DNS, no socket. */
  readonly sandbox: boolean
  /** Time limit of a single verification, in ms. */
  readonly deadlineMs: number
  /**
   * Wait before a greylisted item of a list is retried, in ms; null: as long as the server says.
   */
  readonly greylistDelayMs: number | null
  /** Maximum number of concurrent SMTP sessions. */
  readonly concurrency: number
  /** Null if no signals are looked for. */
  readonly signals: OutsideSignals | null
  /** Closes the dependencies that the engine owns. */
  readonly close: () => void
}

/**
 * Time limit for the DNS lookups of one address of a list, queueing included. It is generous
 * because no client waits for a single address of a list.
 */
const LIST_ROUTE_MS = 60_000

/**
 * A list waits out a pause up to this length; targets with a longer one are returned as deferred.
 */
const LIST_TIMEOUT_MS = 2_000

/** How to probe tasks of a list. */
type ProbeListOptions = Pick<ProbeOptions, 'signal'> &
  Partial<Pick<ProbeOptions, 'drain' | 'urgent' | 'timeoutMs' | 'dialogue'>> & {
    /** The name of the egress; if omitted, the primary one of this process for the operator. */
    readonly egress?: string
  }

/** Takes the outcomes of the tasks of a list. */
export type ProbeListSink = ProbeSink<ProbeTask, Outcome>

/** Lists have no deadline of their own, so the limit of the signals applies. */
const LIST_SIGNALS_MS = Number.POSITIVE_INFINITY

/**
 * Verifies addresses one at a time, as a stream, or in the two steps of a job (route and probe).
 */
export class Engine {
  readonly #deps: EngineDeps
  readonly #cache: BatchedCache
  readonly #probeDeps: ProbeGroupDeps
  /** Probes in flight, until their last connection has sent QUIT. */
  readonly #probes = new Set<Promise<void>>()
  readonly #inFlight = new Map<string, Promise<Result>>()
  readonly #closing = new AbortController()
  readonly #signals: SharedSignals
  readonly #listLookups: SharedDeadlines

  constructor(deps: EngineDeps) {
    this.#deps = deps
    this.#cache = new BatchedCache(deps)
    this.#signals = new SharedSignals(deps.clock, this.#closing.signal)
    this.#listLookups = new SharedDeadlines(deps.clock, this.#closing.signal, LIST_ROUTE_MS)
    this.#probeDeps = {
      egressPool: deps.egressPool,
      cache: this.#cache,
      clock: deps.clock,
      log: deps.log,
      addSignals: (result, options) => this.#addListSignals(result, options),
    }
  }

  /**
   * Verifies one address exactly as it is written. Resolves within the deadline, whatever DNS and
   * mail servers do; rejects only when `signal` aborts, with its reason.
   *
   * @example
   * const { verdict } = await engine.verify('ann@example.com')
   */
  async verify(text: string, options: VerifyOptions & ParsedOption = {}): Promise<Result> {
    options.signal?.throwIfAborted()
    const email = asText(text)
    if (this.#deps.sandbox) return this.#simulate(email, options)
    const run =
      this.#deps.signals === null
        ? this.#verify(email, options)
        : this.#verifyWithSignals(email, options)
    return options.signal === undefined ? run : abortable(run, options.signal)
  }

  /**
   * Returns the cached result of an address while it is fresh, without an SMTP session; null if
   * there is none. Never rejects.
   */
  async getCached(
    text: string,
    options: Pick<VerifyOptions, 'cacheScope' | 'onStep'> & ParsedOption = {},
  ): Promise<Result | null> {
    const { clock, deadlineMs } = this.#deps
    const email = asText(text)
    const { address = parseAddress(email) } = options
    if (isFault(address)) return null
    const known = await this.#cache.get(cacheKey(options.cacheScope ?? null, address))
    if (known === null || !isFresh(known, clock.now())) return null
    const observer = observerFor(options, this.#deps)
    const mode = { limitMs: deadlineMs, isUrgent: true, observer }
    const prepared = await this.#prepare(email, { ...options, address }, mode)
    // The lists or the DNS may have changed since the answer was cached, and take precedence.
    if ('result' in prepared) return prepared.result.cached ? prepared.result : null
    observer?.onCacheHit(known.at)
    return this.#addSignals(fromCache(clock, prepared.task, known), deadlineMs)
  }

  /** Verifies a stream of addresses; yields one result per address, in order of completion. */
  verifyMany(
    texts: AsyncIterable<string> | Iterable<string>,
    options: ManyOptions = {},
  ): AsyncIterable<Result> {
    if (typeof texts === 'string') {
      throw new EvError(
        'usage',
        'verifyMany takes a list of addresses; for one address, call verify().',
      )
    }
    return streamResults(this, texts, {
      concurrency: this.#deps.concurrency,
      greylistDelayMs: this.#deps.greylistDelayMs,
      clock: this.#deps.clock,
      closing: this.#closing.signal,
      ...options,
    })
  }

  /**
   * First step of a job: returns a result for each address that needs no SMTP session, and a task
   * with route and operator for the others, in the order of `texts`.
   */
  route(texts: readonly string[], options: VerifyOptions = {}): Promise<PreparedAddress[]> {
    const { clock, sandbox } = this.#deps
    // Nothing of them waits, so they need no promise each.
    if (sandbox) {
      const toSimulated = (text: string) => ({ result: sandboxResult(clock, asText(text)) })
      return Promise.resolve(texts.map(toSimulated))
    }
    return Promise.all(texts.map(text => this.routeOne(text, options)))
  }

  /**
   * Routes one address of a list: at once if its route is known and no cached answer has to be read,
   * else as a promise, which does not wait for the DNS of other addresses; cache reads are still
   * batched. Never rejects: an aborted `signal` ends as `dns_error`. An internal failure is repeated
   * before it becomes the result.
   */
  routeOne(text: string, options: RouteOptions = {}): PreparedAddress | Promise<PreparedAddress> {
    const { clock, sandbox } = this.#deps
    const email = asText(text)
    if (sandbox) return { result: sandboxResult(clock, email) }
    const prepared = this.#prepare(email, options, LIST_MODE)
    const complete = (one: PreparedAddress) =>
      hasFailed(one) || hasNoRoute(one)
        ? this.#routeAgain(email, options, one)
        : this.#completeRoute(one, options)
    return 'then' in prepared ? prepared.then(complete) : complete(prepared)
  }

  /** Repeats a route that failed internally, or because the DNS check fails. */
  async #routeAgain(
    email: string,
    options: RouteOptions,
    first: PreparedAddress,
  ): Promise<PreparedAddress> {
    let prepared = first
    for (let faults = 1; faults < FAULTS_MAX && hasFailed(prepared); faults++) {
      prepared = await this.#prepare(email, options, LIST_MODE)
    }
    while (
      (isUntrusted(prepared) || (await this.#metDnsOutage(prepared, options))) &&
      (await options.dnsPause?.wait()) === true
    ) {
      prepared = await this.#prepare(email, options, LIST_MODE)
    }
    return this.#completeRoute(prepared, options)
  }

  /** Whether a lookup of a list that waits failed because the DNS server answers no query. */
  async #metDnsOutage(prepared: PreparedAddress, { dnsPause, signal }: RouteOptions) {
    const check = this.#deps.resolverCheck
    if (check === null || dnsPause === undefined || !hasNoRoute(prepared)) return false
    return orOnAbort(check.isSilent(), signal, false)
  }

  /** Adds signals to a result, and the cached answer to a task. */
  #completeRoute(
    prepared: PreparedAddress,
    options: RouteOptions,
  ): PreparedAddress | Promise<PreparedAddress> {
    if ('result' in prepared) {
      if (this.#deps.signals === null) return prepared
      return this.#addSignals(prepared.result, LIST_SIGNALS_MS).then(result => ({ result }))
    }
    if (bypassesCache(options) || !this.#cache.isUsed) return prepared
    return this.#findCached(prepared, options)
  }

  /** Returns the cached answer of a task as its result if it is fresh. */
  async #findCached(
    prepared: { readonly task: ProbeTask },
    options: RouteOptions,
  ): Promise<PreparedAddress> {
    const { clock } = this.#deps
    const { task } = prepared
    const cached = await this.#cache.get(task.cacheKey)
    if (cached === null) return prepared
    if (!isFresh(cached, clock.now())) return { task: { ...task, cached } }
    const isOwn = cached.at >= (options.ownAnswersSince ?? Number.POSITIVE_INFINITY)
    // The list would have waited for the catch-all test, so it does now.
    if (isOwn && isUndecided(cached.probed)) return prepared
    const result = { ...fromCache(clock, task, cached), cached: !isOwn }
    return { result: await this.#addSignals(result, LIST_SIGNALS_MS) }
  }

  /**
   * Second step of a job: probes addresses at one operator, over one connection at a time, and passes
   * each to one method of the sink. An internal error becomes the result of the tasks without one.
   * Rejects if there is no such egress or if a method of the sink throws.
   */
  probe(
    operator: MxOperator,
    tasks: readonly ProbeTask[],
    sink: ProbeListSink,
    options: ProbeListOptions,
  ): Promise<void> {
    const { egress = this.egressPool.own.primaryFor(operator.name) } = options
    const signals = this.#signals.acquire(options.signal, options.drain ?? options.signal)
    const group = new ProbeGroup(this.#probeDeps, tasks, sink, {
      signal: signals.signal,
      drain: signals.drain,
      single: false,
      urgent: options.urgent ?? false,
      timeoutMs: options.timeoutMs ?? LIST_TIMEOUT_MS,
      dialogue: options.dialogue ?? false,
      listener: null,
    })
    return this.#track(group.run(egress), signals.done)
  }

  #track(probe: Promise<void>, onEnd?: () => void): Promise<void> {
    this.#probes.add(probe)
    const remove = () => {
      this.#probes.delete(probe)
      onEnd?.()
    }
    probe.then(remove, remove)
    return probe
  }

  /**
   * Rebuilds the task of an item that already has a route; null if the current lists decide it
   * without an SMTP session.
   */
  resume(
    text: string,
    route: RouteWithHost,
    { accepted = null, cacheScope = null }: Partial<TaskOptions> = {},
  ): ProbeTask | null {
    return restoreTask(this.#deps, text, route, { accepted, cacheScope })
  }

  /**
   * Returns the result of an address that is not probed any more: what is known of it now, such as
   * the block of its operator.
   */
  presentResult(task: ProbeTask): Result {
    const { clock } = this.#deps
    if (task.accepted !== null) return fromAcceptance(clock, task, task.accepted)
    if (task.cached !== null) return fromCache(clock, task, task.cached)
    const operator = task.operator.name
    const egress = this.egressPool.own.primaryFor(operator)
    const answer = this.egressPool.own
      .prober(egress)
      .currentStop(operator, task.address.domain.ascii)
    if (answer === null) return fromUnprobed(clock, task)
    const [{ catchAll }] = task.exchangers
    const unprobed = { host: null, ip: null, tls: false, connectMs: null, asked: false }
    return fromProbe(clock, task, { ...unprobed, answer, catchAll, egress, dialogue: null })
  }

  /**
   * Resolves the addresses of the first exchanger ahead of time, so that no connection waits for
   * it.
   */
  prefetchHost(route: RouteWithHost): void {
    const host = route.kind === 'mx' ? route.hosts[0]?.host : route.host
    const { resolver, getFamilies } = this.#deps
    const families = getFamilies()
    if (host === undefined || cachedAddressesOf(resolver, host, families) !== null) return
    // The dial looks the host up again and reports the failure.
    addressesOf(resolver, host, { families }).catch(() => {})
  }

  /**
   * Reloads the list files; later verifications use them. If a file is invalid, throws
   * EvError('bad_config') with its path and line, and keeps the current lists.
   */
  reloadLists(): void {
    this.#deps.lists.reload()
  }

  /** Returns the rate controller of an operator, for the given egress or for its primary egress. */
  rateController(
    operator: string,
    egress = this.egressPool.own.primaryFor(operator),
  ): RateController {
    return this.egressPool.prober(egress).rateController(operator)
  }

  /**
   * Returns the rate status of an operator at its primary egress; null if it was not probed
   * recently.
   */
  rateStatus(operator: string): RateStatus | null {
    const { own } = this.egressPool
    return own.prober(own.primaryFor(operator)).knownController(operator)?.status(operator) ?? null
  }

  /** Returns why an operator is not probed now; null if it is, or if nothing is known of it. */
  probeStop(operator: string): ProbeStop | null {
    const { own } = this.egressPool
    return own.prober(own.primaryFor(operator)).knownController(operator)?.stop ?? null
  }

  /** Returns the likely operator of a domain without a DNS lookup; the domain itself if unknown. */
  likelyOperator(domain: string): string {
    const { lists, likelyHosts } = this.#deps
    return lists.operators.of(likelyHosts.get(domain) ?? domain).name
  }

  /**
   * Returns what the DNS, the lists and earlier verifications tell about a domain, without a
   * connection to its mail servers. Never rejects: what is not known within the limit is null.
   */
  async describeDomain(
    domain: string,
    { limitMs, signal }: { readonly limitMs: number; readonly signal?: AbortSignal },
  ): Promise<DomainFacts> {
    const options = { forceRefresh: true, ...(signal === undefined ? {} : { signal }) }
    const mode = { limitMs, isUrgent: false }
    const limit = withDeadline(this.#deps.clock, limitMs, [this.#closing.signal, signal])
    try {
      const [prepared, policies] = await Promise.all([
        this.#prepare(`postmaster@${domain}`, options, mode),
        findMailPolicies(this.#deps.resolver, domain, limit.signal).catch(() => null),
      ])
      if ('result' in prepared) return { ...prepared.result.evidence, policies }
      const { task } = prepared
      const { flags, suggestion, route, operator } = task
      const known =
        task.exchangers[0].catchAll ?? this.#catchAll.get(catchAllKey(task, operator.name))
      return {
        flags,
        suggestion,
        route,
        operator,
        catchAll: known,
        policies,
        disposableHost: false,
      }
    } finally {
      limit.done()
    }
  }

  /** Returns what the text of an address and the lists alone tell about it. */
  classify(address: Address): AddressFlags {
    return this.#deps.lists.classifier.of(address)
  }

  /** Time limit of a single verification, in ms. */
  get deadlineMs(): number {
    return this.#deps.deadlineMs
  }

  /** Maximum number of concurrent SMTP sessions. */
  get concurrency(): number {
    return this.#deps.concurrency
  }

  /** Whether the catch-all status of the domain of a task is known. */
  isTested(task: ProbeTask): boolean {
    if (task.exchangers[0].catchAll !== null) return true
    return this.#catchAll.isResolved(catchAllKey(task, task.operator.name), false)
  }

  /** The results of catch-all tests, which all egresses share. */
  get #catchAll() {
    return this.egressPool.prober(this.egressPool.names[0] as string).catchAll
  }

  /** Whether results are simulated, without DNS and SMTP. */
  get isSandbox(): boolean {
    return this.#deps.sandbox
  }

  /** The check of the DNS server; null if the resolver is not checked. */
  get resolverCheck(): ResolverCheck | null {
    return this.#deps.resolverCheck
  }

  /** The egresses of this process and those of other members. */
  get egressPool(): EgressPool {
    return this.#deps.egressPool
  }

  /** The names of the configured egresses, in configuration order. */
  get egresses(): readonly string[] {
    return this.egressPool.names
  }

  /**
   * Aborts work in flight (verifications end as unknown, streams with EvError('interrupted')) and
   * closes the dependencies. Resolves when the last SMTP session has ended. May be called twice.
   */
  async close(): Promise<void> {
    const isFirst = !this.#closing.signal.aborted
    this.#closing.abort()
    this.#cache.close()
    await Promise.allSettled(this.#inFlight.values())
    await Promise.allSettled(this.#probes)
    await this.egressPool.close()
    if (isFirst) this.#deps.close()
  }

  async #verifyWithSignals(text: string, options: VerifyOptions & ParsedOption): Promise<Result> {
    const { clock } = this.#deps
    const startedAt = clock.monotonicNow()
    const result = await this.#verify(text, options)
    const limitMs = this.#limitFor(options) - (clock.monotonicNow() - startedAt)
    return this.#addSignals(result, limitMs, options.signal && [options.signal])
  }

  /** Adds signals to a result within the limit, if they are looked for and can change it. */
  async #addSignals(
    result: Result,
    limitMs: number,
    aborts: readonly AbortSignal[] = [],
  ): Promise<Result> {
    const { signals, clock } = this.#deps
    if (signals === null || !signals.isFor(result)) return result
    const startedAt = clock.monotonicNow()
    const added = await signals.addTo(result, {
      limitMs,
      aborts: [this.#closing.signal, ...aborts],
    })
    return { ...added, tookMs: added.tookMs + Math.round(clock.monotonicNow() - startedAt) }
  }

  /** Adds signals to a result of a list; null if it needs none, or while the probe ends. */
  #addListSignals(result: Result, { signal, drain }: ProbeOptions): Promise<Result> | null {
    if (drain.aborted || this.#deps.signals?.isFor(result) !== true) return null
    return this.#addSignals(result, LIST_SIGNALS_MS, [signal, drain])
  }

  #simulate(text: string, options: VerifyOptions & ParsedOption): Result {
    const result = sandboxResult(this.#deps.clock, text, options.address)
    const observer = observerFor(options, this.#deps)
    if (observer !== null) for (const step of sandboxSteps(result)) observer.notify(step)
    return result
  }

  #limitFor({ deadlineMs = Number.POSITIVE_INFINITY }: VerifyOptions): number {
    return Math.min(deadlineMs, this.#deps.deadlineMs)
  }

  async #verify(text: string, options: VerifyOptions & ParsedOption): Promise<Result> {
    const { clock } = this.#deps
    const limitMs = this.#limitFor(options)
    const startedAt = clock.monotonicNow()
    const observer = observerFor(options, this.#deps)
    const prepared = await this.#prepare(text, options, {
      limitMs,
      isUrgent: true,
      observer,
    })
    if ('result' in prepared) return prepared.result
    const { task } = prepared
    const { cacheKey: key } = task
    const known = bypassesCache(options) ? null : await this.#cache.get(key)
    if (known !== null) {
      observer?.onCacheHit(known.at)
      // A stale answer is returned at once and refreshed in the background (RFC 5861 §3).
      const needsRefresh = !isFresh(known, clock.now()) && !this.#inFlight.has(key)
      if (needsRefresh)
        void this.#probeShared(task, {
          limitMs: this.#deps.deadlineMs,
          dialogue: false,
          observer: null,
        })
      return fromCache(clock, task, known)
    }
    const dialogue = options.include?.includes('dialogue') ?? false
    const running = dialogue || observer !== null ? undefined : this.#inFlight.get(key)
    const result = await (running === undefined
      ? this.#probeShared(task, { limitMs, dialogue, observer })
      : this.#join(running, task, limitMs))
    // An answer shared with another caller counts as cached.
    const cached = running !== undefined && result.verdict.risk !== 'unknown'
    return { ...result, email: text, cached, tookMs: Math.round(clock.monotonicNow() - startedAt) }
  }

  /**
   * Probes the mail server; concurrent verifications of the same address in the same scope share the
   * probe.
   */
  #probeShared(
    task: ProbeTask,
    { limitMs, dialogue, observer }: SharedProbeOptions,
  ): Promise<Result> {
    const { cacheKey: key } = task
    const listener = observer?.listener ?? null
    const closing = this.#closing.signal
    const probe = probeSingle(this.#probeDeps, task, { limitMs, dialogue, listener, closing })
    void this.#track(probe.ended)
    const run = probe.result
    this.#inFlight.set(key, run)
    void run.finally(() => {
      if (this.#inFlight.get(key) === run) this.#inFlight.delete(key)
    })
    return run
  }

  /** Waits for the probe of another caller, which may have a later deadline. */
  async #join(running: Promise<Result>, task: ProbeTask, limitMs: number): Promise<Result> {
    const { clock } = this.#deps
    const leftMs = limitMs - (clock.monotonicNow() - task.startedAt)
    const limit = withDeadline(clock, leftMs, [])
    const result = await orOnAbort(running, limit.signal, null).finally(limit.done)
    return result ?? timedOut(this.#probeDeps, task)
  }

  /** Never throws or rejects: an internal error becomes a result. A promise if the DNS is asked. */
  #prepare(
    text: string,
    options: VerifyOptions & ParsedOption,
    mode: PrepareMode,
  ): PreparedAddress | Promise<PreparedAddress> {
    const startedAt = this.#deps.clock.monotonicNow()
    try {
      const { checkSmtp = true, cacheScope = null } = options
      const { observer = null } = mode
      const examined = examine(this.#deps, text, observer, options.address)
      if ('result' in examined) return examined
      const how = { checkSmtp, cacheScope, observer }
      const route = cachedRouteFor(this.#deps, examined.address)
      if (route !== null) return conclude(this.#deps, examined, route, how)
      return this.#prepareByLookUp(examined, options, mode, how)
    } catch (error) {
      return this.#toFailure(text, startedAt, error)
    }
  }

  async #prepareByLookUp(
    examined: ExaminedAddress,
    options: VerifyOptions,
    { limitMs, isUrgent, isOfList = false }: PrepareMode,
    how: ConcludeOptions,
  ): Promise<PreparedAddress> {
    const { checkSmtp, cacheScope, observer } = how
    const { text, startedAt } = examined
    try {
      const mode = { limitMs, isUrgent, isOfList, checkSmtp }
      const route = await this.#lookUp(examined.address, options, mode)
      const prepared = conclude(this.#deps, examined, route, how)
      if (!('result' in prepared) || !checkSmtp || bypassesCache(options)) return prepared
      return {
        result: await this.#staleIfDnsFailed(prepared.result, cacheScope, startedAt, observer),
      }
    } catch (error) {
      return this.#toFailure(text, startedAt, error)
    }
  }

  #toFailure(text: string, startedAt: number, error: unknown): PreparedAddress {
    const { clock, log } = this.#deps
    writeLog(log, ENGINE_LOG.verificationFailed, { error: errorMessage(error) })
    return { result: fromFailure(clock, { text, startedAt }, error) }
  }

  /**
   * Looks up a route within the time limit. A lookup that failed because this process was suspended
   * or has no free file descriptor is repeated, for lists without a limit of repetitions.
   */
  async #lookUp(
    address: Address,
    { signal }: VerifyOptions,
    { limitMs, isOfList, ...mode }: LookUpMode,
  ): Promise<Route> {
    const { clock } = this.#deps
    const ends = [this.#closing.signal, signal]
    const firstAt = clock.monotonicNow()
    for (;;) {
      const startedAt = clock.monotonicNow()
      const leftMs = mode.isUrgent ? limitMs - (startedAt - firstAt) : limitMs
      const limit = isOfList ? this.#listLookups.acquire(signal) : withDeadline(clock, leftMs, ends)
      try {
        const options = { ...mode, signal: limit.signal }
        const route = await lookUpRoute(this.#deps, address, options)
        const isOurs =
          route.kind === 'unknown' && (route.isOurs === true || wasSuspended(clock, startedAt))
        if (!isOurs || leftMs <= 0 || ends.some(end => end?.aborted)) return route
      } finally {
        limit.done()
      }
    }
  }

  /** Replaces a DNS failure by a cached answer, if there is one (stale-if-error). */
  async #staleIfDnsFailed(
    result: Result,
    cacheScope: string | null,
    startedAt: number,
    observer: StepObserver | null,
  ): Promise<Result> {
    const { address, route } = result.evidence
    if (route?.kind !== 'unknown' || isFault(address)) return result
    const known = await this.#cache.get(cacheKey(cacheScope, address))
    if (known === null) return result
    observer?.onCacheHit(known.at)
    return staleIfError(this.#deps.clock, result, startedAt, known)
  }
}

/** The time limit of a probe, in ms, and what it reports besides its outcome. */
type SharedProbeOptions = {
  readonly limitMs: number
  readonly dialogue: boolean
  readonly observer: StepObserver | null
}

type PrepareMode = {
  readonly limitMs: number
  /** True if a client waits for this one address. */
  readonly isUrgent: boolean
  readonly observer?: StepObserver | null
  /** Whether its lookups share time limits with those of other addresses of a list. */
  readonly isOfList?: boolean
}

type LookUpMode = Pick<PrepareMode, 'limitMs' | 'isUrgent'> & {
  readonly isOfList: boolean
  readonly checkSmtp: boolean
}

/** How an address of a list is prepared. */
const LIST_MODE: PrepareMode = { limitMs: LIST_ROUTE_MS, isUrgent: false, isOfList: true }

const hasFailed = (prepared: PreparedAddress) =>
  'result' in prepared && isFailure(prepared.result.verdict)

/** Whether the options ask for something that a cached answer cannot provide. */
const bypassesCache = ({ forceRefresh, include }: VerifyOptions) =>
  forceRefresh === true || (include !== undefined && include.length > 0)

/** Untyped callers pass any cell of a row: null, undefined and objects become an empty text. */
function asText(value: unknown): string {
  if (typeof value === 'string') return value
  return value === undefined || typeof value === 'object' ? '' : String(value)
}
