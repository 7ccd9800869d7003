import type { RateLimits } from '../../engine/rate-control/limit-table.ts'
import {
  isFull,
  mayStart,
  newState,
  onStarted,
  type RateChange,
  type RateState,
  rescale,
} from '../../engine/rate-control/rules.ts'
import type { RateKey } from '../../engine/rate-control/shared-state.ts'
import { DEFAULT_RATE_TIMINGS } from './rate-timings.ts'
import type { RateWrite } from './rows.ts'
import { ofMembers, type StoredRate, withOwn } from './stored-state.ts'
import {
  isCurrent,
  isSingleWaiting,
  newTicket,
  type QueuePosition,
  reservedFor,
  type WaitTicket,
} from './wait-tickets.ts'
import { Waiters } from './waiters.ts'

/** Somebody who wants to open a connection. */
export type PermitRequest = {
  /** Somebody waits for the answer. */
  readonly single: boolean
  readonly decide: (isGranted: boolean) => void
  readonly fail: (error: unknown) => void
}

/** What is to be written of an entry, and what is true once it is. */
export type PendingWrite = {
  readonly write: RateWrite
  readonly granted: readonly PermitRequest[]
  readonly refused: readonly PermitRequest[]
  /** How many of the changes that wait are in it. */
  readonly changes: number
}

type Known = StoredRate & {
  readonly version: number
  /** Ticks at which it had been read. */
  readonly at: number
}

/** One pace as this process knows it: what is stored, and what is not told yet. */
export class SharedRateEntry {
  readonly key: RateKey
  readonly #row: RateLimits
  readonly #ticketMs: number
  /** Null: to be read before anything is decided. */
  #known: Known | null = null
  #state: RateState
  /** What happened here and is not stored yet, in its order. */
  #changes: RateChange[] = []
  /** Some of it should be told now, not only with what comes next. */
  #needsFlush = false
  /** Connections that this process holds, whichever member it was when they were opened. */
  #own = 0
  #member = ''
  readonly #requests = new Set<PermitRequest>()
  readonly #waiters = new Waiters()
  /** Rounds since it was last used. */
  idle = 0

  constructor(key: RateKey, row: RateLimits, ticketMs = DEFAULT_RATE_TIMINGS.ticketMs) {
    this.key = key
    this.#row = row
    this.#ticketMs = ticketMs
    this.#state = newState(row)
  }

  get state(): RateState {
    return this.#state
  }

  /** Over all members, with those that are wanted here. */
  get sessions(): number {
    return this.#others + this.#own + this.#requests.size
  }

  /** Connections that are kept free for other members, who come before whoever waits here. */
  reservedForOthers(single: boolean, now: number): number {
    const place = { since: this.#waiters.since(now), single }
    return this.#known === null ? 0 : reservedFor(this.#known.waiting, this.#member, place, now)
  }

  isSingleWaiting(now: number): boolean {
    return this.#known !== null && isSingleWaiting(this.#known.waiting, this.#member, now)
  }

  get #empty(): StoredRate {
    return { state: newState(this.#row), held: {}, waiting: {} }
  }

  get #others(): number {
    let others = 0
    const held = this.#known?.held ?? {}
    for (const member in held) if (member !== this.#member) others += held[member] ?? 0
    return others
  }

  /** 0: it is to be read. */
  get version(): number {
    return this.#known?.version ?? 0
  }

  get isKnown(): boolean {
    return this.#known !== null
  }

  /** Nothing here hangs on it. */
  get isQuiet(): boolean {
    return (
      this.#own === 0 &&
      this.#changes.length === 0 &&
      this.#requests.size === 0 &&
      this.#waiters.isEmpty
    )
  }

  /** Something is to be decided or written. Who is no member is let in nowhere, and holds nothing. */
  isDue(isMember: boolean): boolean {
    if (this.#needsFlush) return true
    if (!isMember) return false
    const stored = this.#known?.held[this.#member] ?? 0
    return this.#requests.size > 0 || this.#own !== stored
  }

  /** From now on we are this member. Connections that are open still are ours: the permits of the one before are void. */
  setMember(member: string): void {
    if (member === this.#member) return
    this.#member = member
    // What was to be told with their end is told now.
    this.#needsFlush ||= this.#changes.length > 0
  }

  request(request: PermitRequest): void {
    this.#requests.add(request)
  }

  cancel(request: PermitRequest): void {
    this.#requests.delete(request)
  }

  /** A connection is over. */
  end(): void {
    this.#own--
  }

  change(change: RateChange, now: number, needsFlush: boolean): void {
    const next = change(this.#state, now)
    const isRepeated = next === this.#state && this.#changes.at(-1) === change
    if (!isRepeated) this.#changes.push(change)
    this.#state = next
    this.#needsFlush ||= needsFlush
  }

  watch(call: () => void, single: boolean, now: number): () => void {
    return this.#waiters.add(call, single, now)
  }

  /** Somebody waits here for the answer. */
  get hasSingle(): boolean {
    return this.#waiters.hasSingle
  }

  /** Somebody waits here for what others hold: that is told them, and again while he does, and that nobody does any more. */
  renewTicket(now: number): void {
    if (this.#known === null) return
    const place = this.#placeOf([...this.#requests], now)
    if (!isCurrent(this.#known.waiting[this.#member] ?? null, place, now, this.#ticketMs))
      this.#needsFlush = true
  }

  #placeOf(asking: readonly PermitRequest[], now: number): QueuePosition | null {
    const place = this.#waiters.place(asking, now)
    if (place === null) return null
    return isFull(this.#state, this.sessions + this.reservedForOthers(place.single, now))
      ? place
      : null
  }

  /** What is stored; null: nothing. Permits of who is no member are void. */
  read(o: {
    readonly stored: StoredRate | null
    readonly version: number
    readonly members: readonly string[]
    readonly now: number
    readonly at: number
  }): void {
    // An answer that was overtaken by another.
    if (this.#known !== null && o.version < this.#known.version) return
    const stored = ofMembers(o.stored ?? this.#empty, o.members)
    const state = rescale(stored.state, this.#row, o.now)
    this.#known = { ...stored, state, version: o.version, at: o.at }
    this.#look(o.now)
  }

  /** Those who are members now, as seen by who began to look at `at`. */
  dropExpiredMembers(members: readonly string[], at: number, now: number): void {
    // Who looked before may have missed one that has joined and begun since.
    if (this.#known === null || this.#known.at > at) return
    const stored = ofMembers(this.#known, members)
    if (stored === this.#known) return
    this.#known = { ...this.#known, ...stored }
    this.#look(now)
  }

  /** It cannot be told what is stored: it is read anew, and what is not true of it is set right. */
  invalidate(): void {
    this.#known = null
    this.#needsFlush = true
  }

  /** What is to be written now; null: nothing. Where this process is no member, nobody is let in, and nobody is told so. */
  plan(now: number, isMember: boolean): PendingWrite | null {
    this.#needsFlush = false
    const known = this.#known as Known
    const changes = this.#changes.length
    const changed = this.#changes.reduce((state, change) => change(state, now), known.state)
    const { state, granted, refused } = this.#admit(changed, now, isMember)
    const held = isMember ? this.#own + granted.length : 0
    const ticket = isMember ? this.#ticket(granted.length > 0, refused, now) : null
    const before = known.waiting[this.#member] ?? null
    const isSame = ticket === before && held === (known.held[this.#member] ?? 0)
    if (isSame && state === known.state) {
      this.#settle({ granted, refused, changes })
      return null
    }
    const stored = withOwn(known, this.#member, { state, held, ticket })
    const member = granted.length > 0 ? this.#member : null
    const write = { ...this.key, version: known.version, stored, member }
    return { write, granted, refused, changes }
  }

  /** The one that is there, where it still says what it should. Who was let in goes behind all others. */
  #ticket(isServed: boolean, refused: readonly PermitRequest[], now: number): WaitTicket | null {
    const place = this.#placeOf(refused, now)
    const before = this.#known?.waiting[this.#member] ?? null
    if (isServed) return place && newTicket({ ...place, since: now }, now, this.#ticketMs)
    return isCurrent(before, place, now, this.#ticketMs)
      ? before
      : place && newTicket(place, now, this.#ticketMs)
  }

  #admit(changed: RateState, now: number, isMember: boolean) {
    const granted: PermitRequest[] = []
    const refused: PermitRequest[] = []
    let state = changed
    for (const request of isMember ? this.#requests : []) {
      const held = this.#others + this.#own + granted.length
      const isGranted = mayStart(
        state,
        this.#row,
        now,
        held + this.reservedForOthers(request.single, now),
      )
      if (isGranted) state = onStarted(state, this.#row, now)
      ;(isGranted ? granted : refused).push(request)
    }
    return { state, granted, refused }
  }

  /** It was written: gives whom to let in. */
  written(plan: PendingWrite, version: number, at: number, now: number): void {
    this.#known = { ...plan.write.stored, version, at }
    const isStill = plan.write.member === null || plan.write.member === this.#member
    const { granted, refused } = plan
    if (granted.length > 0) this.#waiters.served(now)
    this.#settle(isStill ? plan : { ...plan, granted: [], refused: [...granted, ...refused] })
    this.#look(now, false)
  }

  /** Nobody can be let in. */
  fail(error: unknown): void {
    const requests = [...this.#requests]
    this.#requests.clear()
    for (const request of requests) request.fail(error)
  }

  #settle({ granted, refused, changes }: Omit<PendingWrite, 'write'>): void {
    this.#changes.splice(0, changes)
    this.#own += granted.length
    for (const request of [...granted, ...refused]) this.#requests.delete(request)
    for (const request of granted) request.decide(true)
    for (const request of refused) request.decide(false)
  }

  #look(now: number, isChanged = true): void {
    const stored = (this.#known as Known).state
    this.#state = this.#changes.reduce((state, change) => change(state, now), stored)
    if (isChanged) this.#waiters.callAll()
  }
}
