import { addressKey, parseAddress } from '../address/address.ts'
import { messageOf } from '../base/error.ts'
import type { Log } from '../base/log.ts'
import type { Operator } from '../dns/operator.ts'
import type { Probed } from '../probe/lane.ts'
import type { Pace } from '../probe/pace.ts'
import type { RouteWithHost } from '../probe/plan.ts'
import type { Prober } from '../probe/probe.ts'
import type { Evidence, Result } from '../verdict/verdict.ts'
import { isFresh, memorable, type Remembered, type ResultMemory } from './memory.ts'
import {
  evidenceOf,
  type Inquiry,
  type Prepared,
  type PrepareWorld,
  prepare,
  resultOf,
  resumeInquiry,
} from './prepare.ts'
import { sandboxResult } from './sandbox.ts'
import { type ManyOptions, streamResults } from './stream.ts'

export type VerifyOptions = {
  readonly signal?: AbortSignal
  /** `dialogue`: keep the lines said to and by the mail server. */
  readonly include?: readonly 'dialogue'[]
  /** False: everything but the mail server. */
  readonly checkSmtp?: boolean
  /** True: ask even if the answer is remembered. */
  readonly forceRefresh?: boolean
}

export type EngineWorld = PrepareWorld & {
  readonly prober: Prober
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

export type ProbeListOptions = {
  /** Ends every conversation at once. */
  readonly signal: AbortSignal
  /** Lets the transaction under way end, says QUIT and asks nobody else. */
  readonly drain?: AbortSignal
  readonly dialogue?: boolean
  readonly patienceMs?: number
  /** Called once for each inquiry; `asked` is false when no server was asked this time. */
  readonly onResult: (inquiry: Inquiry, result: Result, asked: boolean) => void
}

/** A pause shorter than this is waited out by a list; a longer one is handed back. */
const LIST_PATIENCE_MS = 2_000

/** Addresses in, results out: one at a time, as a stream, or in the two steps that a job takes. */
export class Engine {
  readonly #world: EngineWorld
  readonly #inFlight = new Map<string, Promise<Result>>()
  readonly #closing = new AbortController()

  constructor(world: EngineWorld) {
    this.#world = world
  }

  /**
   * Verifies one address, strictly as it is written. Resolves within the deadline, whatever DNS and mail
   * servers do; rejects only when `signal` aborts, with its reason.
   */
  async verify(text: string, options: VerifyOptions = {}): Promise<Result> {
    options.signal?.throwIfAborted()
    if (this.#world.sandbox) return sandboxResult(this.#world.clock, text)
    const run = this.#guarded(text, () => this.#verify(text, options))
    return options.signal === undefined ? run : orAborted(run, options.signal)
  }

  /** Verifies a stream of addresses; results come as they ripen, each once. */
  verifyMany(
    texts: AsyncIterable<string> | Iterable<string>,
    options: ManyOptions = {},
  ): AsyncIterable<Result> {
    return streamResults(this, texts, {
      concurrency: this.#world.concurrency,
      greylistDelayMs: this.#world.greylistDelayMs,
      clock: this.#world.clock,
      ...options,
    })
  }

  /** First step of a list: decides what needs no mail server and finds the operator of the rest, in order. */
  async route(texts: readonly string[], options: VerifyOptions = {}): Promise<Prepared[]> {
    if (this.#world.sandbox) {
      return texts.map(text => ({ result: sandboxResult(this.#world.clock, text) }))
    }
    const prepared = await Promise.all(texts.map(text => this.#prepare(text, options)))
    if (options.forceRefresh === true) return prepared
    const remembered = await this.#world.memory.recall(prepared.flatMap(keyOf))
    return prepared.map(one => {
      const known = 'inquiry' in one ? remembered.get(addressKey(one.inquiry.address)) : undefined
      if (known === undefined || !('inquiry' in one)) return one
      const fresh = isFresh(known, this.#world.clock.now())
      return fresh ? { result: this.#fromMemory(one.inquiry, known) } : one
    })
  }

  /** Second step of a list: asks one operator about addresses, with one connection at a time. */
  async probe(
    operator: Operator,
    inquiries: readonly Inquiry[],
    options: ProbeListOptions,
  ): Promise<void> {
    const unanswered = new Set(inquiries)
    try {
      await this.#probe(operator, inquiries, options, false, (inquiry, probed) => {
        unanswered.delete(inquiry)
        options.onResult(inquiry, this.#judged(inquiry, probed), probed.asked)
      })
    } catch (error) {
      // Each inquiry gets its one result, whatever happens here.
      for (const inquiry of unanswered) {
        options.onResult(inquiry, this.#failed(inquiry.text, error), true)
      }
    }
  }

  /** Takes up an item whose route was found before. */
  resume(text: string, route: RouteWithHost): Inquiry {
    return resumeInquiry(this.#world, text, route)
  }

  /** How an operator is asked at present. */
  pace(operator: string): Pace {
    return this.#world.prober.pace(operator)
  }

  get egress(): string {
    return this.#world.prober.egressName
  }

  /** Gives up what is under way and closes what was opened. May be called twice. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort()
    await Promise.allSettled(this.#inFlight.values())
    this.#world.close()
  }

  async #verify(text: string, options: VerifyOptions): Promise<Result> {
    const begunAt = this.#world.clock.ticks()
    const prepared = await this.#prepare(text, options)
    if ('result' in prepared) return prepared.result
    const { inquiry } = prepared
    const key = addressKey(inquiry.address)
    const known = (await this.#world.memory.recall([key])).get(key)
    const wanted = options.forceRefresh !== true && options.include === undefined
    if (known !== undefined && wanted) {
      // What is no longer fresh still serves, and is asked again behind it.
      if (!isFresh(known, this.#world.clock.now())) void this.#shared(key, inquiry, options)
      return this.#fromMemory(inquiry, known)
    }
    const result = await this.#shared(key, inquiry, options)
    // A temporary failure never replaces a definite answer.
    if (result.verdict.risk === 'unknown' && known !== undefined && wanted) {
      return this.#fromMemory(inquiry, known)
    }
    const tookMs = Math.round(this.#world.clock.ticks() - begunAt)
    return { ...result, email: text, tookMs }
  }

  /** One question in flight per address, however many ask it. */
  #shared(key: string, inquiry: Inquiry, options: VerifyOptions): Promise<Result> {
    const running = this.#inFlight.get(key)
    if (running !== undefined && options.include === undefined) return running
    const run = this.#guarded(inquiry.text, () => this.#ask(inquiry, options))
    this.#inFlight.set(key, run)
    void run.finally(() => {
      if (this.#inFlight.get(key) === run) this.#inFlight.delete(key)
    })
    return run
  }

  #ask(inquiry: Inquiry, options: VerifyOptions): Promise<Result> {
    const dialogue = options.include?.includes('dialogue') ?? false
    const { deadlineMs, clock } = this.#world
    // What the DNS took is part of the time that the caller waits.
    const leftMs = deadlineMs - (clock.ticks() - inquiry.begunAt)
    return new Promise<Result>((resolve, reject) => {
      const limit = this.#limit(leftMs)
      const run = { signal: limit.signal, dialogue, patienceMs: leftMs }
      // The result is there with the answer; the farewell to the server goes on behind it.
      this.#probe(inquiry.operator, [inquiry], run, true, (_, probed) =>
        resolve(this.#judged(inquiry, probed)),
      )
        .catch(reject)
        .finally(limit.done)
    })
  }

  async #probe(
    operator: Operator,
    inquiries: readonly Inquiry[],
    options: Omit<ProbeListOptions, 'onResult'>,
    single: boolean,
    onProbed: (inquiry: Inquiry, probed: Probed) => void,
  ): Promise<void> {
    const { prober, memory, clock } = this.#world
    const definite = new Map<string, Remembered>()
    await prober.probe(operator, inquiries, {
      signal: options.signal,
      drain: options.drain ?? options.signal,
      single,
      dialogue: options.dialogue ?? false,
      patienceMs: options.patienceMs ?? LIST_PATIENCE_MS,
      onProbed: (inquiry, probed) => {
        const worth = memorable(probed, clock.now())
        if (worth !== null) definite.set(addressKey(inquiry.address), worth)
        onProbed(inquiry, probed)
      },
    })
    if (definite.size > 0) await memory.remember(definite)
  }

  async #prepare(text: string, options: VerifyOptions): Promise<Prepared> {
    const limit = this.#limit(this.#world.deadlineMs)
    try {
      const checkSmtp = options.checkSmtp ?? true
      return await prepare(this.#world, text, { checkSmtp, signal: limit.signal })
    } catch (error) {
      return { result: this.#failed(text, error) }
    } finally {
      limit.done()
    }
  }

  #judged(inquiry: Inquiry, probed: Probed): Result {
    const { answer, catchAll, host, ip, tls, connectMs, dialogue } = probed
    const timings = { dnsMs: inquiry.dnsMs, connectMs: rounded(connectMs) }
    const asked = { answer, catchAll, host, ip, tls, timings, dialogue }
    return resultOf(this.#world.clock, inquiry.text, inquiry.begunAt, evidenceFor(inquiry, asked))
  }

  #fromMemory(inquiry: Inquiry, { probed, at }: Remembered): Result {
    const result = this.#judged(inquiry, { ...probed, dialogue: null })
    return { ...result, cached: true, checkedAt: at }
  }

  /** A fault of ours is a result too: it says nothing of the address, and ends nobody else's work. */
  async #guarded(text: string, run: () => Promise<Result>): Promise<Result> {
    try {
      return await run()
    } catch (error) {
      return this.#failed(text, error)
    }
  }

  #failed(text: string, error: unknown): Result {
    const { clock, log } = this.#world
    log.error('a verification failed inside ev', { error: messageOf(error) })
    const evidence = evidenceOf({ address: parseAddress(text), failure: messageOf(error) })
    return resultOf(clock, text, clock.ticks(), evidence)
  }

  #limit(limitMs: number): { signal: AbortSignal; done: () => void } {
    const limit = new AbortController()
    const giveUp = () => limit.abort()
    const closing = this.#closing.signal
    if (closing.aborted || limitMs <= 0) giveUp()
    const cancel = this.#world.clock.after(Math.max(0, limitMs), giveUp)
    closing.addEventListener('abort', giveUp, { once: true })
    return {
      signal: limit.signal,
      done: () => {
        cancel()
        closing.removeEventListener('abort', giveUp)
      },
    }
  }
}

function evidenceFor(
  { address, traits, suggestion, route, operator }: Inquiry,
  asked: Partial<Evidence>,
): Evidence {
  return evidenceOf({ address, traits, suggestion, route, operator, ...asked })
}

const keyOf = (prepared: Prepared) =>
  'inquiry' in prepared ? [addressKey(prepared.inquiry.address)] : []

const rounded = (ms: number | null) => (ms === null ? null : Math.round(ms))

/** The caller stops waiting when its signal aborts; the work itself may serve others and goes on. */
function orAborted<T>(run: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    run.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
