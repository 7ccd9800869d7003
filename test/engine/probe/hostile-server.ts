import { EventEmitter } from 'node:events'
import type { Duplex } from 'node:stream'
import type { Clock } from '../../../src/platform/clock.ts'

/** Repeatable random numbers (mulberry32): a seed always produces the same server. */
export class Dice {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** 0 ≤ x < 1 */
  roll(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  below(limit: number): number {
    return Math.floor(this.roll() * limit)
  }

  entropy(share: number): boolean {
    return this.roll() < share
  }

  one<T>(list: readonly [T, ...T[]]): T {
    return list[this.below(list.length)] as T
  }
}

/** A clock for many short runs: `step` jumps to the next timer and fires it. */
export function steppedClock() {
  let ticks = 1_000
  let timers: { dueAt: number; callback: () => void }[] = []
  return {
    now: () => ticks,
    monotonicNow: () => ticks,
    after(delayMs: number, callback: () => void) {
      const timer = { dueAt: ticks + Math.max(0, delayMs), callback }
      timers.push(timer)
      return () => {
        timers = timers.filter(other => other !== timer)
      }
    },
    /** Returns false if no timer is set. */
    step(): boolean {
      let [next] = timers
      if (next === undefined) return false
      for (const timer of timers) if (timer.dueAt < next.dueAt) next = timer
      timers = timers.filter(other => other !== next)
      ticks = Math.max(ticks, next.dueAt)
      next.callback()
      return true
    },
  } satisfies Clock & { step(): boolean }
}

/** The events of one connection, as seen by an observer between the peers. */
export type Trace = {
  /** Commands, in order. */
  readonly lines: string[]
  /** The output of the server, and the commands received by then; `tls`: TLS starts here. */
  readonly said: { text: string; heard: number; tls: boolean }[]
}

/**
 * A server that mostly speaks SMTP and otherwise misbehaves: wrong codes, flipped bits, replies that
 * are surplus, early, split, late or missing, and every kind of close. It replaces a socket and
 * implements only what a session uses.
 */
export class HostileServer extends EventEmitter implements Trace {
  readonly lines: string[] = []
  readonly said: { text: string; heard: number; tls: boolean }[] = []
  destroyed = false
  readonly #dice: Dice
  readonly #clock: Clock
  /** The share of wrong output. */
  readonly #malice: number
  #rest = ''

  constructor(dice: Dice, clock: Clock) {
    super()
    this.#dice = dice
    this.#clock = clock
    this.#malice = dice.one([0, 0.02, 0.1, 0.3])
    // Like a socket, it waits for a listener.
    this.once('newListener', () =>
      this.#say(dice.entropy(0.95) ? '220 mx.test ESMTP\r\n' : this.#anyReply()),
    )
  }

  asSocket(): Duplex {
    return this as unknown as Duplex
  }

  beginTls(): void {
    this.said.push({ text: '', heard: this.lines.length, tls: true })
  }

  write(bytes: string | Uint8Array): boolean {
    const lines = (this.#rest + Buffer.from(bytes).toString('latin1')).split('\r\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) {
      this.lines.push(line)
      this.#say(this.#replyTo(line))
      if (line === 'QUIT' && this.#dice.entropy(0.9)) this.#later(() => this.destroy())
    }
    return true
  }

  end(): void {
    this.#later(() => this.destroy())
  }

  destroy(error?: Error): void {
    if (this.destroyed) return
    this.destroyed = true
    queueMicrotask(() => {
      if (error) this.emit('error', error)
      this.emit('close')
    })
  }

  #replyTo(line: string): string {
    const dice = this.#dice
    const honest = !dice.entropy(this.#malice)
    if (!honest && dice.entropy(0.5)) return this.#anyReply()
    if (/^(EHLO|HELO)/.test(line)) return this.#hello()
    if (line.startsWith('STARTTLS'))
      return dice.one(['220 go on\r\n', '454 4.7.0 no\r\n', '220 a\r\n250 b\r\n'])
    if (line.startsWith('RCPT')) return dice.one(RCPT_REPLIES)
    return dice.entropy(0.93) ? '250 2.0.0 Ok\r\n' : dice.one(RCPT_REPLIES)
  }

  #hello(): string {
    const offers = ['PIPELINING', 'STARTTLS', 'SMTPUTF8', 'SIZE 1000'].filter(() =>
      this.#dice.entropy(0.6),
    )
    return `${['250-mx.test', ...offers.map(offer => `250-${offer}`)].join('\r\n')}\r\n250 HELP\r\n`
  }

  #anyReply(): string {
    const dice = this.#dice
    if (dice.entropy(0.3)) return dice.one(NONSENSE)
    const code = dice.entropy(0.2)
      ? dice.below(1_100)
      : dice.one([220, 250, 251, 354, 421, 450, 452, 500, 550, 554])
    const lines = Array.from({ length: 1 + dice.below(3) }, () => dice.one(TEXTS))
    return lines
      .map((text, i) => `${code}${i === lines.length - 1 ? ' ' : '-'}${text}\r\n`)
      .join('')
  }

  /** Sends a reply or a corrupted form of it. */
  #say(text: string): void {
    const dice = this.#dice
    if (!dice.entropy(this.#malice)) {
      this.#emit(text, dice.entropy(0.02) ? dice.below(5_000) : 0)
      return
    }
    const trick = dice.below(12)
    if (trick === 0) return
    if (trick === 1) return void this.#later(() => this.destroy(new Error('read ECONNRESET')))
    if (trick === 2) return void this.#later(() => this.emit('end'))
    if (trick === 3) this.#emit(flipped(text, dice), 0)
    else if (trick === 4) this.#emit(text + dice.one(EXTRA), 0)
    else if (trick === 5) this.#emit(dice.one(EXTRA) + text, 0)
    else if (trick === 6) this.#emit(text, dice.below(90_000))
    else if (trick === 7) this.#emit(text.slice(0, dice.below(text.length)), 0)
    else if (trick === 8) {
      this.#emit(text, 0)
      this.#emit(dice.one(EXTRA), dice.below(3) * 100)
    } else if (trick === 9) {
      this.#emit(text, 0)
      this.#later(() => this.emit('end'))
    } else if (trick === 10) this.#emit(dice.one(FLOODS), 0)
    else for (const byte of flipped(text, dice)) this.#emit(byte, 0)
  }

  #emit(text: string, delayMs: number): void {
    const give = () => {
      if (this.destroyed || text === '') return
      this.said.push({ text, heard: this.lines.length, tls: false })
      this.emit('data', Buffer.from(text, 'latin1'))
    }
    if (delayMs === 0) this.#later(give)
    else this.#clock.after(delayMs, give)
  }

  /** Runs after the current event has finished. */
  #later(act: () => void): void {
    queueMicrotask(() => queueMicrotask(act))
  }
}

function flipped(text: string, dice: Dice): string {
  const bytes = Buffer.from(text, 'latin1')
  for (let flips = 1 + dice.below(3); flips > 0 && bytes.length > 0; flips--) {
    const at = dice.below(bytes.length)
    bytes[at] = (bytes[at] ?? 0) ^ (1 << dice.below(8))
  }
  return bytes.toString('latin1')
}

type Texts = readonly [string, ...string[]]
const RCPT_REPLIES: Texts = [
  '250 2.1.5 Ok\r\n',
  '250 2.1.5 Ok\r\n',
  '250 2.1.5 Ok\r\n',
  '252 2.1.5 Cannot verify\r\n',
  '550 5.1.1 No such user\r\n',
  '550-5.1.1 No such user\r\n550 5.1.1 here\r\n',
  '450 4.2.0 Greylisted, try again in 300 seconds\r\n',
  '452 4.5.3 Too many recipients\r\n',
  '421 4.7.0 You talk too fast\r\n',
  '450 4.7.1 Throttled, slow down\r\n',
  '530 5.7.0 Must issue a STARTTLS command first\r\n',
  '554 5.7.1 Your address is listed by a blocklist\r\n',
  '553 5.6.7 not ASCII\r\n',
  '550 5.7.133 Sender not authenticated for group\r\n',
  '503 5.5.1 Bad sequence\r\n',
]
const EXTRA: Texts = [
  '250 2.1.5 Ok\r\n',
  '250-a\r\n',
  '250 2.1.5 Ok\r\n250 2.1.5 Ok\r\n',
  '421 bye\r\n',
  '\r\n',
  '2',
  '550 No\r\n',
]
const NONSENSE: Texts = [
  '2500 ok\r\n',
  '25\r\n',
  '250',
  '250-a\r\n550 b\r\n',
  '\0\0\r\n',
  'HTTP/1.1 200 OK\r\n',
  '\xff\xfe\r\n',
  '250_ok\r\n',
  '650 ok\r\n',
  '\r\n\r\n',
]
const TEXTS: Texts = [
  'Ok',
  '5.1.1 No such user',
  '4.7.1 later',
  '',
  '\x1b[31m',
  '#5.1.1 x',
  '\xc3\xa0',
  'RCPT TO:<x>',
  '<script>',
]
const FLOODS: Texts = [
  '250-x\r\n'.repeat(200),
  'x'.repeat(3_000),
  `250 ${'x'.repeat(2_044)}\r\n`.repeat(40),
]
