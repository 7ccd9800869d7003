import { type Clock, sleep } from '../base/clock.ts'
import type { Operator } from '../dns/operator.ts'
import type { Result } from '../verdict/verdict.ts'
import { askAgainAfter } from './again.ts'
import type { Engine } from './engine.ts'
import type { Inquiry } from './prepare.ts'

export type ManyOptions = {
  readonly signal?: AbortSignal
  readonly checkSmtp?: boolean
  readonly forceRefresh?: boolean
  /** False: a greylisted address ends as `greylisted` at once. */
  readonly wait?: boolean
  /** Addresses that may be under way at the same time, DNS and waiting included. */
  readonly windowMax?: number
}

type StreamOptions = ManyOptions & {
  readonly concurrency: number
  readonly greylistDelayMs: number | null
  readonly clock: Clock
}

type Waiting = { readonly inquiry: Inquiry; readonly tries: number; readonly since: number }

/** Enough for sessions to be filled, little enough to be held in memory (about 1 KB each). */
const WINDOW_MAX = 10_000
/** Addresses whose routes are looked up together. */
const ROUTE_CHUNK_MAX = 200
/** How long a line gathers before it is walked: the routes of one domain arrive together. */
const GATHER_MS = 5

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

/** What waits for one operator, and how many connections work on it. */
type Line = { readonly operator: Operator; waiting: Waiting[]; walkers: number; gathering: boolean }

class Stream {
  readonly #engine: Engine
  readonly #options: StreamOptions
  readonly #windowMax: number
  readonly #lines = new Map<string, Line>()
  /** Lines that could be walked if there were a walker to spare. */
  readonly #hungry = new Set<Line>()
  readonly #stopping = new AbortController()
  #ripe: Result[] = []
  /** Taken from the source and not yet given out. */
  #underWay = 0
  #walkers = 0
  #fed = false
  #wake: () => void = () => {}
  #room: () => void = () => {}

  constructor(engine: Engine, options: StreamOptions) {
    this.#engine = engine
    this.#options = options
    this.#windowMax = options.windowMax ?? WINDOW_MAX
    options.signal?.addEventListener('abort', () => this.stop(), { once: true })
  }

  /** Takes texts while there is room for them, and routes them in chunks. */
  async feed(texts: AsyncIterable<string> | Iterable<string>): Promise<void> {
    const routing = new Set<Promise<void>>()
    try {
      let chunk: string[] = []
      for await (const text of texts) {
        if (this.#stopping.signal.aborted) return
        this.#underWay++
        chunk.push(text)
        if (chunk.length >= ROUTE_CHUNK_MAX || this.#underWay >= this.#windowMax) {
          this.#start(routing, chunk)
          chunk = []
        }
        while (this.#underWay >= this.#windowMax && !this.#stopping.signal.aborted) {
          await new Promise<void>(resolve => {
            this.#room = resolve
          })
        }
      }
      this.#start(routing, chunk)
      await Promise.all(routing)
    } finally {
      this.#fed = true
      this.#wake()
    }
  }

  /** The next ripe result; null when all are given out. */
  async next(): Promise<Result | null> {
    for (;;) {
      this.#options.signal?.throwIfAborted()
      const result = this.#ripe.pop()
      if (result !== undefined) {
        this.#underWay--
        this.#room()
        return result
      }
      if (this.#fed && this.#underWay === 0) return null
      if (this.#stopping.signal.aborted) return null
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
  }

  stop() {
    this.#stopping.abort()
    this.#wake()
    this.#room()
  }

  #start(routing: Set<Promise<void>>, chunk: string[]) {
    if (chunk.length === 0) return
    const run = this.#route(chunk).finally(() => routing.delete(run))
    routing.add(run)
  }

  async #route(texts: string[]): Promise<void> {
    const { checkSmtp = true, forceRefresh = false } = this.#options
    const prepared = await this.#engine.route(texts, { checkSmtp, forceRefresh })
    for (const one of prepared) {
      if ('result' in one) this.#ripen(one.result)
      else this.#enqueue({ inquiry: one.inquiry, tries: 0, since: this.#options.clock.ticks() })
    }
  }

  #enqueue(waiting: Waiting) {
    const { operator } = waiting.inquiry
    let line = this.#lines.get(operator.name)
    if (line === undefined) {
      line = { operator, waiting: [], walkers: 0, gathering: false }
      this.#lines.set(operator.name, line)
    }
    line.waiting.push(waiting)
    this.#gather(line)
  }

  #gather(line: Line) {
    if (line.gathering) return
    line.gathering = true
    this.#options.clock.after(GATHER_MS, () => {
      line.gathering = false
      this.#walk(line)
    })
  }

  /** Puts as many walkers on a line as its pace and the whole stream allow. */
  #walk(line: Line) {
    const { row } = this.#engine.pace(line.operator.name)
    while (line.waiting.length > 0 && line.walkers < row.sessionsMax) {
      if (this.#stopping.signal.aborted) return
      if (this.#walkers >= this.#options.concurrency) return void this.#hungry.add(line)
      line.walkers++
      this.#walkers++
      void this.#walkChunk(line, takeChunk(line, row.recipientsPerSession)).finally(() => {
        line.walkers--
        this.#walkers--
        if (line.waiting.length === 0 && line.walkers === 0) this.#lines.delete(line.operator.name)
        this.#walkOn(line)
      })
    }
  }

  /** A walker is free: the lines that wait for one come first, so that a long line does not starve them. */
  #walkOn(line: Line) {
    for (const hungry of this.#hungry) {
      if (this.#walkers >= this.#options.concurrency) break
      this.#hungry.delete(hungry)
      this.#walk(hungry)
    }
    if (!line.gathering) this.#walk(line)
  }

  async #walkChunk(line: Line, chunk: Waiting[]): Promise<void> {
    const byInquiry = new Map(chunk.map(waiting => [waiting.inquiry, waiting]))
    await this.#engine.probe(line.operator, [...byInquiry.keys()], {
      signal: this.#stopping.signal,
      onResult: (inquiry, result, asked) =>
        this.#answered(byInquiry.get(inquiry) as Waiting, result, asked),
    })
  }

  #answered(waiting: Waiting, result: Result, asked: boolean) {
    const { clock, wait = true, greylistDelayMs } = this.#options
    const tries = waiting.tries + (asked ? 1 : 0)
    const past = { count: tries, waitedMs: clock.ticks() - waiting.since }
    const delayMs = wait ? askAgainAfter(result, asked, past, greylistDelayMs) : null
    if (delayMs === null) return this.#ripen(result)
    void sleep(clock, delayMs, this.#stopping.signal).then(() => {
      if (!this.#stopping.signal.aborted) this.#enqueue({ ...waiting, tries })
    })
  }

  #ripen(result: Result) {
    this.#ripe.push(result)
    this.#wake()
  }
}

/** The next recipients for one connection: those of the domain that waits longest, and then of the next. */
function takeChunk(line: Line, sizeMax: number): Waiting[] {
  if (line.waiting.length <= sizeMax) return line.waiting.splice(0)
  const domain = line.waiting[0]?.inquiry.address.domain.ascii
  const same = line.waiting.filter(({ inquiry }) => inquiry.address.domain.ascii === domain)
  const others = line.waiting.filter(({ inquiry }) => inquiry.address.domain.ascii !== domain)
  line.waiting = [...same.slice(sizeMax), ...others.slice(Math.max(0, sizeMax - same.length))]
  return [...same.slice(0, sizeMax), ...others.slice(0, Math.max(0, sizeMax - same.length))]
}
