import { addressKey } from '../../address/address.ts'
import { type Clock, sleep } from '../../base/clock.ts'
import { EvError } from '../../base/error.ts'
import type { Result } from '../../verdict/verdict.ts'
import { DnsPause, dnsWaitMs } from '../dns-pause.ts'
import type { Engine } from '../engine.ts'
import { askAgain, isDecided, type Outcome } from '../inquiry/again.ts'
import { isBackupOnly } from '../inquiry/exchangers.ts'
import type { Inquiry, Prepared } from '../inquiry/prepare.ts'
import { limited } from '../limit.ts'
import { Line, type Waiting } from './line.ts'
import { Source } from './source.ts'

export type ManyOptions = {
  readonly signal?: AbortSignal
  readonly checkSmtp?: boolean
  readonly forceRefresh?: boolean
  /** False: a greylisted address ends as `greylisted` at once. */
  readonly wait?: boolean
  /** True: somebody waits for all of them, so their connections do not wait for those of lists to end. */
  readonly urgent?: boolean
  /** Addresses that may be under way at the same time, DNS and waiting included. */
  readonly windowMax?: number
}

type StreamOptions = ManyOptions & {
  readonly concurrency: number
  readonly greylistDelayMs: number | null
  readonly clock: Clock
  /** Aborts when the engine is closed. */
  readonly closing: AbortSignal
}

/** Enough for sessions to be filled, little enough to be held in memory (about 1 KB each). */
const WINDOW_MAX = 10_000
/** Addresses whose routes are looked up at once: enough for the resolver to be busy, few enough that none waits long. */
const ROUTING_MAX = 1_000
/**
 * What waits for the end of a refusal, half an hour, may be so much of the window. Were it all of it, the
 * rest of the list would wait too.
 */
const REFUSED_SHARE_MAX = 0.5
/** How long a line that cannot fill a connection waits for more of its kind, since the last one came. */
const GATHER_MS = 100

/** Results of a stream of addresses, as they ripen. */
export async function* streamResults(
  engine: Engine,
  texts: AsyncIterable<string> | Iterable<string>,
  options: StreamOptions,
): AsyncGenerator<Result> {
  const stream = new Stream(engine, options)
  const feeding = stream.feed(texts)
  feeding.catch(() => {})
  try {
    for (;;) {
      const result = await stream.next()
      if (result === null) break
      yield result
    }
    await feeding
  } finally {
    stream.stop()
  }
}

class Stream {
  readonly #engine: Engine
  readonly #options: StreamOptions
  readonly #windowMax: number
  readonly #lines = new Map<string, Line>()
  /** Lines that could be walked if there were a walker to spare. */
  readonly #hungry = new Set<Line>()
  /** What is under way, by address, with those who came for it later: nobody is asked twice at a time. */
  readonly #twins = new Map<string, Inquiry[]>()
  readonly #stopping = new AbortController()
  /** Aborts with the stream, the caller's signal or the engine. */
  readonly #ending: AbortSignal
  readonly #dnsPause: DnsPause
  #ripe: Result[] = []
  /** Taken from the source and not yet given out. */
  #underWay = 0
  #routing = 0
  /** Those that were not asked about, as others were refused, and wait. */
  #refused = 0
  #walkers = 0
  #fed = false
  #wake: () => void = () => {}
  #room: () => void = () => {}

  constructor(engine: Engine, options: StreamOptions) {
    this.#engine = engine
    this.#options = options
    this.#windowMax = windowOf(options)
    const { clock, signal, closing } = options
    const ending = limited(clock, null, [signal, closing, this.#stopping.signal])
    this.#ending = ending.signal
    this.#dnsPause = new DnsPause(engine.resolverCheck, clock, ending.signal)
    this.#ending.addEventListener('abort', () => {
      this.#wake()
      this.#room()
    })
  }

  /** Takes texts while there is room for them; each goes its own way from here. */
  async feed(texts: AsyncIterable<string> | Iterable<string>): Promise<void> {
    let source: Source | null = null
    try {
      source = new Source(texts, this.#ending)
      while (!this.#ending.aborted) {
        const taken = await source.next()
        if (taken === null) return
        this.#underWay++
        void this.#route(taken.text)
        await this.#untilRoom()
      }
    } finally {
      source?.close()
      this.#fed = true
      this.#walkAllIfFed()
      this.#wake()
    }
  }

  /** The next ripe result; null when all are given out. Throws when the caller's signal or the engine ended it. */
  async next(): Promise<Result | null> {
    for (;;) {
      this.#options.signal?.throwIfAborted()
      if (this.#options.closing.aborted) throw new EvError('interrupted', 'The engine was closed.')
      const result = this.#ripe.shift()
      if (result !== undefined) {
        this.#underWay--
        this.#room()
        return result
      }
      if (this.#fed && this.#underWay === 0) return null
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
  }

  stop() {
    this.#stopping.abort()
  }

  async #untilRoom(): Promise<void> {
    while (
      (this.#underWay >= this.#windowMax || this.#routing >= ROUTING_MAX) &&
      !this.#ending.aborted
    ) {
      await new Promise<void>(resolve => {
        this.#room = resolve
      })
    }
  }

  async #route(text: string): Promise<void> {
    this.#routing++
    const { checkSmtp = true, forceRefresh = false, wait = true } = this.#options
    const options = { checkSmtp, forceRefresh, signal: this.#ending }
    const dnsPause = wait ? { dnsPause: this.#dnsPause } : {}
    const prepared = await this.#engine.routeOne(text, { ...options, ...dnsPause })
    this.#routing--
    this.#room()
    this.#routed(prepared)
    this.#walkAllIfFed()
  }

  #routed(prepared: Prepared) {
    if ('result' in prepared) return this.#ripen(prepared.result)
    const { inquiry } = prepared
    const key = addressKey(inquiry.address)
    const twins = this.#twins.get(key)
    if (twins !== undefined) return void twins.push(inquiry)
    this.#twins.set(key, [])
    const since = this.#options.clock.ticks()
    this.#enqueue({ inquiry, since, tries: 0, egress: null, refusedBy: [] })
  }

  #enqueue(waiting: Waiting, isAgain = false) {
    const { operator, route } = waiting.inquiry
    let line = this.#lines.get(operator.name)
    if (line === undefined) {
      line = new Line(operator, this.#engine.fleet.row(operator.name))
      this.#lines.set(operator.name, line)
      this.#engine.lookAhead(route)
    }
    line.add(waiting)
    // What was put off together comes back together: it gathers anew, though nothing else is to come.
    line.ripe = this.#isAllRouted && !isAgain
    line.lastAt = this.#options.clock.ticks()
    if (line.ripe || line.fillsConnection) this.#walk(line)
    if (!line.isEmpty && !line.ripe && !line.gathering) this.#gather(line, GATHER_MS)
  }

  /** A connection costs as much for one recipient as for many, so a line waits while more of it may come. */
  #gather(line: Line, delayMs: number) {
    line.gathering = true
    this.#options.clock.after(delayMs, () => {
      const leftMs = line.lastAt + GATHER_MS - this.#options.clock.ticks()
      if (leftMs >= 1) return this.#gather(line, leftMs)
      line.gathering = false
      line.ripe = true
      this.#walk(line)
    })
  }

  get #isAllRouted(): boolean {
    return this.#fed && this.#routing === 0
  }

  /** Nothing more comes: nothing is waited for. */
  #walkAllIfFed() {
    if (!this.#isAllRouted) return
    for (const line of this.#lines.values()) {
      line.ripe = true
      this.#walk(line)
    }
  }

  /** Puts as many walkers on a line as the pace of each egress and the whole stream allow. */
  #walk(line: Line) {
    const fleet = this.#engine.fleet.own
    const operator = line.operator.name
    const first = fleet.firstFor(operator)
    const { sessionsMax } = line.row
    for (const egress of fleet.inOrder(operator)) {
      // One that is refused only takes what it must, to be told so: then it goes to the others.
      const mayHaveFree = fleet.takesAny(egress, operator)
      // A few are asked by one identity of ours; the others come where they fill a connection.
      const few = egress === first || line.needs(egress) || !mayHaveFree
      const isRipe = line.ripe && few
      while (line.walkers(egress) < sessionsMax) {
        const max = this.#roomFor(line, line.next(egress, mayHaveFree))
        if (line.waitingFor(egress, mayHaveFree) < (isRipe ? 1 : max)) break
        if (this.#ending.aborted) return
        if (this.#walkers >= this.#options.concurrency) return void this.#hungry.add(line)
        this.#begin(line, egress, line.take(egress, max, mayHaveFree))
      }
    }
  }

  /** Recipients that fill a connection: while the domain is not tested, the random one takes the place of one. */
  #roomFor({ row }: Line, next: Waiting | undefined): number {
    const isTested = next === undefined || this.#engine.isTested(next.inquiry)
    return Math.max(1, row.recipientsPerSession - (isTested ? 0 : 1))
  }

  #begin(line: Line, egress: string, chunk: Waiting[]) {
    line.count(egress, 1)
    this.#walkers++
    void this.#walkChunk(line, egress, chunk).finally(() => {
      line.count(egress, -1)
      this.#walkers--
      if (line.isOver) this.#lines.delete(line.operator.name)
      this.#walkOn(line)
    })
  }

  /** A walker is free: the lines that wait for one come first, so that a long line does not starve them. */
  #walkOn(line: Line) {
    for (const hungry of this.#hungry) {
      if (this.#walkers >= this.#options.concurrency) break
      this.#hungry.delete(hungry)
      this.#walk(hungry)
    }
    this.#walk(line)
  }

  async #walkChunk(line: Line, egress: string, chunk: Waiting[]): Promise<void> {
    const byInquiry = new Map(chunk.map(waiting => [waiting.inquiry, waiting]))
    await this.#engine.probe(line.operator, [...byInquiry.keys()], {
      egress,
      signal: this.#ending,
      urgent: this.#options.urgent ?? false,
      onResult: (inquiry, result, asked) =>
        this.#answered(byInquiry.get(inquiry) as Waiting, {
          ...{ result, asked, egress },
          isBackupOnly: isBackupOnly(inquiry.exchangers, result),
        }),
      onTurnLater: (inquiry, delayMs) =>
        void this.#enqueueLater(byInquiry.get(inquiry) as Waiting, delayMs),
    })
  }

  #answered(waiting: Waiting, outcome: Outcome) {
    const { inquiry, since } = waiting
    if (isDecided(outcome)) return this.#ended(inquiry, outcome.result)
    const { clock, wait = true, greylistDelayMs } = this.#options
    const fleet = this.#engine.fleet.own
    const { name } = inquiry.operator
    const willing = () => fleet.willing(name)
    const doubtMs = () => fleet.doubtMs(outcome.egress, name)
    const past = { ...waiting, waitedMs: clock.ticks() - since }
    const dnsDoubtMs = () => dnsWaitMs(this.#engine.resolverCheck)
    const domain = inquiry.address.domain.ascii
    const refusedForMs = () => fleet.refusedForMs(outcome.egress, name, domain)
    const isRefused = !outcome.asked && outcome.result.evidence.answer?.kind === 'refused-us'
    const isCrowded = isRefused && this.#refused >= this.#windowMax * REFUSED_SHARE_MAX
    const doubts = { doubtMs, dnsDoubtMs, refusedForMs }
    const terms = { greylistDelayMs, willing, ...doubts, wait: wait && !isCrowded }
    const again = askAgain(outcome, past, terms)
    if (again === null) return this.#ended(inquiry, outcome.result)
    const { delayMs, accepted, ...been } = again
    if (isRefused) this.#refused++
    const next = { ...inquiry, accepted }
    void this.#enqueueLater({ inquiry: next, since, ...been }, delayMs).then(() => {
      if (isRefused) this.#refused--
    })
  }

  async #enqueueLater(waiting: Waiting, delayMs: number): Promise<void> {
    await sleep(this.#options.clock, delayMs, this.#ending)
    if (!this.#ending.aborted) this.#enqueue(waiting, true)
  }

  /** Those who came for the same address while it was under way get the same result. */
  #ended({ address }: Inquiry, result: Result) {
    const twins = this.#twins.get(addressKey(address)) ?? []
    this.#twins.delete(addressKey(address))
    this.#ripen(result)
    for (const { text } of twins) this.#ripen({ ...result, email: text })
  }

  #ripen(result: Result) {
    this.#ripe.push(result)
    this.#wake()
  }
}

function windowOf({ windowMax = WINDOW_MAX }: ManyOptions): number {
  if (Number.isInteger(windowMax) && windowMax >= 1) return windowMax
  throw new EvError('usage', `windowMax is ${windowMax}; it takes a whole number from 1.`)
}
