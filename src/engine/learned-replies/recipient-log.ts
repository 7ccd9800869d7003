import type { Learned, RecipientOutcome } from '../smtp/classify-reply.ts'
import type { LearnedReplies, Server } from './learned-replies.ts'
import { type Refusal, toRefusal } from './reply-pattern.ts'

/**
 * Names that servers accept from everyone, blocked clients included (RFC 5321 §4.5.1, RFC 2142):
 * their acceptance does not show that the server accepts others.
 */
const EXEMPT = new Set([
  'postmaster',
  'abuse',
  'hostmaster',
  'webmaster',
  'security',
  'noc',
  'spam',
])

/**
 * Recipients that a session may refuse for each one that it accepts. Lists of guessed names have up
 * to ten guesses for one person; a server that refuses more may accept a single exempt recipient.
 */
const REFUSED_PER_ACCEPTED_MAX = 10

/** A reply to RCPT, in the order of the commands. */
type Entry = {
  readonly recipient: string
  readonly isRandom: boolean
  readonly isAccepted: boolean
  readonly refusal: Refusal | null
}

/** The replies to RCPT of one connection, and what they show about each other. */
export class RecipientLog {
  readonly #learned: LearnedReplies
  readonly #server: Server
  readonly #byDomain = new Map<string, Entry[]>()
  /** Domains without an acceptance here about whose recipients earlier proofs decide. */
  readonly #decided = new Set<string>()

  constructor(learned: LearnedReplies, server: Server) {
    this.#learned = learned
    this.#server = server
  }

  add(domain: string, recipient: string, answer: RecipientOutcome, isRandom = false): void {
    const isAccepted = answer.kind === 'accepted' && answer.why === 'recipient'
    const entry = { recipient, isRandom, isAccepted, refusal: toRefusal(answer, recipient) }
    const entries = this.#byDomain.get(domain)
    if (entries === undefined) this.#byDomain.set(domain, [entry])
    else entries.push(entry)
  }

  /**
   * Returns the outcome that earlier proofs give to a refusal. It is provisional: the later replies
   * may show that a block has begun.
   */
  explain(domain: string, recipient: string, answer: RecipientOutcome): RecipientOutcome {
    const refusal = toRefusal(answer, recipient)
    const learned = refusal === null ? null : this.#find(domain, refusal)
    if (learned === null || !this.#learned.mayDecide(domain, 1)) return answer
    return toRejected(answer, learned)
  }

  /**
   * The domains whose last replies are unknown refusals, each with a recipient that was accepted
   * before. Its reply to the same recipient shows whether a block has begun.
   */
  *openDomains(): Iterable<{ readonly domain: string; readonly accepted: string }> {
    for (const [domain, entries] of this.#byDomain) {
      const accepted = entries.findLast(isWitness)
      if (accepted !== undefined && isOpenEnd(entries))
        yield { domain, accepted: accepted.recipient }
    }
  }

  /** Whether the last replies of any domain are unknown refusals. */
  get isOpen(): boolean {
    return [...this.#byDomain.values()].some(isOpenEnd)
  }

  /** Learns from the replies. Call it once they are known to match their commands. */
  conclude(): void {
    for (const [domain, entries] of this.#byDomain) {
      const isUnclear = entries.some(({ refusal }) => refusal !== null)
      if (isUnclear || this.#learned.hasRecent(domain)) this.#compare(domain, entries)
      for (const [index, { isRandom, refusal }] of entries.entries()) {
        const isProof = isRandom && refusal !== null && isFollowed(entries, index)
        if (isProof) this.#learned.prove(this.#server, domain, refusal.pattern)
      }
      if (entries.some(isWitness)) this.#learned.onDecided(domain, 'accepted')
      else this.#decideWithoutAcceptance(domain, entries)
    }
  }

  /** Refutes texts that a recipient got which was accepted shortly before or after. */
  #compare(domain: string, entries: readonly Entry[]) {
    for (const { recipient, isAccepted, refusal } of entries) {
      if (!isAccepted && refusal === null) continue
      const refuted = this.#learned.compare(domain, recipient, refusal?.pattern ?? null)
      if (refuted !== null) this.#learned.refute(this.#server, domain, refuted)
    }
  }

  #decideWithoutAcceptance(domain: string, entries: readonly Entry[]) {
    const known = entries.filter(
      ({ isRandom, refusal }) => !isRandom && refusal !== null && this.#find(domain, refusal),
    )
    if (entries.some(({ isAccepted }) => isAccepted)) return
    if (!this.#learned.mayDecide(domain, known.length)) return
    this.#learned.onDecided(domain, known.length)
    this.#decided.add(domain)
  }

  /** Returns the final outcome of a recipient. */
  decide(domain: string, recipient: string, answer: RecipientOutcome): RecipientOutcome {
    const entries = this.#byDomain.get(domain) ?? []
    const index = entries.findLastIndex(one => !one.isRandom && one.recipient === recipient)
    const refusal = entries[index]?.refusal ?? null
    const learned = refusal === null ? null : this.#find(domain, refusal)
    if (learned === null) return answer
    const isSure = isFollowed(entries, index)
      ? hasEnoughAcceptances(entries)
      : this.#decided.has(domain)
    return isSure ? toRejected(answer, learned) : answer
  }

  /** Returns false if the text that the random recipient got is about the recipient; else null. */
  catchAll(domain: string): false | null {
    const entries = this.#byDomain.get(domain) ?? []
    const isKnown = ({ isRandom, refusal }: Entry) =>
      isRandom && refusal !== null && this.#find(domain, refusal) !== null
    return entries.some(isKnown) ? false : null
  }

  /**
   * Returns accepted recipients for a second look at a domain, if it may show what the refusals are
   * about; else null.
   */
  secondLook(domain: string): { readonly before: string; readonly after: string } | null {
    const entries = this.#byDomain.get(domain) ?? []
    const accepted = entries.filter(isWitness).map(one => one.recipient)
    const [before, after = before] = [accepted.at(0), accepted.at(-1)]
    if (before === undefined || after === undefined) return null
    const mayTell = ({ isRandom, refusal }: Entry) =>
      refusal !== null &&
      this.#find(domain, refusal) === null &&
      (isRandom || this.#learned.hasOwnTexts(domain))
    return entries.some(mayTell) ? { before, after } : null
  }

  /** Returns null for a domain that accepts its random recipient: it does not refuse the missing. */
  #find(domain: string, { pattern, isWeak }: Refusal): Learned | null {
    const entries = this.#byDomain.get(domain) ?? []
    if (entries.some(({ isRandom, isAccepted }) => isRandom && isAccepted)) return null
    return this.#learned.find(this.#server, domain, pattern, isWeak)
  }
}

function toRejected(answer: RecipientOutcome, learned: Learned): RecipientOutcome {
  if (!('reply' in answer)) return answer
  const { stage, reply } = answer
  return { kind: 'rejected', why: 'no-mailbox', stage, reply, learned }
}

const isWitness = ({ isRandom, isAccepted, recipient }: Entry) =>
  isAccepted &&
  !isRandom &&
  !EXEMPT.has(recipient.slice(0, recipient.lastIndexOf('@')).toLowerCase())

/** Whether another recipient of the domain was accepted later. */
const isFollowed = (entries: readonly Entry[], index: number) =>
  entries.slice(index + 1).some(isWitness)

function isOpenEnd(entries: readonly Entry[]): boolean {
  const lastAccepted = entries.findLastIndex(isWitness)
  return entries.some(({ refusal }, index) => index > lastAccepted && refusal !== null)
}

function hasEnoughAcceptances(entries: readonly Entry[]): boolean {
  const countOf = (some: readonly Entry[]) => new Set(some.map(one => one.recipient)).size
  const refused = entries.filter(({ isRandom, refusal }) => !isRandom && refusal !== null)
  return countOf(refused) <= REFUSED_PER_ACCEPTED_MAX * countOf(entries.filter(isWitness))
}
