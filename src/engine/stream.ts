import { type Clock, sleep } from '../platform/clock.ts'
import { EvError } from '../platform/error.ts'
import { addressKey } from './address/address.ts'
import { withDeadline } from './deadline.ts'
import { DnsPause, dnsWaitMs } from './dns-pause.ts'
import type { Engine } from './engine.ts'
import { OperatorQueue, type PendingAddress } from './operator-queue.ts'
import { isBackupOnly } from './probing/mx-hosts.ts'
import type { PreparedAddress, ProbeTask } from './probing/prepare.ts'
import { isDecided, nextRetry, type Outcome } from './probing/retry-policy.ts'
import { Source } from './stream-source.ts'
import type { Result } from './verdict/verdict.ts'

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
  readonly #lines = new Map<string, OperatorQueue>()
  /** Lines that could be walked if there were a walker to spare. */
  readonly #blocked = new Set<OperatorQueue>()
  /** What is under way, by address, with those who came for it later: nobody is asked twice at a time. */
  readonly #duplicates = new Map<string, ProbeTask[]>()
  readonly #stopping = new AbortController()
  /** Aborts with the stream, the caller's signal or the engine. */
  readonly #ending: AbortSignal
  readonly #dnsPause: DnsPause
  #ready: Result[] = []
  /** Taken from the source and not yet given out. */
  #underWay = 0
  #routing = 0
  /** Those that were not asked about, as others were refused, and wait. */
  #refused = 0
  #workers = 0
  #inputEnded = false
  #wake: () => void = () => {}
  #waitForCapacity: () => void = () => {}

  constructor(engine: Engine, options: StreamOptions) {
    this.#engine = engine
    this.#options = options
    this.#windowMax = windowFor(options)
    const { clock, signal, closing } = options
    const ending = withDeadline(clock, null, [signal, closing, this.#stopping.signal])
    this.#ending = ending.signal
    this.#dnsPause = new DnsPause(engine.resolverCheck, clock, ending.signal)
    this.#ending.addEventListener('abort', () => {
      this.#wake()
      this.#waitForCapacity()
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
      this.#inputEnded = true
      this.#dispatchAll()
      this.#wake()
    }
  }

  /** The next ripe result; null when all are given out. Throws when the caller's signal or the engine ended it. */
  async next(): Promise<Result | null> {
    for (;;) {
      this.#options.signal?.throwIfAborted()
      if (this.#options.closing.aborted) throw new EvError('interrupted', 'The engine was closed.')
      const result = this.#ready.shift()
      if (result !== undefined) {
        this.#underWay--
        this.#waitForCapacity()
        return result
      }
      if (this.#inputEnded && this.#underWay === 0) return null
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
        this.#waitForCapacity = resolve
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
    this.#waitForCapacity()
    this.#routed(prepared)
    this.#dispatchAll()
  }

  #routed(prepared: PreparedAddress) {
    if ('result' in prepared) return this.#emit(prepared.result)
    const { task } = prepared
    const key = addressKey(task.address)
    const duplicates = this.#duplicates.get(key)
    if (duplicates !== undefined) return void duplicates.push(task)
    this.#duplicates.set(key, [])
    const since = this.#options.clock.monotonicNow()
    this.#enqueue({ task, since, tries: 0, egress: null, refusedBy: [] })
  }

  #enqueue(waiting: PendingAddress, isRetry = false) {
    const { operator, route } = waiting.task
    let line = this.#lines.get(operator.name)
    if (line === undefined) {
      line = new OperatorQueue(operator, this.#engine.egressPool.row(operator.name))
      this.#lines.set(operator.name, line)
      this.#engine.lookAhead(route)
    }
    line.add(waiting)
    // What was put off together comes back together: it gathers anew, though nothing else is to come.
    line.ready = this.#isAllRouted && !isRetry
    line.lastAt = this.#options.clock.monotonicNow()
    if (line.ready || line.fillsConnection) this.#dispatch(line)
    if (!line.isEmpty && !line.ready && !line.gathering) this.#gather(line, GATHER_MS)
  }

  /** A connection costs as much for one recipient as for many, so a line waits while more of it may come. */
  #gather(line: OperatorQueue, delayMs: number) {
    line.gathering = true
    this.#options.clock.after(delayMs, () => {
      const leftMs = line.lastAt + GATHER_MS - this.#options.clock.monotonicNow()
      if (leftMs >= 1) return this.#gather(line, leftMs)
      line.gathering = false
      line.ready = true
      this.#dispatch(line)
    })
  }

  get #isAllRouted(): boolean {
    return this.#inputEnded && this.#routing === 0
  }

  /** Nothing more comes: nothing is waited for. */
  #dispatchAll() {
    if (!this.#isAllRouted) return
    for (const line of this.#lines.values()) {
      line.ready = true
      this.#dispatch(line)
    }
  }

  /** Puts as many walkers on a line as the pace of each egress and the whole stream allow. */
  #dispatch(line: OperatorQueue) {
    const egressPool = this.#engine.egressPool.own
    const operator = line.operator.name
    const first = egressPool.primaryFor(operator)
    const { sessionsMax } = line.row
    for (const egress of egressPool.ranked(operator)) {
      // One that is refused only takes what it must, to be told so: then it goes to the others.
      const mayHaveFree = egressPool.takesAny(egress, operator)
      // A few are asked by one identity of ours; the others come where they fill a connection.
      const few = egress === first || line.needs(egress) || !mayHaveFree
      const isReady = line.ready && few
      while (line.workers(egress) < sessionsMax) {
        const max = this.#roomFor(line, line.next(egress, mayHaveFree))
        if (line.waitingFor(egress, mayHaveFree) < (isReady ? 1 : max)) break
        if (this.#ending.aborted) return
        if (this.#workers >= this.#options.concurrency) return void this.#blocked.add(line)
        this.#begin(line, egress, line.take(egress, max, mayHaveFree))
      }
    }
  }

  /** Recipients that fill a connection: while the domain is not tested, the random one takes the place of one. */
  #roomFor({ row }: OperatorQueue, next: PendingAddress | undefined): number {
    const isTested = next === undefined || this.#engine.isTested(next.task)
    return Math.max(1, row.recipientsPerSession - (isTested ? 0 : 1))
  }

  #begin(line: OperatorQueue, egress: string, chunk: PendingAddress[]) {
    line.count(egress, 1)
    this.#workers++
    void this.#dispatchChunk(line, egress, chunk).finally(() => {
      line.count(egress, -1)
      this.#workers--
      if (line.isDone) this.#lines.delete(line.operator.name)
      this.#dispatchNext(line)
    })
  }

  /** A walker is free: the lines that wait for one come first, so that a long line does not starve them. */
  #dispatchNext(line: OperatorQueue) {
    for (const blocked of this.#blocked) {
      if (this.#workers >= this.#options.concurrency) break
      this.#blocked.delete(blocked)
      this.#dispatch(blocked)
    }
    this.#dispatch(line)
  }

  async #dispatchChunk(
    line: OperatorQueue,
    egress: string,
    chunk: PendingAddress[],
  ): Promise<void> {
    const byTask = new Map(chunk.map(waiting => [waiting.task, waiting]))
    await this.#engine.probe(line.operator, [...byTask.keys()], {
      egress,
      signal: this.#ending,
      urgent: this.#options.urgent ?? false,
      onResult: (task, result, asked) =>
        this.#answered(byTask.get(task) as PendingAddress, {
          ...{ result, asked, egress },
          isBackupOnly: isBackupOnly(task.exchangers, result),
        }),
      onTurnLater: (task, delayMs) =>
        void this.#enqueueLater(byTask.get(task) as PendingAddress, delayMs),
    })
  }

  #answered(waiting: PendingAddress, outcome: Outcome) {
    const { task, since } = waiting
    if (isDecided(outcome)) return this.#ended(task, outcome.result)
    const { clock, wait = true, greylistDelayMs } = this.#options
    const egressPool = this.#engine.egressPool.own
    const { name } = task.operator
    const available = () => egressPool.availableFor(name)
    const uncertainForMs = () => egressPool.uncertainForMs(outcome.egress, name)
    const past = { ...waiting, waitedMs: clock.monotonicNow() - since }
    const dnsUncertainForMs = () => dnsWaitMs(this.#engine.resolverCheck)
    const domain = task.address.domain.ascii
    const refusedForMs = () => egressPool.refusedForMs(outcome.egress, name, domain)
    const isRefused = !outcome.asked && outcome.result.evidence.answer?.kind === 'blocked'
    const isBusy = isRefused && this.#refused >= this.#windowMax * REFUSED_SHARE_MAX
    const uncertainty = {
      uncertainForMs: uncertainForMs,
      dnsUncertainForMs: dnsUncertainForMs,
      refusedForMs,
    }
    const terms = { greylistDelayMs, available: available, ...uncertainty, wait: wait && !isBusy }
    const again = nextRetry(outcome, past, terms)
    if (again === null) return this.#ended(task, outcome.result)
    const { delayMs, accepted, ...been } = again
    if (isRefused) this.#refused++
    const next = { ...task, accepted }
    void this.#enqueueLater({ task: next, since, ...been }, delayMs).then(() => {
      if (isRefused) this.#refused--
    })
  }

  async #enqueueLater(waiting: PendingAddress, delayMs: number): Promise<void> {
    await sleep(this.#options.clock, delayMs, this.#ending)
    if (!this.#ending.aborted) this.#enqueue(waiting, true)
  }

  /** Those who came for the same address while it was under way get the same result. */
  #ended({ address }: ProbeTask, result: Result) {
    const duplicates = this.#duplicates.get(addressKey(address)) ?? []
    this.#duplicates.delete(addressKey(address))
    this.#emit(result)
    for (const { text } of duplicates) this.#emit({ ...result, email: text })
  }

  #emit(result: Result) {
    this.#ready.push(result)
    this.#wake()
  }
}

function windowFor({ windowMax = WINDOW_MAX }: ManyOptions): number {
  if (Number.isInteger(windowMax) && windowMax >= 1) return windowMax
  throw new EvError('usage', `windowMax is ${windowMax}; it takes a whole number from 1.`)
}
