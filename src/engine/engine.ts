import { EvError, errorMessage } from '../platform/error.ts'
import type { Log } from '../platform/log.ts'
import { addressKey, isFault, parseAddress } from './address/address.ts'
import { BatchedCache } from './batched-cache.ts'
import { abortable, withDeadline } from './deadline.ts'
import type { MxOperator } from './dns/operator-table.ts'
import type { ResolverCheck } from './dns/resolver-check.ts'
import { addressesOf } from './dns/route.ts'
import { type DnsPause, isUntrusted } from './dns-pause.ts'
import type { EgressPool } from './probe/egress-pool.ts'
import { type Acceptance, catchAllKey, type RouteWithHost } from './probe/mx-groups.ts'
import {
  type PrepareDeps,
  type PreparedAddress,
  type ProbeTask,
  prepare,
  restoreTask,
} from './probing/prepare.ts'
import { type ProbeListOptions, ProbeRunner } from './probing/probe-runner.ts'
import type { RateController, RateStatus } from './rate-control/controller.ts'
import { isFresh, type ResultCache } from './result-cache.ts'
import { sandboxResult } from './sandbox.ts'
import { sandboxSteps } from './sandbox-steps.ts'
import type { Step } from './step.ts'
import { observerFor, type StepObserver } from './step-observer.ts'
import { type ManyOptions, streamResults } from './stream.ts'
import { fromCache, fromFailure, staleIfError } from './verdict/build-result.ts'
import type { Result } from './verdict/verdict.ts'

export type { ProbeListOptions } from './probing/probe-runner.ts'

export type VerifyOptions = {
  readonly signal?: AbortSignal
  /** `dialogue`: keep the lines said to and by the mail server. */
  readonly include?: readonly 'dialogue'[]
  /** False: everything but the mail server. */
  readonly checkSmtp?: boolean
  /** True: ask even if the answer is remembered. */
  readonly forceRefresh?: boolean
  /** Told of each step of a single verification as it happens, and of none after its result. */
  readonly onStep?: (step: Step) => void
}

/** For an address of a list. */
export type RouteOptions = VerifyOptions & {
  /** The address waits by it while the DNS check fails; left out: it ends as `dns_error`. */
  readonly dnsPause?: DnsPause
}

export type EngineDeps = PrepareDeps & {
  /** Null: the resolver is not checked. */
  readonly resolverCheck: ResolverCheck | null
  readonly egressPool: EgressPool
  readonly cache: ResultCache
  readonly log: Log
  /** Results are simulated: no DNS, no socket. */
  readonly sandbox: boolean
  /** For one verification that somebody waits for, in ms. */
  readonly deadlineMs: number
  /** How long a greylisted item of a list waits, in ms; null: what the server says. */
  readonly greylistDelayMs: number | null
  /** Conversations at the same time, in all. */
  readonly concurrency: number
  /** Closes what the engine was given to use. */
  readonly close: () => void
}

/** For the DNS of one address of a list, its turn among the others included: nobody waits for it alone. */
const LIST_ROUTE_MS = 60_000

/** Addresses in, results out: one at a time, as a stream, or in the two steps that a job takes. */
export class Engine {
  readonly #deps: EngineDeps
  readonly #cache: BatchedCache
  readonly #runner: ProbeRunner
  readonly #inFlight = new Map<string, Promise<Result>>()
  readonly #closing = new AbortController()

  constructor(deps: EngineDeps) {
    this.#deps = deps
    this.#cache = new BatchedCache(deps)
    this.#runner = new ProbeRunner({
      ...deps,
      cache: this.#cache,
      closing: this.#closing.signal,
    })
  }

  /**
   * Verifies one address, strictly as it is written. Resolves within the deadline, whatever DNS and mail
   * servers do; rejects only when `signal` aborts, with its reason.
   */
  async verify(text: string, options: VerifyOptions = {}): Promise<Result> {
    options.signal?.throwIfAborted()
    const given = asText(text)
    if (this.#deps.sandbox) return this.#simulate(given, options)
    const run = this.#verify(given, options)
    return options.signal === undefined ? run : abortable(run, options.signal)
  }

  /**
   * The remembered answer while it is fresh, which costs no question to a mail server; null: there is none. Never
   * rejects.
   */
  async getCached(
    text: string,
    options: Pick<VerifyOptions, 'onStep'> = {},
  ): Promise<Result | null> {
    const { clock, deadlineMs } = this.#deps
    const given = asText(text)
    const address = parseAddress(given)
    if (isFault(address)) return null
    const known = await this.#cache.get(addressKey(address))
    if (known === null || !isFresh(known, clock.now())) return null
    const observer = observerFor(options, this.#deps)
    const how = { limitMs: deadlineMs, isUrgent: true, observer }
    const prepared = await this.#prepare(given, options, how)
    // The lists or the DNS may decide by now what was asked of the mail server then.
    if ('result' in prepared) return prepared.result.cached ? prepared.result : null
    observer?.onCacheHit(known.at)
    return fromCache(clock, prepared.task, known)
  }

  /** Verifies a stream of addresses; results come as they ripen, each once. */
  verifyMany(
    texts: AsyncIterable<string> | Iterable<string>,
    options: ManyOptions = {},
  ): AsyncIterable<Result> {
    if (typeof texts === 'string') {
      throw new EvError('usage', 'verifyMany takes a list of addresses; for one there is verify().')
    }
    return streamResults(this, texts, {
      concurrency: this.#deps.concurrency,
      greylistDelayMs: this.#deps.greylistDelayMs,
      clock: this.#deps.clock,
      closing: this.#closing.signal,
      ...options,
    })
  }

  /** First step of a list: decides what needs no mail server and finds the operator of the rest, in order. */
  route(texts: readonly string[], options: VerifyOptions = {}): Promise<PreparedAddress[]> {
    return Promise.all(texts.map(text => this.routeOne(text, options)))
  }

  /**
   * The same for one address of a list, so that it does not wait for the DNS of the others; the memory is
   * still asked for many at a time. Never rejects: an aborted `signal` gives `dns_error`.
   */
  async routeOne(text: string, options: RouteOptions = {}): Promise<PreparedAddress> {
    const { clock, sandbox } = this.#deps
    const given = asText(text)
    if (sandbox) return { result: sandboxResult(clock, given) }
    const how = { limitMs: LIST_ROUTE_MS, isUrgent: false }
    let prepared = await this.#prepare(given, options, how)
    while (isUntrusted(prepared) && (await options.dnsPause?.wait()) === true) {
      prepared = await this.#prepare(given, options, how)
    }
    if ('result' in prepared || refreshes(options)) return prepared
    const { task } = prepared
    const cached = await this.#cache.get(addressKey(task.address))
    if (cached === null) return prepared
    if (!isFresh(cached, clock.now())) return { task: { ...task, cached } }
    return { result: fromCache(clock, task, cached) }
  }

  /** Second step of a list: asks one operator about addresses, with one connection at a time. */
  probe(
    operator: MxOperator,
    tasks: readonly ProbeTask[],
    options: ProbeListOptions,
  ): Promise<void> {
    return this.#runner.probeMany(operator, tasks, options)
  }

  /** Takes up an item whose route was found before; null where the lists by now decide it without a mail server. */
  resume(text: string, route: RouteWithHost, accepted: Acceptance | null = null): ProbeTask | null {
    return restoreTask(this.#deps, text, route, accepted)
  }

  /** Looks up where the first exchanger is, so that no connection has to wait for that. */
  lookAhead(route: RouteWithHost): void {
    const host = route.kind === 'mx' ? route.hosts[0]?.host : route.host
    const { resolver, hasIpv6 } = this.#deps
    if (host !== undefined) void addressesOf(resolver, host, undefined, hasIpv6)
  }

  /**
   * Reads the list files again; what is asked from now on is judged by them. Throws EvError('bad_config') with the
   * file and the line where one is bad, and goes on with the lists as they were.
   */
  reloadLists(): void {
    this.#deps.lists.reload()
  }

  /** How an operator is asked at present, by one egress of ours or by the one of them that should ask it. */
  rateController(
    operator: string,
    egress = this.egressPool.own.primaryFor(operator),
  ): RateController {
    return this.egressPool.prober(egress).rateController(operator)
  }

  /** How an operator is asked at present by the egress that should ask it; null: it was not asked lately. */
  rateStatus(operator: string): RateStatus | null {
    const { own } = this.egressPool
    return own.prober(own.primaryFor(operator)).knownController(operator)?.status(operator) ?? null
  }

  /** Who runs the mail of a domain, as far as it is known before the DNS is asked; else the domain itself. */
  likelyOperator(domain: string): string {
    const { lists, likelyHosts } = this.#deps
    return lists.operators.of(likelyHosts.get(domain) ?? domain).name
  }

  /** Conversations at the same time, in all. */
  get concurrency(): number {
    return this.#deps.concurrency
  }

  /** Whether it is known if the domain of an inquiry takes mail for everybody. */
  isTested(task: ProbeTask): boolean {
    const { catchAll } = this.egressPool.prober(this.egressPool.names[0] as string)
    return task.catchAll !== null || catchAll.isNotified(catchAllKey(task), false)
  }

  /** Whether the DNS server tells the truth; null where that is not checked. */
  get resolverCheck(): ResolverCheck | null {
    return this.#deps.resolverCheck
  }

  /** Our source identities, and who else asks. */
  get egressPool(): EgressPool {
    return this.#deps.egressPool
  }

  /** The names of ours, in the order of the settings. */
  get egresses(): readonly string[] {
    return this.egressPool.names
  }

  /**
   * Gives up what is under way (verifications end as unknown, streams with EvError('interrupted')) and
   * closes what was opened. Resolves when the last conversation is over. May be called twice.
   */
  async close(): Promise<void> {
    const isFirst = !this.#closing.signal.aborted
    this.#closing.abort()
    await Promise.allSettled(this.#inFlight.values())
    await this.#runner.idle()
    if (isFirst) this.#deps.close()
  }

  #simulate(text: string, options: VerifyOptions): Result {
    const result = sandboxResult(this.#deps.clock, text)
    const observer = observerFor(options, this.#deps)
    if (observer !== null) for (const step of sandboxSteps(result)) observer.notify(step)
    return result
  }

  async #verify(text: string, options: VerifyOptions): Promise<Result> {
    const { clock, deadlineMs } = this.#deps
    const startedAt = clock.monotonicNow()
    const observer = observerFor(options, this.#deps)
    const prepared = await this.#prepare(text, options, {
      ...{ limitMs: deadlineMs, isUrgent: true, observer },
    })
    if ('result' in prepared) return prepared.result
    const { task } = prepared
    const key = addressKey(task.address)
    const known = refreshes(options) ? null : await this.#cache.get(key)
    if (known !== null) {
      observer?.onCacheHit(known.at)
      // What is no longer fresh still serves, and is asked again behind it.
      const isAsked = isFresh(known, clock.now()) || this.#inFlight.has(key)
      if (!isAsked) void this.#ask(key, task)
      return fromCache(clock, task, known)
    }
    const dialogue = options.include?.includes('dialogue') ?? false
    const running = dialogue || observer !== null ? undefined : this.#inFlight.get(key)
    const result = await (running ?? this.#ask(key, task, { dialogue, observer }))
    // The answer to a question that somebody else asked is one that was known.
    const cached = running !== undefined && result.verdict.risk !== 'unknown'
    return { ...result, email: text, cached, tookMs: Math.round(clock.monotonicNow() - startedAt) }
  }

  /** Asks the mail server; who asks about the same address meanwhile shares the answer. */
  #ask(
    key: string,
    task: ProbeTask,
    { dialogue, observer }: StepSource = { dialogue: false, observer: null },
  ): Promise<Result> {
    const run = this.#runner.probeOne(task, { dialogue, listener: observer?.listener ?? null })
    this.#inFlight.set(key, run)
    void run.finally(() => {
      if (this.#inFlight.get(key) === run) this.#inFlight.delete(key)
    })
    return run
  }

  /** Never rejects: a fault of ours is a result too. */
  async #prepare(
    text: string,
    options: VerifyOptions,
    { limitMs, isUrgent, observer = null }: PrepareMode,
  ): Promise<PreparedAddress> {
    const { clock, log } = this.#deps
    const startedAt = clock.monotonicNow()
    const limit = withDeadline(clock, limitMs, [this.#closing.signal, options.signal])
    try {
      const checkSmtp = options.checkSmtp ?? true
      const { signal } = limit
      const prepared = await prepare(this.#deps, text, { checkSmtp, signal, observer, isUrgent })
      const canUseCache = checkSmtp && !refreshes(options)
      return 'result' in prepared && canUseCache
        ? { result: await this.#orCached(prepared.result, startedAt, observer) }
        : prepared
    } catch (error) {
      log.error('a verification failed inside ev', { error: errorMessage(error) })
      return { result: fromFailure(clock, { text, startedAt }, error) }
    } finally {
      limit.done()
    }
  }

  /** Where the DNS failed, a definite answer that is still kept serves. */
  async #orCached(
    result: Result,
    startedAt: number,
    observer: StepObserver | null,
  ): Promise<Result> {
    const { address, route } = result.evidence
    if (route?.kind !== 'unknown' || isFault(address)) return result
    const known = await this.#cache.get(addressKey(address))
    if (known === null) return result
    observer?.onCacheHit(known.at)
    return staleIfError(this.#deps.clock, result, startedAt, known)
  }
}

/** What somebody wants to hear of a question, beside its answer. */
type StepSource = { readonly dialogue: boolean; readonly observer: StepObserver | null }

type PrepareMode = {
  readonly limitMs: number
  /** Somebody waits for this one address. */
  readonly isUrgent: boolean
  readonly observer?: StepObserver | null
}

/** What a remembered answer cannot give. */
const refreshes = ({ forceRefresh, include }: VerifyOptions) =>
  forceRefresh === true || (include !== undefined && include.length > 0)

/** Callers without types hand in whatever stands in their rows: an empty cell is no address. */
function asText(given: unknown): string {
  if (typeof given === 'string') return given
  return given === undefined || typeof given === 'object' ? '' : String(given)
}
