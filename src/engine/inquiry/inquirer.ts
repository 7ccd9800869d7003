import { addressKey } from '../../address/address.ts'
import type { Clock } from '../../base/clock.ts'
import { EvError, messageOf } from '../../base/error.ts'
import type { Log } from '../../base/log.ts'
import type { Operator } from '../../dns/operator.ts'
import type { Fleet } from '../../probe/egress/fleet.ts'
import type { Probed, ProbeOptions } from '../../probe/lane/lane.ts'
import type { ProbeListener } from '../../probe/lane/listener.ts'
import { weight } from '../../probe/lane/open-session.ts'
import { silent } from '../../probe/lane/outcome.ts'
import type { Prober } from '../../probe/probe.ts'
import type { Result } from '../../verdict/verdict.ts'
import { limited } from '../limit.ts'
import { memorable, type Remembered } from '../memory.ts'
import type { Recaller } from '../recall.ts'
import {
  resultOfAcceptance,
  resultOfFailure,
  resultOfMemory,
  resultOfProbe,
} from '../result/conclude.ts'
import { insteadOf } from './again.ts'
import { asksNext, type Exchangers } from './exchangers.ts'
import type { Inquiry } from './prepare.ts'
import { firstTurn, questionOf, type Turn } from './turns.ts'

export type InquirerWorld = {
  readonly fleet: Fleet
  readonly memory: Recaller
  readonly clock: Clock
  readonly log: Log
  /** For one verification that somebody waits for, in ms. */
  readonly deadlineMs: number
  /** Ends every conversation at once. */
  readonly closing: AbortSignal
}

export type ProbeListOptions = {
  /** The name of the egress that asks; when left out, the one of ours that should ask this operator. */
  readonly egress?: string
  /** Ends every conversation at once. */
  readonly signal: AbortSignal
  /** Lets the transaction under way end, says QUIT and asks nobody else. */
  readonly drain?: AbortSignal
  readonly dialogue?: boolean
  readonly patienceMs?: number
  /** Somebody waits: no connection waits for a place among those of lists. */
  readonly urgent?: boolean
  /** Called once for each inquiry; `asked` is false when no server was asked this time. */
  readonly onResult: (inquiry: Inquiry, result: Result, asked: boolean) => void
  /**
   * Called in place of `onResult` where many connections to the same mail server wait for their turn: the
   * inquiry is to be made again in `delayMs`. Left out: it waits here for its turn.
   */
  readonly onTurnLater?: (inquiry: Inquiry, delayMs: number) => void
}

/** A pause shorter than this is waited out by a list; a longer one is handed back. */
const LIST_PATIENCE_MS = 2_000
/** What is kept of a deadline for those who hear of it to say what they know. */
const LAST_WORDS_MS = 20

/** Takes inquiries to the mail servers and brings back results, and has definite answers remembered. */
export class Inquirer {
  readonly #world: InquirerWorld
  /** Conversations under way, to their farewell. */
  readonly #runs = new Set<Promise<void>>()

  constructor(world: InquirerWorld) {
    this.#world = world
  }

  /**
   * Asks about one address that somebody waits for; where the operator refuses one egress,
   * another asks in the time that is left. The result is there with the reply to QUIT; closing the
   * connection goes on behind it. Never rejects.
   */
  one(
    inquiry: Inquiry,
    options: { dialogue: boolean; listener: ProbeListener | null },
  ): Promise<Result> {
    const { deadlineMs, clock, closing } = this.#world
    // What the DNS took is part of the time that the caller waits.
    const leftMs = deadlineMs - LAST_WORDS_MS - (clock.ticks() - inquiry.begunAt)
    const { signal, done } = limited(clock, leftMs, [closing])
    return new Promise<Result>(resolve => {
      let isOver = false
      const tell = (result: () => Result) => {
        if (!isOver) resolve(result())
        isOver = true
      }
      const told = (probed: Probed) => tell(() => resultOfProbe(clock, inquiry, probed))
      // A failure of which the caller no longer hears is none to complain of.
      const failed = (error: unknown) => tell(() => this.#failed(inquiry, error))
      // Who does not hear the signal is not waited for.
      onAbort(signal, () => clock.after(LAST_WORDS_MS, () => told(this.#outOfTime(inquiry))))
      const run = this.#askAround(inquiry, {
        signal,
        drain: signal,
        single: true,
        patienceMs: leftMs,
        dialogue: options.dialogue,
        // Nothing is told after the answer.
        listener: options.listener && hearsUnless(() => isOver, options.listener),
        onProbed: (_, probed) => {
          told(probed)
          // Only closing is left: it is short, and neither the deadline nor `close` cuts it off.
          done()
        },
      })
      this.#follow(run)
        .then(() => failed(NO_ANSWER), failed)
        .finally(done)
    })
  }

  /** Asks one operator about addresses, with one connection at a time; each gets its one result. */
  async many(
    operator: Operator,
    inquiries: readonly Inquiry[],
    options: ProbeListOptions,
  ): Promise<void> {
    const { clock, closing, fleet } = this.#world
    const prober = fleet.prober(options.egress ?? fleet.own.firstFor(operator.name))
    const unanswered = new Set(inquiries)
    const { onTurnLater } = options
    const later = onTurnLater && {
      onTurnLater: (inquiry: Inquiry, delayMs: number) => {
        unanswered.delete(inquiry)
        onTurnLater(inquiry, delayMs)
      },
    }
    const { signal, done } = limited(clock, null, [options.signal, closing])
    let failure: unknown = NO_ANSWER
    try {
      const run = this.#probe(prober, inquiries, {
        signal,
        drain: options.drain ?? signal,
        single: false,
        urgent: options.urgent ?? false,
        patienceMs: options.patienceMs ?? LIST_PATIENCE_MS,
        dialogue: options.dialogue ?? false,
        ...later,
        onProbed: (inquiry, probed) => {
          unanswered.delete(inquiry)
          options.onResult(inquiry, this.#orOlder(inquiry, probed), probed.asked)
        },
      })
      await this.#follow(run)
    } catch (error) {
      failure = error
    } finally {
      done()
    }
    for (const inquiry of unanswered)
      options.onResult(inquiry, this.#failed(inquiry, failure), true)
  }

  /** When nobody will ask any more: resolves when every conversation under way has come to its end. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#runs)
    await this.#world.fleet.close()
  }

  #follow(run: Promise<void>): Promise<void> {
    this.#runs.add(run)
    const over = () => void this.#runs.delete(run)
    run.then(over, over)
    return run
  }

  /** Asks by one egress after another, until one of them is not turned away or there is none left. */
  async #askAround(inquiry: Inquiry, options: ProbeOptions<Inquiry>): Promise<void> {
    const fleet = this.#world.fleet.own
    const { operator } = inquiry
    const willing = () => (options.signal.aborted ? [] : fleet.willing(operator.name))
    const turnedAway: string[] = []
    let refusal: Probed | null = null
    let next: string | null = fleet.firstFor(operator.name)
    while (next !== null) {
      const prober = fleet.prober(next)
      next = null
      const onProbed = (_: Inquiry, probed: Probed) => {
        const heard: Probed = refusal === null ? probed : after(refusal, probed)
        turnedAway.push(prober.egressName)
        next = insteadOf(turnedAway, probed.answer, willing)
        if (next === null) options.onProbed(inquiry, heard)
        else refusal = heard
      }
      await this.#probe(prober, [inquiry], { ...options, onProbed })
    }
  }

  async #probe(
    prober: Prober,
    inquiries: readonly Inquiry[],
    options: ProbeOptions<Inquiry>,
  ): Promise<void> {
    const { memory, clock } = this.#world
    const definite = new Map<string, Remembered>()
    const onProbed = (inquiry: Inquiry, probed: Probed) => {
      const worth = memorable(probed, inquiry.accepted?.at ?? clock.now())
      if (worth !== null) definite.set(addressKey(inquiry.address), worth)
      // Who asks for one address may ask again before the farewell is over; a list remembers in one go.
      if (options.single) void memory.remember(definite)
      options.onProbed(inquiry, probed)
    }
    try {
      await this.#askInOrder(prober, inquiries.map(firstTurn), { ...options, onProbed })
    } finally {
      if (!options.single) await memory.remember(definite)
    }
  }

  /** Asks the exchangers of one operator and, for whom nobody there speaks with us, those of the next. */
  async #askInOrder(
    prober: Prober,
    turns: readonly Turn[],
    options: ProbeOptions<Inquiry>,
  ): Promise<void> {
    const { signal, drain } = options
    for (const together of Map.groupBy(turns, ({ at }) => at.operator.name).values()) {
      const [{ at }] = together as [Turn, ...Turn[]]
      const byQuestion = new Map(together.map(turn => [questionOf(turn), turn]))
      const next: Turn[] = []
      const onProbed = (question: Inquiry, probed: Probed) => {
        const turn = byQuestion.get(question) as Turn
        const heard = turn.before === null ? probed : after(turn.before, probed)
        const [backup, ...others] = turn.left
        const isOver = signal.aborted || drain.aborted || backup === undefined
        if (isOver || !asksNext(probed.answer) || this.#asksElsewhere(prober, at, probed)) {
          options.onProbed(turn.inquiry, heard)
        } else next.push({ inquiry: turn.inquiry, at: backup, left: others, before: heard })
      }
      await prober.probe(at.operator, [...byQuestion.keys()], { ...options, onProbed })
      if (next.length > 0) await this.#askInOrder(prober, next, options)
    }
  }

  /** Another egress may ask these exchangers, which know better than a backup who has a mailbox. */
  #asksElsewhere(prober: Prober, { operator }: Exchangers, { answer }: Probed): boolean {
    const willing = () => this.#world.fleet.own.willing(operator.name)
    return answer.kind === 'refused-us' && insteadOf([prober.egressName], answer, willing) !== null
  }

  /** A temporary failure never takes the place of a definite answer that is still kept. */
  #orOlder(inquiry: Inquiry, probed: Probed): Result {
    const { clock } = this.#world
    const result = resultOfProbe(clock, inquiry, probed)
    if (inquiry.accepted !== null) return { ...result, checkedAt: inquiry.accepted.at }
    if (inquiry.remembered === null || result.verdict.risk !== 'unknown') return result
    return resultOfMemory(clock, inquiry, inquiry.remembered)
  }

  #outOfTime({ operator, catchAll }: Inquiry): Probed {
    const egress = this.#world.fleet.own.firstFor(operator.name)
    return { ...OUT_OF_TIME, catchAll, egress }
  }

  /** A fault of ours is a result too: it says nothing of the address, and ends nobody else's work. */
  #failed(inquiry: Inquiry, error: unknown): Result {
    const { clock, log } = this.#world
    log.error('a verification failed inside ev', { error: messageOf(error) })
    const { accepted } = inquiry
    return accepted === null
      ? resultOfFailure(clock, inquiry, error)
      : resultOfAcceptance(clock, inquiry, accepted)
  }
}

const NO_ANSWER = new EvError('internal', 'A conversation ended without an answer.')

const OUT_OF_TIME = {
  answer: silent('timeout', 'connect', 'time ran out'),
  host: null,
  ip: null,
  tls: false,
  connectMs: null,
  asked: true,
  dialogue: null,
}

/**
 * What is known after a refusal and what came next. What is said to MAIL and RCPT decides; of two that
 * did not come so far, the one that leaves more open.
 */
function after(refusal: Probed, probed: Probed): Probed {
  const isHeard = probed.answer.kind !== 'silent' && !asksNext(probed.answer)
  const isLess = !isHeard && weight(probed.answer) < weight(refusal.answer)
  const heard = isLess ? refusal : probed
  const both = [...(refusal.dialogue ?? []), ...(probed.dialogue ?? [])]
  return { ...heard, dialogue: probed.dialogue === null ? refusal.dialogue : both }
}

const hearsUnless = (isOver: () => boolean, { onCall, onLine }: ProbeListener): ProbeListener => ({
  onCall: call => void (isOver() || onCall(call)),
  onLine: line => void (isOver() || onLine(line)),
})

function onAbort(signal: AbortSignal, callback: () => void) {
  if (signal.aborted) callback()
  else signal.addEventListener('abort', callback, { once: true })
}
