import type { Duplex } from 'node:stream'
import type { EgressConfig } from '../../src/config/file-settings.ts'
import { REFERENCE_MX_HOSTS } from '../../src/engine/probe/outbound-reachability.ts'
import type { Dial, Target } from '../../src/engine/smtp/dial.ts'
import { type Clock, MINUTE } from '../../src/platform/clock.ts'
import { mail } from '../support/engine.ts'
import { HANG_UP, type MxSays, type MxSession, refused, scriptedMx } from '../support/mx.ts'
import { isRandomRecipient, recipientOf } from '../support/recipients.ts'
import type { ZoneEntry } from '../support/zone.ts'
import { Dice } from './probe/hostile-server.ts'

/** How an operator treats an egress for some minutes. */
const MOODS = [
  ...(['content', 'content', 'content', 'content'] as const),
  ...(['blocks', 'blocks-some', 'greylists', 'greylists', 'throttles'] as const),
  ...(['rejects-dials', 'swallows-dials', 'hangs-up', 'has-enough', 'is-slow'] as const),
] as const

type Mood = (typeof MOODS)[number]

const MOOD_MS = 3 * MINUTE
const WELL_KNOWN = '192.0.2.250'
const GREYLIST_MS = 5 * MINUTE
/**
 * Maximum number of replies to one egress about one address of a list: three attempts, and again after
 * a block has moved the address to another egress and back.
 */
export const TRIES_MAX = 6
/**
 * Maximum number of replies about the random recipient of a domain: four attempts for each of two
 * batches.
 */
export const RANDOM_TRIES_MAX = 8

const OPERATORS_MAX = 4
const USERS_MAX = 45

/**
 * A few operators that change their policy for each of two or three egresses every few minutes, all
 * from one seed. Their answer about a mailbox never changes: `nobody…` is unknown, `busy…` always
 * fails temporarily, and `user…` exists.
 */
export function unreliableScenario(seed: number, clock: () => Clock) {
  const dice = new Dice(seed)
  const egresses = ['a', 'b', 'c'].slice(0, 2 + dice.below(2)).map(name => ({ name }))
  const domains = Array.from({ length: 1 + dice.below(OPERATORS_MAX) }, (_, n) => `d${n}.test`)
  const texts = domains.flatMap(domain =>
    Array.from({ length: 1 + dice.below(USERS_MAX) }, (_, n) => `${localOf(dice, n)}@${domain}`),
  )
  const sessionsMax = 1 + dice.below(3)
  const ledger = new Ledger()
  const zone: Record<string, ZoneEntry> = {}
  for (const host of REFERENCE_MX_HOSTS) zone[host] = { A: [WELL_KNOWN] }
  for (const [n, domain] of domains.entries()) Object.assign(zone, mail(domain, `192.0.2.${n + 1}`))
  return {
    texts,
    zone,
    egresses,
    sessionsMax,
    ledger,
    /** The allowed results of an address: the truth, or unknown. */
    classes: (text: string) => ['unknown', ...(CLASSES[text.replace(/\d.*/, '')] ?? [])],
    flags: {
      sessionsPerOperator: String(sessionsMax),
      recipientsPerSession: String(2 + dice.below(20)),
      sessionsPerSecond: dice.one(['1', '1000']),
    },
    dial: ({ name }: EgressConfig): Dial =>
      dialOf(name, new Dice(seed ^ hash(name)), ledger, clock),
  }
}

/** A mailbox is risky if the catch-all probe had no result. */
const CLASSES: Record<string, readonly string[]> = {
  user: ['deliverable', 'risky'],
  nobody: ['undeliverable'],
}
const LOCALS = ['user', 'user', 'user', 'user', 'user', 'user', 'nobody', 'nobody', 'busy'] as const

const localOf = (dice: Dice, n: number) => `${dice.one(LOCALS)}${n}`

/** Statistics of the servers. */
export class Ledger {
  /** Maximum number of concurrent connections by egress and server, dials in flight included. */
  peak = 0
  readonly #open = new Map<string, number>()
  readonly #answers = new Map<string, number>()

  count(place: string, change: 1 | -1) {
    const open = (this.#open.get(place) ?? 0) + change
    this.#open.set(place, open)
    this.peak = Math.max(this.peak, open)
  }

  answered(egress: string, recipient: string, change: 1 | -1 = 1) {
    const key = `${egress} ${recipient}`
    this.#answers.set(key, (this.#answers.get(key) ?? 0) + change)
  }

  /** Maximum number of replies to one egress about one address of the list. */
  get mostAnswers(): number {
    return this.#most(recipient => !isRandomRecipient(recipient))
  }

  /** The same for the random recipients. */
  get mostRandomAnswers(): number {
    return this.#most(isRandomRecipient)
  }

  #most(counts: (recipient: string) => boolean): number {
    const answers = [...this.#answers].filter(([key]) => counts(key.split(' ')[1] ?? ''))
    return Math.max(0, ...answers.map(([, count]) => count))
  }

  get open(): number {
    return [...this.#open.values()].reduce((sum, open) => sum + open, 0)
  }
}

function dialOf(egress: string, dice: Dice, ledger: Ledger, clock: () => Clock): Dial {
  const moods = new Map<string, Mood>()
  const greylist = new Map<string, number>()
  const tired = new Set<MxSession>()
  /** Recipients of the current transaction that were answered. */
  const told = new Map<MxSession, readonly string[]>()
  const moodOf = (ip: string): Mood => {
    const key = `${ip} ${Math.floor(clock().monotonicNow() / MOOD_MS)}`
    const mood = moods.get(key) ?? dice.one(MOODS)
    moods.set(key, mood)
    return mood
  }
  const greylisted = (recipient: string) => {
    const firstAt = greylist.get(recipient) ?? clock().monotonicNow()
    greylist.set(recipient, firstAt)
    return clock().monotonicNow() - firstAt < GREYLIST_MS
  }
  const toRecipient = (recipient: string, mood: Mood, { lines }: MxSession): MxSays => {
    if (mood === 'greylists' && greylisted(recipient))
      return '450 4.2.0 Greylisted, try again in 300 seconds'
    if (mood === 'blocks-some' && dice.entropy(0.3)) return BLOCKED
    if (mood === 'throttles' && dice.entropy(0.3)) return '450 4.7.1 Too many messages, slow down'
    if (recipient.startsWith('busy')) return '450 4.2.0 Mailbox busy, try again later'
    if (mood === 'hangs-up' && dice.entropy(0.2)) return HANG_UP
    const taken = lines.filter(line => line.startsWith('RCPT')).length
    if (mood === 'has-enough' && taken > 3) return '452 4.5.3 Too many recipients'
    const isNobody = isRandomRecipient(recipient) || recipient.startsWith('nobody')
    return isNobody ? '550 5.1.1 No such user' : '250 2.1.5 Ok'
  }
  const mx = scriptedMx({
    greeting: ({ to }) => (moodOf(to.ip) === 'blocks' ? BLOCKED : undefined),
    answer: async (line, session) => {
      const mood = moodOf(session.to.ip)
      if (mood === 'is-slow') await new Promise<void>(go => clock().after(900, go))
      if (line.startsWith('MAIL') && mood === 'throttles' && dice.entropy(0.2)) {
        tired.add(session)
        return '421 4.7.0 Try again later'
      }
      if (line.startsWith('MAIL')) told.delete(session)
      const recipient = recipientOf(line)
      if (recipient === '') return undefined
      if (tired.has(session)) return HANG_UP
      const says = toRecipient(recipient, mood, session)
      if (says === HANG_UP) {
        tired.add(session)
        // Replies in a transaction that the server breaks off are not trusted, and are retried.
        for (const one of told.get(session) ?? []) ledger.answered(egress, one, -1)
      } else if (!String(says).startsWith('452')) {
        ledger.answered(egress, recipient)
        told.set(session, [...(told.get(session) ?? []), recipient])
      }
      return says
    },
  })
  // Some egresses cannot connect at first.
  const openAtMs = dice.entropy(0.3) ? dice.below(2 * MINUTE) : 0
  const connect = async (to: Target, signal: AbortSignal): Promise<Duplex> => {
    if (clock().monotonicNow() < openAtMs) throw refused(to)
    const mood = moodOf(to.ip)
    if (mood === 'rejects-dials') throw refused(to)
    if (mood === 'swallows-dials') await untilAborted(signal)
    return mx.connect(to, signal)
  }
  return {
    secure: mx.secure,
    async connect(to, signal) {
      if (to.ip === WELL_KNOWN) return connect(to, signal)
      const place = `${egress} ${to.ip}`
      ledger.count(place, 1)
      try {
        const socket = await connect(to, signal)
        socket.once('close', () => ledger.count(place, -1))
        return socket
      } catch (error) {
        ledger.count(place, -1)
        throw error
      }
    },
  }
}

const BLOCKED = '554 5.7.1 Service unavailable; Client host blocked using bl.example'

const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    const giveUp = () => reject(new Error('ETIMEDOUT'))
    if (signal.aborted) return giveUp()
    signal.addEventListener('abort', giveUp, { once: true })
  })

const hash = (text: string) =>
  [...text].reduce((sum, char) => sum * 31 + char.charCodeAt(0), 7) * 7919
