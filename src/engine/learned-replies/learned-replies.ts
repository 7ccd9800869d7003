/**
 * Learns from sessions which texts a server gives to recipients that do not exist.
 *
 * The rules in `smtp/reply-rules` know many texts, but not those of each admin in each language. A
 * 5xx to RCPT that no rule knows counts as a block by policy. But each domain is asked for a random
 * recipient, which does not exist, and the reply to it shows the words of this server:
 *
 * 1. `RecipientLog` records the replies to RCPT of one connection. Nothing is concluded from it
 *    before the replies are known to match their commands.
 * 2. A text is *proven* if the random recipient got it and a recipient of the same domain was
 *    accepted after that in the same transaction: a block that had begun, or a limit that was
 *    reached, would refuse that one too. If the connection ends before that can be seen,
 *    `MxGroupProbe` takes a second look over a new one: an accepted recipient, the random one, an
 *    accepted one. A proof is kept here as a `LearnedReply`.
 * 3. A recipient that got a proven text does not exist if a recipient of its domain was accepted
 *    after it in the same transaction. `SmtpProbe` therefore ends a transaction with such refusals
 *    by an accepted recipient, one of this session or of an earlier one.
 * 4. If none was accepted on the connection, earlier proofs decide: of the same domain, else of
 *    `DOMAINS_MIN` domains of the same operator and software, else of `SOFTWARE_DOMAINS_MIN` domains
 *    of the same software at several operators and networks.
 *
 * A text is *refuted* if a recipient got it within a day of its acceptance: it is a block, a limit,
 * or greylisting with a 5xx. A refuted text decides nothing at its domain, nor for other domains of
 * its operator and software. Neither does a text that the operator said before RCPT.
 *
 * Never learned: 4xx, texts that a rule knows, texts without words, and long ones.
 */
import { type Clock, DAY, HOUR, MINUTE, SECOND, sleep } from '../../platform/clock.ts'
import { publicSuffixes } from '../../platform/domain-names.ts'
import { errorMessage } from '../../platform/error.ts'
import { withResolvers } from '../../platform/es2024.ts'
import { type Log, writeLog } from '../../platform/log.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import type { Learned } from '../smtp/classify-reply.ts'
import type { Reply } from '../smtp/reply.ts'
import { ENGINE_LOG } from '../telemetry.ts'
import { formsOf, type ReplyPattern, toPattern } from './reply-pattern.ts'

/** A text that the server of a domain gave to a random recipient. Plain data. */
export type LearnedReply = {
  readonly domain: string
  /** Code and masked text, such as `550 5.7.1 <> ei ole olemassa`. */
  readonly reply: string
  readonly operator: string
  /** The product that the greeting named; null if none. */
  readonly software: string | null
  /** The subnet of the server, such as `192.0.2.0/24`. */
  readonly subnet: string
  /** True if the server also gave it to a recipient that it accepted. */
  readonly isRefuted: boolean
  /** Epoch ms. */
  readonly at: number
}

/** Storage of learned replies: none by default, the database for lists and the service. */
export interface LearnedReplyStore {
  /** Returns the newest `REPLIES_MAX` at most, the oldest of them first. */
  load(): Promise<readonly LearnedReply[]>
  /** Adds one, or replaces that of the same domain and text. Never throws. */
  put(reply: LearnedReply): void
}

/** The server of a connection. */
export type Server = Pick<LearnedReply, 'operator' | 'software' | 'subnet'>

/**
 * Domains of one operator that prove a text for its other domains: two may belong to one customer,
 * who has changed the texts. They are registrable domains, so that subdomains count once.
 */
const DOMAINS_MIN = 3
/**
 * Domains that prove a text for the servers of other operators, whose admins may have changed the
 * texts.
 */
const SOFTWARE_DOMAINS_MIN = 5
/** One operator, or one network with many names, cannot teach a text to the servers of others. */
const SOFTWARE_OPERATORS_MIN = 3
/**
 * Recipients in a row that earlier proofs decide while none of their domain is accepted. More are
 * rarely all missing, and may be a block with the same text.
 */
const IN_A_ROW_MAX = 5
/**
 * Recipients of a domain that may be refused for each one that is accepted, within a day: a server
 * may accept one recipient from everyone, and refuse all others because it blocks the client.
 */
const REFUSED_PER_ACCEPTED_MAX = 5
/** How long they count as in a row: as long as a block counts. */
const IN_A_ROW_MS = 30 * MINUTE
/** How long an acceptance refutes a text, because mailboxes are rarely closed within a day. */
const RECENT_MS = DAY
/** Admins change their texts: older proofs do not count. */
export const REPLY_AGE_MAX_MS = 180 * DAY
/** About 400 bytes each, 4 MB. */
export const REPLIES_MAX = 10_000
/**
 * Texts of one registrable domain and its subdomains, so that a server with a new text for each
 * recipient does not displace those of others.
 */
const REPLIES_PER_OWNER_MAX = 20
/** How long a domain is not asked again after an attempt that proved nothing. */
const ASK_AGAIN_MS = HOUR
/** What other processes have learned is visible here after this time. */
const RELOAD_MS = MINUTE
/** A verification does not wait longer for what earlier ones have learned. */
const LOAD_TIMEOUT_MS = SECOND
const DOMAINS_MAX = 20_000
/** Recipients of one domain whose replies are compared with later ones. */
const RECIPIENTS_MAX = 50

/** RFC 3463 §3.8: x.7.z is about policy, so one domain says little about another. */
const POLICY_CODE = /^\d{3} 5\.7\./

type Deps = {
  readonly clock: Clock
  readonly log: Log
  readonly store: LearnedReplyStore | null
}

/** What recent sessions said to the recipients of a domain. */
type Recent = {
  readonly accepted: Set<string>
  /** The refusals, by recipient. */
  readonly refused: Map<string, ReplyPattern>
  /** The refusals of random recipients. */
  readonly refusedRandoms: Map<string, ReplyPattern>
  /** Loose texts with different numbers for random recipients, which are not error codes. */
  readonly numbered: Set<string>
}

/** The learned replies of an engine, for all its egresses. */
export class LearnedReplies {
  readonly #deps: Deps
  /** By text, then by domain. */
  readonly #byReply = new Map<string, Map<string, LearnedReply>>()
  /** By registrable domain, the oldest first. */
  readonly #byOwner = new Map<string, LearnedReply[]>()
  #size = 0
  readonly #recent: TtlMap<Recent>
  /** Recipients of a domain that earlier proofs decided since the last acceptance. */
  readonly #inARow: TtlMap<{ readonly count: number }>
  readonly #askedAgain: TtlMap<{ readonly ended: Promise<void> }>
  /** Texts, without their codes, that an operator said before RCPT. */
  readonly #beforeRcpt: TtlMap<object>
  #loading: Promise<void> | null = null
  #loadedAt = Number.NEGATIVE_INFINITY

  constructor(deps: Deps) {
    this.#deps = deps
    const map = { sizeMax: DOMAINS_MAX, clock: deps.clock }
    this.#recent = new TtlMap(map)
    this.#inARow = new TtlMap(map)
    this.#askedAgain = new TtlMap(map)
    this.#beforeRcpt = new TtlMap(map)
  }

  /**
   * Loads what was learned earlier, and what other processes have learned since. Wait for it before
   * the first reply; later it resolves at once. Never rejects. Null if there is no store.
   */
  load(): Promise<void> | null {
    const { store, clock } = this.#deps
    if (store === null) return null
    if (clock.monotonicNow() - this.#loadedAt < RELOAD_MS) return this.#loading
    this.#loadedAt = clock.monotonicNow()
    const loading = this.#loadFrom(store)
    this.#loading ??= Promise.race([loading, sleep(clock, LOAD_TIMEOUT_MS)])
    return this.#loading
  }

  async #loadFrom(store: LearnedReplyStore): Promise<void> {
    try {
      for (const learned of await store.load()) {
        const known = this.#byReply.get(learned.reply)?.get(learned.domain)
        // A refutation here may not be written yet.
        if (known === undefined || !known.isRefuted) this.#add(learned)
      }
    } catch (error) {
      writeLog(this.#deps.log, ENGINE_LOG.learnedRepliesNotRead, { error: errorMessage(error) })
    }
  }

  /** Returns from whom a text is known to be about the recipient; null if that is not known. */
  find(server: Server, domain: string, pattern: ReplyPattern, isWeak: boolean): Learned | null {
    if (this.#beforeRcpt.get(beforeRcptKey(server.operator, pattern)) !== undefined) return null
    const known = [...formsOf(pattern)].map(text => this.#judge(server, domain, text))
    if (known.includes('refuted')) return null
    // Words such as "denied" and codes of policy mean different things at different domains.
    const isGeneric = isWeak || POLICY_CODE.test(pattern.exact)
    const isUsable = (one: Learned) => one.scope === 'domain' || !isGeneric
    return (known as (Learned | null)[]).find(one => one !== null && isUsable(one)) ?? null
  }

  #judge(server: Server, domain: string, text: string): Learned | 'refuted' | null {
    const since = this.#deps.clock.now() - REPLY_AGE_MAX_MS
    const all = this.#byReply.get(text)
    const own = all?.get(domain)
    if (own !== undefined && own.at > since && own.operator === server.operator)
      return own.isRefuted ? 'refuted' : { scope: 'domain', domains: 1 }
    const ofSoftware = [...(all?.values() ?? [])].filter(
      ({ at, software }) => at > since && software === server.software,
    )
    const ofOperator = ofSoftware.filter(({ operator }) => operator === server.operator)
    if (ofOperator.some(({ isRefuted }) => isRefuted)) return null
    const domains = countOwners(ofOperator)
    if (domains >= DOMAINS_MIN) return { scope: 'operator', domains }
    if (server.software === null || ofSoftware.some(({ isRefuted }) => isRefuted)) return null
    const isIndependent =
      new Set(ofSoftware.map(({ operator }) => operator)).size >= SOFTWARE_OPERATORS_MIN &&
      new Set(ofSoftware.map(({ subnet }) => subnet)).size >= SOFTWARE_OPERATORS_MIN
    const others = countOwners(ofSoftware)
    if (!isIndependent || others < SOFTWARE_DOMAINS_MIN) return null
    return { scope: 'software', domains: others }
  }

  /** Whether the server of a domain is known to give texts that only earlier proofs explain. */
  hasOwnTexts(domain: string): boolean {
    if (this.#size === 0) return false
    return this.#byOwner.get(ownerOf(domain))?.some(one => one.domain === domain) ?? false
  }

  /** Records that the random recipient of a domain got a text, and a later recipient was accepted. */
  prove(server: Server, domain: string, pattern: ReplyPattern): void {
    const isNumbered = this.#recentOf(domain).numbered.has(pattern.loose)
    this.#learn(server, domain, isNumbered ? pattern.loose : pattern.exact, false)
  }

  /** Records that a text is not, or not only, about the recipient. */
  refute(server: Server, domain: string, pattern: ReplyPattern): void {
    for (const text of formsOf(pattern)) this.#learn(server, domain, text, true)
  }

  /** Records a refusal before RCPT: its text is about the client, for a day at least. */
  onRefusedBeforeRcpt(operator: string, reply: Reply): void {
    const pattern = reply.code < 500 ? null : toPattern(reply, '')
    if (pattern !== null) this.#beforeRcpt.set(beforeRcptKey(operator, pattern), NOTED, DAY)
  }

  /**
   * Records that a recipient is accepted. Returns the text that this refutes, with which it was
   * refused within a day; null if there is none.
   */
  onAccepted(domain: string, recipient: string, isRandom: boolean): ReplyPattern | null {
    const { accepted, refused, refusedRandoms } = this.#recentOf(domain)
    const refusals = isRandom ? refusedRandoms : refused
    const refuted = refusals.get(recipient) ?? null
    refusals.delete(recipient)
    if (isRandom) return refuted
    this.#inARow.delete(domain)
    if (accepted.size < RECIPIENTS_MAX) accepted.add(recipient)
    return refuted
  }

  /** Records a refusal. Returns the text if the recipient was accepted within a day; else null. */
  onRefused(
    domain: string,
    recipient: string,
    pattern: ReplyPattern,
    isRandom: boolean,
  ): ReplyPattern | null {
    const { accepted, refused, refusedRandoms, numbered } = this.#recentOf(domain)
    const isOther = ({ exact, loose }: ReplyPattern) =>
      loose === pattern.loose && exact !== pattern.exact
    if (isRandom && [...refusedRandoms.values()].some(isOther)) numbered.add(pattern.loose)
    const refusals = isRandom ? refusedRandoms : refused
    if (refusals.size < RECIPIENTS_MAX) refusals.set(recipient, pattern)
    return accepted.delete(recipient) ? pattern : null
  }

  /** Whether replies of a domain are recorded. */
  hasRecent(domain: string): boolean {
    return this.#recent.get(domain) !== undefined
  }

  /** Whether a domain accepts recipients often enough for its refusals to be about the others. */
  acceptsEnough(domain: string): boolean {
    const { accepted, refused } = this.#recentOf(domain)
    return refused.size <= REFUSED_PER_ACCEPTED_MAX * accepted.size
  }

  /** Whether earlier proofs may decide about `count` more recipients without an acceptance. */
  mayDecide(domain: string, count: number): boolean {
    return (this.#inARow.get(domain)?.count ?? 0) + count <= IN_A_ROW_MAX
  }

  /** Counts recipients that earlier proofs decided. */
  onDecided(domain: string, count: number): void {
    const before = this.#inARow.get(domain)?.count ?? 0
    if (count > 0) this.#inARow.set(domain, { count: before + count }, IN_A_ROW_MS)
  }

  /**
   * Returns a recipient that a domain with texts of its own accepted within a day, other than these.
   * Its reply shows whether a block has begun. Only this process knows it: it is not stored.
   */
  witness(domain: string, others: ReadonlySet<string>): string | null {
    if (!this.hasOwnTexts(domain)) return null
    const accepted = [...(this.#recent.get(domain)?.accepted ?? [])]
    return accepted.findLast(one => !others.has(one)) ?? null
  }

  /**
   * Returns a function to call at the end of a second look at a domain; null if there was one within
   * an hour.
   */
  claimSecondLook(domain: string): (() => void) | null {
    if (this.#askedAgain.get(domain) !== undefined) return null
    const { promise, resolve } = withResolvers<void>()
    this.#askedAgain.set(domain, { ended: promise }, ASK_AGAIN_MS)
    return resolve
  }

  /** Resolves when the second look at a domain has ended; null if there was none within an hour. */
  secondLook(domain: string): Promise<void> | null {
    return this.#askedAgain.get(domain)?.ended ?? null
  }

  #recentOf(domain: string): Recent {
    const recent = this.#recent.get(domain) ?? {
      accepted: new Set<string>(),
      refused: new Map<string, ReplyPattern>(),
      refusedRandoms: new Map<string, ReplyPattern>(),
      numbered: new Set<string>(),
    }
    this.#recent.set(domain, recent, RECENT_MS)
    return recent
  }

  #learn(server: Server, domain: string, reply: string, isRefuted: boolean) {
    const { clock, store } = this.#deps
    const known = this.#byReply.get(reply)?.get(domain)
    const isSame = known?.operator === server.operator && (known.isRefuted || !isRefuted)
    if (isSame && clock.now() - known.at < DAY) return
    const { operator, software, subnet } = server
    const learned = {
      domain,
      reply,
      operator,
      software,
      subnet,
      at: clock.now(),
      isRefuted: isRefuted || (isSame && known.isRefuted),
    }
    this.#add(learned)
    store?.put(learned)
  }

  #add(learned: LearnedReply) {
    const { domain, reply } = learned
    const known = this.#byReply.get(reply)?.get(domain)
    if (known !== undefined) this.#remove(known)
    const owner = ownerOf(domain)
    const ofOwner = this.#byOwner.get(owner) ?? []
    const oldest = ofOwner.length >= REPLIES_PER_OWNER_MAX ? ofOwner[0] : undefined
    if (oldest !== undefined) this.#remove(oldest)
    // Maps iterate in the order of insertion, so the first owner was changed longest ago.
    this.#byOwner.delete(owner)
    this.#byOwner.set(owner, [...ofOwner.filter(one => one !== known && one !== oldest), learned])
    const byDomain = this.#byReply.get(reply) ?? new Map<string, LearnedReply>()
    this.#byReply.set(reply, byDomain.set(domain, learned))
    this.#size++
    while (this.#size > REPLIES_MAX) {
      const [first] = this.#byOwner.values()
      for (const one of first ?? []) this.#remove(one)
    }
  }

  #remove({ domain, reply }: LearnedReply) {
    const owner = ownerOf(domain)
    const others = this.#byOwner
      .get(owner)
      ?.filter(one => one.domain !== domain || one.reply !== reply)
    if (others === undefined || others.length === 0) this.#byOwner.delete(owner)
    else this.#byOwner.set(owner, others)
    const byDomain = this.#byReply.get(reply)
    if (byDomain?.delete(domain) === true) this.#size--
    if (byDomain?.size === 0) this.#byReply.delete(reply)
  }
}

const NOTED = {}

const beforeRcptKey = (operator: string, { words }: ReplyPattern) => `${operator} ${words}`

const ownerOf = (domain: string) =>
  publicSuffixes().getDomain(domain, { allowPrivateDomains: true }) ?? domain

const countOwners = (all: readonly LearnedReply[]) =>
  new Set(all.map(one => ownerOf(one.domain))).size
