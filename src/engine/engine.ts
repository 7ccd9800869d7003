import { addressKey, isFault } from '../address/address.ts'
import { EvError, messageOf } from '../base/error.ts'
import type { Log } from '../base/log.ts'
import type { Operator } from '../dns/operator.ts'
import type { ResolverCheck } from '../dns/resolver-check.ts'
import { addressesOf } from '../dns/route.ts'
import type { Fleet } from '../probe/egress/fleet.ts'
import type { Pace } from '../probe/pace.ts'
import type { PaceStatus } from '../probe/pace-status.ts'
import { type Acceptance, catchAllKey, type RouteWithHost } from '../probe/plan.ts'
import type { Result } from '../verdict/verdict.ts'
import { type DnsPause, isNotBelieved } from './dns-pause.ts'
import { Inquirer, type ProbeListOptions } from './inquiry/inquirer.ts'
import {
  type Inquiry,
  type Prepared,
  type PrepareWorld,
  prepare,
  resumeInquiry,
} from './inquiry/prepare.ts'
import { limited, orAborted } from './limit.ts'
import { isFresh, type ResultMemory } from './memory.ts'
import { Recaller } from './recall.ts'
import { resultOfFailure, resultOfMemory, standIn } from './result/conclude.ts'
import { sandboxResult } from './sandbox.ts'
import { sandboxSteps } from './step/sandbox-steps.ts'
import { type Telling, tellingOf } from './step/telling.ts'
import type { Step } from './step.ts'
import { type ManyOptions, streamResults } from './stream/stream.ts'

export type { ProbeListOptions } from './inquiry/inquirer.ts'

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

export type EngineWorld = PrepareWorld & {
  /** Null: the resolver is not checked. */
  readonly resolverCheck: ResolverCheck | null
  readonly fleet: Fleet
  readonly memory: ResultMemory
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
  readonly #world: EngineWorld
  readonly #memory: Recaller
  readonly #inquirer: Inquirer
  readonly #inFlight = new Map<string, Promise<Result>>()
  readonly #closing = new AbortController()

  constructor(world: EngineWorld) {
    this.#world = world
    this.#memory = new Recaller(world)
    this.#inquirer = new Inquirer({
      ...world,
      memory: this.#memory,
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
    if (this.#world.sandbox) return this.#simulate(given, options)
    const run = this.#verify(given, options)
    return options.signal === undefined ? run : orAborted(run, options.signal)
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
      concurrency: this.#world.concurrency,
      greylistDelayMs: this.#world.greylistDelayMs,
      clock: this.#world.clock,
      closing: this.#closing.signal,
      ...options,
    })
  }

  /** First step of a list: decides what needs no mail server and finds the operator of the rest, in order. */
  route(texts: readonly string[], options: VerifyOptions = {}): Promise<Prepared[]> {
    return Promise.all(texts.map(text => this.routeOne(text, options)))
  }

  /**
   * The same for one address of a list, so that it does not wait for the DNS of the others; the memory is
   * still asked for many at a time. Never rejects: an aborted `signal` gives `dns_error`.
   */
  async routeOne(text: string, options: RouteOptions = {}): Promise<Prepared> {
    const { clock, sandbox } = this.#world
    const given = asText(text)
    if (sandbox) return { result: sandboxResult(clock, given) }
    const how = { limitMs: LIST_ROUTE_MS, isUrgent: false }
    let prepared = await this.#prepare(given, options, how)
    while (isNotBelieved(prepared) && (await options.dnsPause?.wait()) === true) {
      prepared = await this.#prepare(given, options, how)
    }
    if ('result' in prepared || asksAnew(options)) return prepared
    const { inquiry } = prepared
    const remembered = await this.#memory.recall(addressKey(inquiry.address))
    if (remembered === null) return prepared
    if (!isFresh(remembered, clock.now())) return { inquiry: { ...inquiry, remembered } }
    return { result: resultOfMemory(clock, inquiry, remembered) }
  }

  /** Second step of a list: asks one operator about addresses, with one connection at a time. */
  probe(
    operator: Operator,
    inquiries: readonly Inquiry[],
    options: ProbeListOptions,
  ): Promise<void> {
    return this.#inquirer.many(operator, inquiries, options)
  }

  /** Takes up an item whose route was found before; null where the lists by now decide it without a mail server. */
  resume(text: string, route: RouteWithHost, accepted: Acceptance | null = null): Inquiry | null {
    return resumeInquiry(this.#world, text, route, accepted)
  }

  /** Looks up where the first exchanger is, so that no connection has to wait for that. */
  lookAhead(route: RouteWithHost): void {
    const host = route.kind === 'mx' ? route.hosts[0]?.host : route.host
    const { resolver, hasIpv6 } = this.#world
    if (host !== undefined) void addressesOf(resolver, host, undefined, hasIpv6)
  }

  /**
   * Reads the list files again; what is asked from now on is judged by them. Throws EvError('bad_config') with the
   * file and the line where one is bad, and goes on with the lists as they were.
   */
  reloadLists(): void {
    this.#world.lists.reload()
  }

  /** How an operator is asked at present, by one egress of ours or by the one of them that should ask it. */
  pace(operator: string, egress = this.fleet.own.firstFor(operator)): Pace {
    return this.fleet.prober(egress).pace(operator)
  }

  /** How an operator is asked at present by the egress that should ask it; null: it was not asked lately. */
  paceStatus(operator: string): PaceStatus | null {
    const { own } = this.fleet
    return own.prober(own.firstFor(operator)).knownPace(operator)?.status(operator) ?? null
  }

  /** Who runs the mail of a domain, as far as it is known before the DNS is asked; else the domain itself. */
  likelyOperator(domain: string): string {
    const { lists, likelyHosts } = this.#world
    return lists.operators.of(likelyHosts.get(domain) ?? domain).name
  }

  /** Conversations at the same time, in all. */
  get concurrency(): number {
    return this.#world.concurrency
  }

  /** Whether it is known if the domain of an inquiry takes mail for everybody. */
  isTested(inquiry: Inquiry): boolean {
    const { catchAll } = this.fleet.prober(this.fleet.names[0] as string)
    return inquiry.catchAll !== null || catchAll.isTold(catchAllKey(inquiry), false)
  }

  /** Whether the DNS server tells the truth; null where that is not checked. */
  get resolverCheck(): ResolverCheck | null {
    return this.#world.resolverCheck
  }

  /** Our source identities, and who else asks. */
  get fleet(): Fleet {
    return this.#world.fleet
  }

  /** The names of ours, in the order of the settings. */
  get egresses(): readonly string[] {
    return this.fleet.names
  }

  /**
   * Gives up what is under way (verifications end as unknown, streams with EvError('interrupted')) and
   * closes what was opened. Resolves when the last conversation is over. May be called twice.
   */
  async close(): Promise<void> {
    const isFirst = !this.#closing.signal.aborted
    this.#closing.abort()
    await Promise.allSettled(this.#inFlight.values())
    await this.#inquirer.idle()
    if (isFirst) this.#world.close()
  }

  #simulate(text: string, options: VerifyOptions): Result {
    const result = sandboxResult(this.#world.clock, text)
    const telling = tellingOf(options, this.#world)
    if (telling !== null) for (const step of sandboxSteps(result)) telling.tell(step)
    return result
  }

  async #verify(text: string, options: VerifyOptions): Promise<Result> {
    const { clock, deadlineMs } = this.#world
    const begunAt = clock.ticks()
    const telling = tellingOf(options, this.#world)
    const prepared = await this.#prepare(text, options, {
      ...{ limitMs: deadlineMs, isUrgent: true, telling },
    })
    if ('result' in prepared) return prepared.result
    const { inquiry } = prepared
    const key = addressKey(inquiry.address)
    const known = asksAnew(options) ? null : await this.#memory.recall(key)
    if (known !== null) {
      telling?.recalled(known.at)
      // What is no longer fresh still serves, and is asked again behind it.
      const isAsked = isFresh(known, clock.now()) || this.#inFlight.has(key)
      if (!isAsked) void this.#ask(key, inquiry)
      return resultOfMemory(clock, inquiry, known)
    }
    const dialogue = options.include?.includes('dialogue') ?? false
    const running = dialogue || telling !== null ? undefined : this.#inFlight.get(key)
    const result = await (running ?? this.#ask(key, inquiry, { dialogue, telling }))
    // The answer to a question that somebody else asked is one that was known.
    const cached = running !== undefined && result.verdict.risk !== 'unknown'
    return { ...result, email: text, cached, tookMs: Math.round(clock.ticks() - begunAt) }
  }

  /** Asks the mail server; who asks about the same address meanwhile shares the answer. */
  #ask(
    key: string,
    inquiry: Inquiry,
    { dialogue, telling }: Heard = { dialogue: false, telling: null },
  ): Promise<Result> {
    const run = this.#inquirer.one(inquiry, { dialogue, listener: telling?.listener ?? null })
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
    { limitMs, isUrgent, telling = null }: PrepareHow,
  ): Promise<Prepared> {
    const { clock, log } = this.#world
    const begunAt = clock.ticks()
    const limit = limited(clock, limitMs, [this.#closing.signal, options.signal])
    try {
      const checkSmtp = options.checkSmtp ?? true
      const { signal } = limit
      const prepared = await prepare(this.#world, text, { checkSmtp, signal, telling, isUrgent })
      const mayRecall = checkSmtp && !asksAnew(options)
      return 'result' in prepared && mayRecall
        ? { result: await this.#orRemembered(prepared.result, begunAt, telling) }
        : prepared
    } catch (error) {
      log.error('a verification failed inside ev', { error: messageOf(error) })
      return { result: resultOfFailure(clock, { text, begunAt }, error) }
    } finally {
      limit.done()
    }
  }

  /** Where the DNS failed, a definite answer that is still kept serves. */
  async #orRemembered(result: Result, begunAt: number, telling: Telling | null): Promise<Result> {
    const { address, route } = result.evidence
    if (route?.kind !== 'unknown' || isFault(address)) return result
    const known = await this.#memory.recall(addressKey(address))
    if (known === null) return result
    telling?.recalled(known.at)
    return standIn(this.#world.clock, result, begunAt, known)
  }
}

/** What somebody wants to hear of a question, beside its answer. */
type Heard = { readonly dialogue: boolean; readonly telling: Telling | null }

type PrepareHow = {
  readonly limitMs: number
  /** Somebody waits for this one address. */
  readonly isUrgent: boolean
  readonly telling?: Telling | null
}

/** What a remembered answer cannot give. */
const asksAnew = ({ forceRefresh, include }: VerifyOptions) =>
  forceRefresh === true || (include !== undefined && include.length > 0)

/** Callers without types hand in whatever stands in their rows: an empty cell is no address. */
function asText(given: unknown): string {
  if (typeof given === 'string') return given
  return given === undefined || typeof given === 'object' ? '' : String(given)
}
