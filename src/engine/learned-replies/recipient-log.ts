import type { Learned, RecipientOutcome } from '../smtp/classify-reply.ts'
import type { LearnedReplies, Server } from './learned-replies.ts'
import { type Refusal, type ReplyPattern, toRefusal } from './reply-pattern.ts'

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

/** A reply to RCPT, in the order of the commands. */
type Entry = {
  readonly recipient: string
  /** The transaction that it belongs to. */
  readonly transaction: number
  /** Whether no other recipient came before it in its transaction. */
  readonly isFirst: boolean
  readonly isRandom: boolean
  readonly isAccepted: boolean
  /** Deferred, which may be a limit. */
  readonly isDeferred: boolean
  readonly refusal: Refusal | null
}

/** The replies to RCPT of one connection, and what they show about each other. */
export class RecipientLog {
  readonly isShown: boolean
  readonly #learned: LearnedReplies
  readonly #server: Server
  readonly #byDomain = new Map<string, Entry[]>()
  /** Whether earlier proofs decide about the recipients of a domain without an acceptance here. */
  readonly #decided = new Map<string, boolean>()
  readonly #refusedDomains = new Set<string>()
  /** Recipients that were rejected since the last acceptance, of any domain. */
  #rejectedInARow: string[] = []
  /** Recipients whose rejection proves nothing, because the server rejected everyone. */
  readonly #disproved = new Set<string>()
  /** Recipients that are asked again, because the server may have rejected everyone. */
  readonly #doubted = new Set<string>()
  #transaction = 0
  /** Replies in the current transaction. */
  #count = 0

  /**
   * `isShown`: a user sees the dialogue, so no recipient of earlier sessions is asked, which another
   * user may have verified.
   */
  constructor(learned: LearnedReplies, server: Server, isShown: boolean) {
    this.#learned = learned
    this.#server = server
    this.isShown = isShown
  }

  /** The number of the current transaction. */
  get transaction(): number {
    return this.#transaction
  }

  /** Call it before the first recipient of each transaction. */
  startTransaction(): void {
    this.#transaction++
    this.#count = 0
  }

  /**
   * Records a reply. A random recipient may belong to an earlier transaction. Returns true if the
   * recipient was accepted and can be asked again to see whether the server still accepts anyone.
   */
  add(
    domain: string,
    recipient: string,
    answer: RecipientOutcome,
    { isRandom = false, transaction = this.#transaction } = {},
  ): boolean {
    const isAccepted = answer.kind === 'accepted' && answer.why === 'recipient'
    const refusal = toRefusal(answer, recipient)
    const isDeferred = answer.kind === 'deferred' && refusal === null
    const isCurrent = transaction === this.#transaction
    const isFirst = isCurrent && this.#count === 0
    if (isCurrent) this.#count++
    if (refusal !== null) this.#refusedDomains.add(domain)
    if (answer.kind === 'accepted') this.#rejectedInARow = []
    else if (answer.kind === 'rejected' && !isRandom) this.#rejectedInARow.push(recipient)
    const entry = { recipient, transaction, isFirst, isRandom, isAccepted, isDeferred, refusal }
    const entries = this.#byDomain.get(domain)
    if (entries === undefined) this.#byDomain.set(domain, [entry])
    else entries.push(entry)
    return isWitness(entry)
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
   * Returns a recipient that a domain accepted before, if unknown refusals of the current
   * transaction are its last replies: the reply to it now shows whether a block has begun, or a limit
   * of recipients.
   */
  findWitness(domain: string): string | null {
    if (!this.#refusedDomains.has(domain)) return null
    const entries = this.#byDomain.get(domain) ?? []
    const isOpen = entries.some(
      (entry, index) => entry.transaction === this.#transaction && isOpenRefusal(entries, index),
    )
    return isOpen ? this.#findAccepted(domain, entries) : null
  }

  /**
   * Returns a recipient that was accepted before, of each domain with unknown refusals that were the
   * first replies of a transaction.
   */
  findWitnesses(): { readonly domain: string; readonly accepted: string }[] {
    return [...this.#refusedDomains].flatMap(domain => {
      const entries = this.#byDomain.get(domain) ?? []
      const isOpen = entries.some(({ isFirst }, index) => isFirst && isOpenRefusal(entries, index))
      const accepted = isOpen ? this.#findAccepted(domain, entries) : null
      return accepted === null ? [] : [{ domain, accepted }]
    })
  }

  #findAccepted(domain: string, entries: readonly Entry[]): string | null {
    const own = entries.findLast(isWitness)?.recipient
    return own ?? this.findEarlier(domain, new Set(entries.map(one => one.recipient)))
  }

  /** Returns a recipient that an earlier session accepted, other than these; else null. */
  findEarlier(domain: string, others: ReadonlySet<string>): string | null {
    return this.isShown ? null : this.#learned.witness(domain, others)
  }

  /** Whether any recipient got a refusal that no rule knows. */
  get hasRefusals(): boolean {
    return this.#refusedDomains.size > 0
  }

  /** Whether the domain accepted a recipient that shows that it accepts others. */
  hasAccepted(domain: string): boolean {
    return this.#byDomain.get(domain)?.some(isWitness) ?? false
  }

  /** Whether any recipient of a domain got a refusal that no rule knows. */
  hasRefusalsAt(domain: string): boolean {
    return this.#refusedDomains.has(domain)
  }

  /** The domains with refusals that earlier proofs do not explain. */
  unexplainedDomains(): string[] {
    return [...this.#refusedDomains].filter(domain =>
      this.#byDomain
        .get(domain)
        ?.some(({ refusal }) => refusal !== null && this.#find(domain, refusal) === null),
    )
  }

  /** Whether a recipient of the domain has a reply. */
  has(domain: string): boolean {
    return this.#byDomain.has(domain)
  }

  /** How many recipients were rejected since the last acceptance. */
  get rejectedInARow(): number {
    return this.#rejectedInARow.length
  }

  /** Records that the server rejects a recipient that it accepted: the last rejections prove nothing. */
  onWitnessRejected(): void {
    for (const recipient of this.#rejectedInARow) this.#disproved.add(recipient)
  }

  /** Records that the last rejections of the connection could not be checked. */
  doubtRejections(): void {
    for (const recipient of this.#rejectedInARow) this.#doubted.add(recipient)
  }

  /** Whether a recipient must be asked again. */
  isInDoubt(recipient: string): boolean {
    return this.#doubted.has(recipient)
  }

  /** Learns from the replies. Call it once they are known to match their commands. */
  conclude(): void {
    for (const [domain, entries] of this.#byDomain) {
      const isUnclear = this.#refusedDomains.has(domain)
      if (isUnclear || this.#learned.hasRecent(domain)) this.#record(domain, entries)
      if (!isUnclear) continue
      for (const [index, { isRandom, refusal }] of entries.entries()) {
        const isProof = isRandom && refusal !== null && isFollowed(entries, index)
        if (isProof) this.#learned.prove(this.#server, domain, refusal.pattern)
      }
    }
  }

  /** Records the replies, and refutes texts given to recipients that are accepted too. */
  #record(domain: string, entries: readonly Entry[]) {
    for (const entry of entries) {
      const { recipient, isRandom, isAccepted, refusal } = entry
      let refuted: ReplyPattern | null = null
      if (isWitness(entry) || (isRandom && isAccepted))
        refuted = this.#learned.onAccepted(domain, recipient, isRandom)
      else if (refusal !== null)
        refuted = this.#learned.onRefused(domain, recipient, refusal.pattern, isRandom)
      if (refuted !== null) this.#learned.refute(this.#server, domain, refuted)
    }
  }

  /**
   * Whether earlier proofs decide about the refusals of a domain that accepted no one here. Counts
   * them if so.
   */
  #mayDecideAlone(domain: string, entries: readonly Entry[]): boolean {
    const decided = this.#decided.get(domain)
    if (decided !== undefined) return decided
    const known = entries.filter(
      ({ isRandom, refusal }) => !isRandom && refusal !== null && this.#find(domain, refusal),
    )
    const isUnclear = entries.some(({ isAccepted, isDeferred }) => isAccepted || isDeferred)
    const mayDecide = !isUnclear && this.#learned.mayDecide(domain, known.length)
    if (mayDecide) this.#learned.onDecided(domain, known.length)
    this.#decided.set(domain, mayDecide)
    return mayDecide
  }

  /** Returns the final outcome of a recipient. */
  decide(domain: string, recipient: string, answer: RecipientOutcome): RecipientOutcome {
    if (answer.kind === 'rejected' && this.#disproved.has(recipient)) return toDeferred(answer)
    if (!this.#refusedDomains.has(domain)) return answer
    const entries = this.#byDomain.get(domain) ?? []
    const index = entries.findLastIndex(one => !one.isRandom && one.recipient === recipient)
    const refusal = entries[index]?.refusal ?? null
    const learned = refusal === null ? null : this.#find(domain, refusal)
    if (learned === null) return answer
    const isSure = isFollowed(entries, index)
      ? this.#learned.acceptsEnough(domain)
      : this.#mayDecideAlone(domain, entries)
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

/** The server rejects everyone for a time, as some do after too many unknown recipients. */
function toDeferred({ stage, reply }: Extract<RecipientOutcome, { kind: 'rejected' }>) {
  return { kind: 'deferred', why: 'rate', retryAfterMs: null, stage, reply } as const
}

function toRejected(answer: RecipientOutcome, learned: Learned): RecipientOutcome {
  if (!('reply' in answer)) return answer
  const { stage, reply } = answer
  return { kind: 'rejected', why: 'no-mailbox', stage, reply, learned }
}

/** Whether the acceptance shows that the server accepts others, and can be asked for again. */
const isWitness = ({ isRandom, isAccepted, recipient }: Entry) =>
  isAccepted &&
  !isRandom &&
  // Others need SMTPUTF8 (RFC 6531).
  ASCII.test(recipient) &&
  !EXEMPT.has(recipient.slice(0, recipient.lastIndexOf('@')).toLowerCase())

const ASCII = /^[\0-\x7f]*$/

/**
 * Whether a recipient of the domain was accepted later: in the same transaction, which may have a
 * limit of recipients, unless this one was the first in its transaction.
 */
function isFollowed(entries: readonly Entry[], index: number): boolean {
  const entry = entries[index]
  if (entry === undefined) return false
  return entries
    .slice(index + 1)
    .some(later => isWitness(later) && (entry.isFirst || later.transaction === entry.transaction))
}

const isOpenRefusal = (entries: readonly Entry[], index: number) =>
  entries[index]?.refusal != null && !isFollowed(entries, index)
